"""fabric's plugin in a whole server, before a fake in this loop or a fake program."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.server.fabric.fake.app import PATTERNS, FakeFabric
from tests.server.fabric.fake.serving import serve
from woollama.core.canonical import RunEvent, RunFinished, TextDelta, UserMessage
from woollama.core.canonical.value import NOTHING
from woollama.core.patterns import PatternBackend, PatternCall
from woollama.server.fabric import plugin
from woollama.server.testing import Served, use_plugins

ROOT = Path(__file__).parents[3]
LIMIT_S = 60


@asynccontextmanager
async def serving(
    section: Mapping[str, Any], environ: Mapping[str, str] = NOTHING
) -> AsyncGenerator[Served]:
    """A server whose ``mcp.json`` has this section ``fabric``."""
    files = {"mcp.json": json.dumps({"fabric": section})}
    with anyio.fail_after(LIMIT_S):
        async with use_plugins(plugin, files=files, environ=environ) as server:
            yield server


@asynccontextmanager
async def before(
    fake: FakeFabric, section: Mapping[str, Any] = NOTHING, environ: Mapping[str, str] = NOTHING
) -> AsyncGenerator[Served]:
    """The same, its fabric being a fake at an address."""
    async with serve(fake.app) as url, serving({"url": url, **section}, environ) as server:
        yield server


def backend_of(server: Served) -> PatternBackend:
    """fabric's backend in a server."""
    (backend,) = server.services.plugins.pattern_backends
    return backend


def call(name: str = "summarize", text: str = "hi", **more: Any) -> PatternCall:
    """A call with one user message."""
    more.setdefault("messages", (UserMessage(content=text),))
    return PatternCall(name=name, **more)


async def events_of(server: Served, asked: PatternCall) -> list[RunEvent]:
    """All events of a run."""
    async with backend_of(server).open_run(asked) as events:
        return [event async for event in events]


async def answer_of(server: Served, asked: PatternCall) -> str:
    """The text of a run's whole reply."""
    last = (await events_of(server, asked))[-1]
    assert isinstance(last, RunFinished)
    assert isinstance(last.reply.message.content, str)
    return last.reply.message.content


def text_of(events: list[RunEvent]) -> str:
    """The text of the deltas."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


class Machine:
    """A home with a fake of fabric's program in it."""

    def __init__(self, folder: Path, *, patterns: Mapping[str, str] = PATTERNS) -> None:
        self.home = folder / "home"
        self.store = self.home / ".config" / "fabric"
        self.run = folder / "run"
        binaries = self.home / ".local" / "bin"
        for path in (self.store, self.run, binaries):
            path.mkdir(parents=True)
        (self.store / ".env").write_text("")
        for name, text in patterns.items():
            (self.store / "patterns" / name).mkdir(parents=True)
            (self.store / "patterns" / name / "system.md").write_text(text)
        self.program = binaries / "fabric"
        self.program.write_text(
            f"#!{sys.executable}\n"
            "import sys\n"
            f"sys.path.insert(0, {str(ROOT)!r})\n"
            "from tests.server.fabric.fake.program import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        self.program.chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "XDG_RUNTIME_DIR": str(self.run),
        }

    def behave(self, **control: Any) -> None:
        """How the program behaves from now on."""
        (self.store / "fake.json").write_text(json.dumps(control))

    def starts(self) -> list[dict[str, Any]]:
        """What each server was started with."""
        return self._notes("starts.jsonl")

    def calls(self) -> list[dict[str, Any]]:
        """What each run was called with."""
        return self._notes("calls.jsonl")

    def _notes(self, file: str) -> list[dict[str, Any]]:
        path = self.store / file
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def left_address(self) -> str | None:
        """What is left for other woollamas."""
        path = self.run / "woollama.fabric-addr"
        return path.read_text().strip() if path.exists() else None


async def until(happened: Callable[[], bool]) -> None:
    """Waits for what another process does: it tells nobody."""
    with anyio.fail_after(10):
        while not happened():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
