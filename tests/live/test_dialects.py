"""Three dialects against one real server: llama.cpp speaks chat, Responses and Messages.

Run with `-s` to see the table of what it answered. It keeps to a JSON schema on Chat Completions
only, and on Responses it neither says that a reply was cut by its cap nor can be made to call a
tool: the strict fakes stand in for that.
"""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

from tests.server.routes.serving import frames, serving, text_of_frames
from woollama.core import complete, complete_response, complete_stream
from woollama.core.errors import ProviderError
from woollama.core.providers import ModelRegistry, Provider
from woollama.core.scopes import open_tasks
from woollama.core.transport import Timeouts, default
from woollama.server.local.config import LocalConfig
from woollama.server.local.launch import Endpoint, check_model, launch_model
from woollama.server.local.models import BUNDLED_MODEL, find_models
from woollama.server.supervision import Limits, Supervisor

pytestmark = pytest.mark.live

QUESTION: list[dict[str, Any]] = [{"role": "user", "content": "What is the capital of France?"}]
ANSWER = "The capital of France is Paris."
TABLES: Mapping[str, Mapping[str, str]] = {
    "compatible": {"provider": "openai"},
    "responses": {"provider": "openai", "dialect": "responses"},
    "anthropic": {"provider": "anthropic"},
}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "in_europe": {"type": "boolean"}},
    "required": ["city", "in_europe"],
    "additionalProperties": False,
}
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "place", "strict": True, "schema": SCHEMA},
}
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
every_dialect = pytest.mark.parametrize("dialect", list(TABLES))


@asynccontextmanager
async def _child(config_dir: Path) -> AsyncGenerator[Endpoint]:
    """llama.cpp's server with the bundled model: its address and its key."""
    models = find_models(LocalConfig(), config_dir=config_dir)
    model = await check_model(models[BUNDLED_MODEL])
    async with open_tasks() as tasks:
        supervisor: Supervisor[Endpoint] = Supervisor(
            "local",
            tasks,
            launch=lambda: launch_model(model, threads=None, parallel=1),
            limits=Limits(),
        )
        yield await supervisor.start()
        tasks.cancel_scope.cancel()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Generator[Endpoint]:
    """One child for all tests of this file, on a loop of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_child(tmp_path_factory.mktemp("live"))) as found,
    ):
        yield found


class Seen:
    """What came back, to be printed at the end."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, str]] = {}

    def note(self, dialect: str, what: str, came: object) -> None:
        self._cells.setdefault(what, {})[dialect] = str(came)

    def table(self) -> str:
        rows = [("", *TABLES)]
        rows += [
            (what, *(row.get(dialect, "-") for dialect in TABLES))
            for what, row in self._cells.items()
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        padded = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )
        return "\n".join(line.rstrip() for line in padded)


@pytest.fixture(scope="module")
def seen() -> Generator[Seen]:
    found = Seen()
    yield found
    print(f"\n\n{found.table()}")  # noqa: T201 - shown with -s


def provider_of(dialect: str, endpoint: Endpoint) -> Provider:
    """The provider as `inferencers.toml` would name it."""
    table = {"base_url": f"{endpoint.address}/v1", "api_key_env": "UP_KEY", **TABLES[dialect]}
    provider = ModelRegistry({"up": table}).get("up")
    assert provider is not None
    return provider


MODEL = f"up/{BUNDLED_MODEL}"


@asynccontextmanager
async def asking(
    dialect: str, endpoint: Endpoint, *, api_key: str | None = None
) -> AsyncGenerator[dict[str, Any]]:
    """The arguments that lead a call to the child in one dialect."""
    transport = default.make_transport()
    with anyio.fail_after(120):
        yield {
            "registry": ModelRegistry([provider_of(dialect, endpoint)]),
            "transport": transport,
            "api_key": api_key or endpoint.key,
            "timeouts": Timeouts(whole=60),
        }
    await transport.aclose()


@every_dialect
async def test_text(dialect: str, endpoint: Endpoint, seen: Seen) -> None:
    async with asking(dialect, endpoint) as how:
        text = await complete(MODEL, QUESTION, **how)
    seen.note(dialect, "text", text)
    assert ANSWER == text


@every_dialect
async def test_stream(dialect: str, endpoint: Endpoint, seen: Seen) -> None:
    async with asking(dialect, endpoint) as how:
        pieces = [piece async for piece in complete_stream(MODEL, QUESTION, **how)]
    seen.note(dialect, "stream", "|".join(pieces))
    assert ["The", " capital", " of", " France", " is", " Paris", "."] == pieces


