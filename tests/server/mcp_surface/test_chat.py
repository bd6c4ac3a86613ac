"""The tool `chat`: models, recipes and patterns; progress, log, usage, cancellation."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import CallToolResult, LoggingMessageNotificationParams

from tests.server.mcp_surface.rig import ERAS, Era, connected, daemon, scripted, servers, text_of
from woollama.core.canonical import FunctionCall, Reply, ToolCall, Usage
from woollama.core.scopes import open_tasks
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.anthropic import AnthropicFake
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import Exchange, Upstream, chunked, head, serve, whole

RECIPES = """
[recipes.plain]
inferencer = "up/m-1"
system = "You are {{who}}."
[recipes.plain.variables.who]
default = "Bo"

[recipes.tools]
inferencer = "up/m-1"
system = "Use tools."
tools = ["t.echo"]

[patterns]
dir = "prompts"
"""
HI = [{"role": "user", "content": "hi"}]
ONE = Usage(prompt_tokens=10, completion_tokens=2, total_tokens=12)
ECHO = ToolCall(id="call_1", function=FunctionCall(name="t__echo", arguments='{"word":"x"}'))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "sk-test-1")


def files(upstream: Upstream, **export: Any) -> dict[str, Any]:
    table = f'[inferencers.up]\nbase_url = "{upstream.url}"\napi_key_env = "UP_KEY"\n'
    mcp = servers(t=scripted())
    return {
        "inferencers.toml": table + 'models = ["m-1", "m-2"]\n',
        "recipes.toml": RECIPES,
        "mcp.json": {**mcp, "export": export} if export else mcp,
    }


def tidy(folder: Path) -> None:
    (folder / "prompts" / "tidy").mkdir(parents=True)
    (folder / "prompts" / "tidy" / "system.md").write_text("Tidy {{what}}.")


def talk_then_answer() -> Sequence[Reply]:
    return (say("Let me see.", calls=[ECHO], usage=ONE), say("It is x.", usage=ONE))


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_answers_in_text_and_structure(tmp_path: Path, era: Era) -> None:
    fake = CompatibleFake([say("hello", usage=ONE)] * 2)
    async with (
        serve(fake) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url, era) as client,
    ):
        given = {"model": "up/m-1", "options": {"temperature": 0.5, "max_tokens": 9}}
        result = await client.call_tool("chat", {**given, "prompt": "hi"})
        again = await client.call_tool("chat", {**given, "messages": HI})
    assert "hello" == text_of(result) == text_of(again)
    assert {
        "text": "hello",
        "model": "m-1",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    } == structured(result)
    first, second = (request.json() for request in fake.requests)
    assert first == second
    assert (HI, 0.5, 9) == (first["messages"], first["temperature"], first["max_tokens"])
    assert not first.get("stream")


@pytest.mark.parametrize("era", ERAS)
async def test_a_recipe_or_a_pattern_runs_with_its_variables(tmp_path: Path, era: Era) -> None:
    tidy(tmp_path)
    fake = CompatibleFake([say("done")] * 4)
    async with (
        serve(fake) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url, era) as client,
    ):
        for given in (
            {"recipe": "plain", "prompt": "hi", "variables": {"who": "Al"}},
            {"model": "woollama/plain", "prompt": "hi"},
            {"pattern": "tidy", "model": "up/m-2", "prompt": "hi", "variables": {"what": "it"}},
            {"recipe": "plain", "model": "up/m-2", "prompt": "hi"},
        ):
            assert "done" == text_of(await client.call_tool("chat", given))
    asked = [request.json() for request in fake.requests]
    assert [
        ("m-1", "You are Al."),
        ("m-1", "You are Bo."),
        ("m-2", "Tidy it."),
        ("m-2", "You are Bo."),
    ] == [(each["model"], each["messages"][0]["content"]) for each in asked]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_tells_the_tools_and_the_text_of_a_run(tmp_path: Path, era: Era) -> None:
    heard: list[tuple[float, str | None]] = []
    logged: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def log(params: LoggingMessageNotificationParams) -> None:
        logged.append((params.level, params.logger, params.data))

    fake = CompatibleFake([*talk_then_answer()])
    async with (
        serve(fake) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url, era, logging_callback=log, log_level="info") as client,
    ):
        await running.connected("t")
        given = {"recipe": "tools", "prompt": "hi"}
        result = await client.call_tool("chat", given, progress_callback=hear)
    assert "It is x." == text_of(result)
    assert {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24} == (
        structured(result)["usage"]
    )
    counts = [count for count, _ in heard]
    assert sorted(set(counts)) == counts, "progress must increase"
    told = [message for _, message in heard]
    calling, done = told.index("calling t.echo"), told.index("t.echo: done")
    assert "Let me see." == "".join(str(each) for each in told[:calling])
    assert done == calling + 1
    assert "turn 2" == told[done + 1]
    assert "It is x." == "".join(str(each) for each in told[done + 2 :])
    assert [
        ("info", "woollama.chat", {"event": "tool_started", "tool": "t.echo"}),
        ("info", "woollama.chat", {"event": "tool_finished", "tool": "t.echo", "ok": True}),
    ] == logged
    assert fake.requests[0].json()["stream"]


async def test_without_a_token_nothing_is_streamed_and_nothing_told(tmp_path: Path) -> None:
    fake = CompatibleFake([*talk_then_answer()])
    async with (
        serve(fake) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url, "auto") as client,
    ):
        await running.connected("t")
        result = await client.call_tool("chat", {"recipe": "tools", "prompt": "hi"})
    assert "It is x." == text_of(result)
    assert not any(request.json().get("stream") for request in fake.requests)


@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_stops_the_run_and_its_request(tmp_path: Path, era: Era) -> None:
    begun = anyio.Event()
    exchanges: list[Exchange] = []

    async def script(exchange: Exchange) -> None:
        exchanges.append(exchange)
        choices = [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        event = b"data: " + json.dumps({**chunk, "choices": choices}).encode() + b"\n\n"
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await exchange.send(head(200, headers) + chunked([event], end=False))
        await exchange.gone.wait()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert "a" == message
        begun.set()

    async with (
        serve(script) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url, era) as client,
        open_tasks() as tasks,
    ):

        async def ask() -> None:
            given = {"model": "up/m-1", "prompt": "hi"}
            await client.call_tool("chat", given, progress_callback=hear)

        tasks.start_soon(ask)
        with anyio.fail_after(20):
            await begun.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await exchanges[0].gone.wait()


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_wrong_is_told_where_a_model_reads_it(tmp_path: Path, era: Era) -> None:
    tidy(tmp_path)
    given: list[tuple[dict[str, Any], str]] = [
        ({}, "Recipes and patterns: plain, tidy, tools. Models: up/m-1, up/m-2."),
        ({"model": "up/m-1"}, "needs 'messages' or a 'prompt'"),
        ({"model": "up/m-1", "prompt": "a", "messages": HI}, "not both"),
        ({"recipe": "plain", "pattern": "tidy"}, "not both"),
        ({"recipe": "plan", "prompt": "a"}, "no recipe or pattern 'plan'. Near names: plain"),
        ({"recipe": "tidy", "prompt": "a"}, "is no recipe but a pattern"),
        ({"pattern": "tidy", "prompt": "a"}, "names no model to run on"),
        ({"model": "nope/m", "prompt": "a"}, "nope"),
        ({"model": "up/m-1", "prompt": "a", "variables": {"x": 1}}, "belong to a recipe"),
        ({"model": "up/m-1", "prompt": 5}, "Expected `str"),
        ({"model": "up/m-1", "promt": "a"}, "unknown field `promt`"),
        ({"model": "up/m-1", "messages": [{"role": "x"}]}, "messages[0]"),
        ({"model": "up/m-1", "prompt": "a", "options": {"stream": True}}, "'stream'"),
    ]
    async with (
        serve(CompatibleFake([])) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url, era) as client,
    ):
        for arguments, expected in given:
            result = await client.call_tool("chat", arguments)
            assert result.is_error, arguments
            assert expected in text_of(result), (arguments, text_of(result))


async def test_a_providers_refusal_is_a_failed_result(tmp_path: Path) -> None:
    async def script(exchange: Exchange) -> None:
        body = {"error": {"message": "too many", "type": "t", "code": "c"}}
        headers = {"content-type": "application/json"}
        data = json.dumps(body).encode()
        await exchange.send(head(400, {**headers, "content-length": str(len(data))}) + data)

    async with (
        serve(script) as upstream,
        daemon(tmp_path, files(upstream)) as running,
        connected(running.url) as client,
    ):
        result = await client.call_tool("chat", {"model": "up/m-1", "prompt": "hi"})
    assert result.is_error
    assert "too many" in text_of(result)


@pytest.mark.parametrize("era", ERAS)
async def test_the_log_line_tells_the_model_and_the_tokens_and_no_more(
    tmp_path: Path, era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    fake = CompatibleFake([say("the-answer", usage=ONE)])
    with caplog.at_level("DEBUG", "woollama"):
        async with (
            serve(fake) as upstream,
            daemon(tmp_path, files(upstream)) as running,
            connected(running.url, era) as client,
        ):
            await client.call_tool("chat", {"recipe": "plain", "prompt": "the-question"})
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("woollama")]
    assert any("model=woollama/plain" in line and "tokens=10+2" in line for line in ours)
    assert not any(word in line for line in ours for word in ("the-answer", "the-question"))


async def test_who_names_nothing_is_told_what_providers_offer_now(tmp_path: Path) -> None:
    async def script(exchange: Exchange) -> None:
        listed = {"object": "list", "data": [{"id": "found-1", "object": "model"}]}
        await exchange.send(whole(json.dumps(listed).encode()))

    async with serve(script) as upstream:
        table = f'[inferencers.up]\nbase_url = "{upstream.url}"\napi_key_env = "UP_KEY"\n'
        given = {"inferencers.toml": table + "discover = true\n"}
        async with daemon(tmp_path, given) as running, connected(running.url) as client:
            assert "up/found-1" in text_of(await client.call_tool("chat", {}))


async def test_recipes_only_runs_no_other_model(tmp_path: Path) -> None:
    fake = CompatibleFake([say("done")] * 2)
    async with (
        serve(fake) as upstream,
        daemon(tmp_path, files(upstream, recipesOnly=True)) as running,
        connected(running.url) as client,
    ):
        for refused in ({"model": "up/m-1"}, {"recipe": "plain", "model": "up/m-2"}):
            result = await client.call_tool("chat", {**refused, "prompt": "hi"})
            assert "Only recipes and patterns" in text_of(result)
        for taken in ({"recipe": "plain"}, {"model": "woollama/plain"}):
            assert "done" == text_of(await client.call_tool("chat", {**taken, "prompt": "hi"}))
        nothing = text_of(await client.call_tool("chat", {}))
    assert "Say what to ask. Recipes and patterns: plain, tools." == nothing


async def test_a_parameter_that_was_left_out_is_named(tmp_path: Path) -> None:
    logged: list[Any] = []

    async def log(params: LoggingMessageNotificationParams) -> None:
        logged.append((params.level, params.data))

    fake = AnthropicFake([say("done")])
    async with serve(fake) as upstream:
        table = f'[inferencers.up]\nbase_url = "{upstream.url}"\napi_key_env = "UP_KEY"\n'
        given = {"inferencers.toml": table + 'provider = "anthropic"\ndrop_params = ["seed"]\n'}
        async with (
            daemon(tmp_path, given) as running,
            connected(running.url, "legacy", logging_callback=log) as client,
        ):
            asked = {"model": "up/claude-x", "prompt": "hi", "options": {"seed": 3}}
            result = await client.call_tool("chat", {**asked})
    assert ["seed"] == structured(result)["dropped"]
    assert [("warning", {"event": "dropped", "parameters": ["seed"]})] == logged
