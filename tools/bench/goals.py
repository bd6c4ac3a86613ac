"""The project's speed goals, as data, and the steps that measure them."""

from collections.abc import Sequence

from tools.bench import imports, library, startup
from tools.bench.comparison import Step
from tools.bench.goal import Goal, Ref

PARTS = ("startup", "imports", "library", "server")

OURS = "woollama"
UVICORN = "woollama-uvicorn"
DECODED = "woollama-translate"
NATIVE = "woollama-native"

STEPS: Sequence[Step] = (
    Step(scenario="chat-1", targets=("direct", "nginx", OURS, UVICORN)),
    Step(scenario="chat-64", targets=("nginx", "litellm", OURS, UVICORN)),
    Step(scenario="chat-256", targets=("nginx", OURS, UVICORN)),
    Step(scenario="stream-64", targets=("nginx", OURS, UVICORN, DECODED, NATIVE)),
    Step(scenario="stream-256", targets=("nginx", OURS, UVICORN)),
    Step(scenario="slow-500", targets=("nginx", OURS, UVICORN, DECODED, NATIVE)),
    Step(scenario="slow-1000", targets=("nginx", OURS, UVICORN)),
)


def _server_ratio(
    label: str, ours: tuple[str, str], theirs: tuple[str, str], field: str, must: float, aim: float
) -> Goal:
    """A goal for the ratio of one field of two servers, each with its scenario."""
    return Goal(
        label=label,
        part="server",
        ours=Ref(subject=ours[0], scenario=ours[1], field=field),
        against=Ref(subject=theirs[0], scenario=theirs[1], field=field),
        must=must,
        aim=aim,
        better="less" if field.startswith("cpu") else "more",
    )


def _chat_goals() -> list[Goal]:
    peer, field = ("litellm", "chat-64"), "requests_per_s"
    more = "requests/s at 256 connections against 64"
    return [
        _server_ratio(
            "requests/s, chat-64, against LiteLLM", (OURS, "chat-64"), peer, field, 20, 35
        ),
        _server_ratio(
            "requests/s, chat-64, uvicorn, against LiteLLM",
            (UVICORN, "chat-64"),
            peer,
            field,
            40,
            100,
        ),
        _server_ratio(more, (OURS, "chat-256"), (OURS, "chat-64"), field, 0.9, 1),
        _server_ratio(
            f"{more}, uvicorn", (UVICORN, "chat-256"), (UVICORN, "chat-64"), field, 0.9, 1
        ),
        Goal(
            label="added latency p50, chat-1",
            part="server",
            ours=Ref(subject=OURS, scenario="chat-1", field="p50_ms"),
            against=Ref(subject="direct", scenario="chat-1", field="p50_ms"),
            how="difference",
            unit="ms",
            must=0.4,
            aim=0.2,
            better="less",
        ),
    ]


def _stream_goals() -> list[Goal]:
    rows = (
        ("CPU us a chunk", "slow-500", "cpu_us_per_chunk", (4.5, 3), (3, 2)),
        ("chunks/s", "stream-64", "chunks_per_s", (0.6, 1), (0.8, 1)),
        ("chunks/s", "stream-256", "chunks_per_s", (0.6, 1), (0.8, 1)),
    )
    return [
        _server_ratio(
            f"{what}, {scenario}{note}, against nginx",
            (name, scenario),
            ("nginx", scenario),
            field,
            *limits,
        )
        for what, scenario, field, default, uvicorn in rows
        for name, note, limits in ((OURS, "", default), (UVICORN, ", uvicorn", uvicorn))
    ]


def _many_streams_goals() -> list[Goal]:
    return [
        Goal(
            label=f"slow-1000: {what}",
            part="server",
            ours=Ref(subject=OURS, scenario="slow-1000", field=field),
            how="value",
            unit=unit,
            must=must,
            aim=aim,
            better="more" if field == "served_share" else "less",
        )
        for what, field, unit, must, aim in (
            ("share served", "served_share", "", 1, 1),
            ("lateness p99", "late_p99_ms", "ms", 250, 25),
            ("share of a core", "cpu_percent", "%", 60, 35),
        )
    ]


def _translation_goals() -> list[Goal]:
    return [
        _server_ratio(
            f"CPU us a chunk, {what}, {scenario}, against relay",
            (name, scenario),
            (OURS, scenario),
            "cpu_us_per_chunk",
            1.5,
            1.2,
        )
        for what, name in (("decoded and encoded", DECODED), ("from Ollama's protocol", NATIVE))
        for scenario in ("slow-500", "stream-64")
    ]


def _library_goals() -> list[Goal]:
    limits = {
        "httpx2": ("a bare httpx2 call", {1: (1.2, 0.5), 64: (0.5, 0.2)}),
        "acompletion": ("LiteLLM's acompletion", dict.fromkeys((1, 64), (1 / 8, 1 / 15))),
    }
    return [
        Goal(
            label=f"CPU us of complete(), {connections} at once, against {what}",
            part="library",
            ours=Ref(subject="complete", scenario=f"call-{connections}", field="cpu_us_per_call"),
            against=Ref(subject=name, scenario=f"call-{connections}", field="cpu_us_per_call"),
            must=must,
            aim=aim,
            better="less",
        )
        for name, (what, rows) in limits.items()
        for connections, (must, aim) in rows.items()
        if connections in library.CONNECTIONS
    ]


def _import_goals() -> list[Goal]:
    ours = {"subject": imports.CORE, "scenario": imports.SCENARIO}
    return [
        Goal(
            label="import of woollama.core, ms, against msgspec, anyio and asyncio",
            part="imports",
            ours=Ref(**ours, field="import_ms"),
            against=Ref(subject=imports.FLOOR, scenario=imports.SCENARIO, field="import_ms"),
            must=1.3,
            aim=1.1,
            better="less",
        ),
        Goal(
            label=f"of {', '.join(imports.ON_FIRST_USE)}: imported with it",
            part="imports",
            ours=Ref(**ours, field="heavy"),
            how="value",
            unit="",
            must=0,
            aim=0,
            better="less",
        ),
    ]


def _startup_goals() -> list[Goal]:
    return [
        Goal(
            label=label,
            part="startup",
            ours=Ref(subject=OURS, scenario=startup.SCENARIO, field=field),
            how="value",
            unit=unit,
            must=must,
            aim=aim,
            better="less",
        )
        for label, field, unit, must, aim in (
            ("start to open port", "port_s", "s", 1, 0.5),
            ("RSS at 64 connections", "rss_mb", "MB", 110, 60),
        )
    ]


GOALS: Sequence[Goal] = (
    *_chat_goals(),
    *_stream_goals(),
    *_many_streams_goals(),
    *_translation_goals(),
    *_library_goals(),
    *_import_goals(),
    *_startup_goals(),
)