@every_dialect
async def test_usage(dialect: str, endpoint: Endpoint, seen: Seen) -> None:
    async with asking(dialect, endpoint) as how:
        usage = (await complete_response(MODEL, QUESTION, **how))["usage"]
    counts = (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"])
    seen.note(dialect, "usage", f"{counts[0]} + {counts[1]} = {counts[2]} tokens")
    assert (27, 8, 35) == counts
    assert 0 <= usage["prompt_tokens_details"]["cached_tokens"] <= 27


@every_dialect
@pytest.mark.parametrize(
    ("what", "params", "reason", "text"),
    [
        ("ends", {}, "stop", ANSWER),
        ("ends at a stop text", {"stop": ["Paris"]}, "stop", "The capital of France is "),
        ("ends at the cap", {"max_tokens": 3}, "length", "The capital of"),
    ],
)
async def test_stop_reasons(
    dialect: str,
    what: str,
    params: dict[str, Any],
    reason: str,
    text: str,
    endpoint: Endpoint,
    seen: Seen,
) -> None:
    async with asking(dialect, endpoint) as how:
        choice = (await complete_response(MODEL, QUESTION, params=params, **how))["choices"][0]
    seen.note(dialect, what, f"{choice['finish_reason']} ({choice['native_finish_reason']})")
    if dialect == "responses":
        # Its Responses are always `completed`.
        reason = "stop"
    assert (reason, text) == (choice["finish_reason"], choice["message"]["content"])


@every_dialect
async def test_structured_output(dialect: str, endpoint: Endpoint, seen: Seen) -> None:
    params = {"response_format": FORMAT, "max_tokens": 100}
    async with asking(dialect, endpoint) as how:
        text = await complete(MODEL, QUESTION, params=params, **how)
        streamed = [piece async for piece in complete_stream(MODEL, QUESTION, params=params, **how)]
    seen.note(dialect, "structured output", " ".join(text.split()))
    assert text == "".join(streamed)
    if dialect == "compatible":
        assert {"city", "in_europe"} == set(msgspec.json.decode(text))
    else:
        # It takes the schema and does not keep to it.
        assert ANSWER == text


@pytest.mark.parametrize("dialect", ["compatible", "anthropic"])
async def test_a_tool_is_called_and_its_result_is_taken(
    dialect: str, endpoint: Endpoint, seen: Seen
) -> None:
    """The opened call forces it; on Responses nothing does."""
    question = {"role": "user", "content": "What is the weather in Paris?"}
    opened = {"role": "assistant", "content": "<tool_call>\n"}
    params = {"tools": [WEATHER], "max_tokens": 100, "tool_choice": "required"}
    async with asking(dialect, endpoint) as how:
        reply = await complete_response(MODEL, [question, opened], params=params, **how)
        call = reply["choices"][0]["message"]["tool_calls"][0]
        history = [
            question,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "sunny, 21 degrees"},
        ]
        text = await complete(MODEL, history, params={"tools": [WEATHER], "max_tokens": 60}, **how)
    called = f"{call['function']['name']}({call['function']['arguments']})"
    seen.note(dialect, "tool call", called)
    assert "tool_calls" == reply["choices"][0]["finish_reason"]
    assert "get_weather" == call["function"]["name"]
    assert {"city": "Paris"} == msgspec.json.decode(call["function"]["arguments"])
    assert "sunny" in text


async def test_a_call_and_its_result_are_taken_as_responses(endpoint: Endpoint) -> None:
    function = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
    call = {"id": "c1", "type": "function", "function": function}
    history = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny, 21 degrees"},
    ]
    async with asking("responses", endpoint) as how:
        text = await complete(MODEL, history, params={"tools": [WEATHER], "max_tokens": 60}, **how)
    assert "sunny" in text


@every_dialect
async def test_errors(dialect: str, endpoint: Endpoint, seen: Seen) -> None:
    async with asking(dialect, endpoint, api_key="sk-wrong-key") as how:
        with pytest.raises(ProviderError) as refused:
            await complete(MODEL, QUESTION, **how)
    long = [{"role": "user", "content": "word " * 20_000}]
    async with asking(dialect, endpoint) as how:
        with pytest.raises(ProviderError, match="exceeds the available context size") as caught:
            await complete(MODEL, long, **how)
    seen.note(dialect, "wrong key", f"{refused.value.status} {refused.value.kind}")
    seen.note(dialect, "prompt too long", f"{caught.value.status} {caught.value.kind}")
    assert (401, "authentication") == (refused.value.status, refused.value.kind)
    assert (400, "invalid_request") == (caught.value.status, caught.value.kind)


@every_dialect
async def test_a_client_of_the_daemon_sees_no_difference(
    dialect: str, endpoint: Endpoint, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UP_KEY", endpoint.key)
    asked: dict[str, Any] = {"model": MODEL, "messages": QUESTION}
    async with serving(provider_of(dialect, endpoint)) as daemon:
        whole = (await daemon.chat(**asked)).json()
        options = {"stream_options": {"include_usage": True}}
        streamed = await daemon.chat(**asked, stream=True, **options)
    found = frames(streamed.content)
    seen.note(dialect, "through the daemon", whole["choices"][0]["message"]["content"])
    assert ANSWER == whole["choices"][0]["message"]["content"] == text_of_frames(found)
    assert (27, 8) == (whole["usage"]["prompt_tokens"], whole["usage"]["completion_tokens"])
    assert 8 == found[-2]["usage"]["completion_tokens"]
    assert "[DONE]" == found[-1]
