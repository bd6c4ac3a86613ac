"""Recipes and patterns over HTTP: as models on ``/v1``, and by name on ``/w1``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.routes.serving import HI, Daemon, frames, serving, text_of_frames
from woollama.core import tool
from woollama.core.canonical import FunctionCall, Reply, ToolCall, Usage
from woollama.core.providers import Provider
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import Exchange, Upstream, chunked, head, serve

RECIPES = """
[recipes.plain]
description = "Says something."
inferencer = "up/m-1"
system = "You are {{who}}. Keep {{this}}."
params = { temperature = 0.5, seed = 3 }
[recipes.plain.variables.who]
default = "Bo"
choices = ["Bo", "Al"]

[recipes.tools]
inferencer = "up/m-1"
system = "Use tools."
tools = ["look"]

[recipes.homeless]
system = "S"
"""
LOOK = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"word":"x"}'))
ONE = Usage(prompt_tokens=10, completion_tokens=1, total_tokens=11)


@tool
def look(word: str) -> str:
    """Looks a word up."""
    return f"about {word}"


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    path = tmp_path / "recipes.toml"
    path.write_text(RECIPES)
    return path


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "sk-test-1")


def up(upstream: Upstream) -> Provider:
    return Provider("up", upstream.url, api_key_env="UP_KEY")


def talk_then_answer() -> Sequence[Reply]:
    """Talk before a call, then the answer."""
    return (say("Let me look.", calls=[LOOK], usage=ONE), say("It is x.", usage=ONE))


async def ask(daemon: Daemon, name: str, **fields: Any) -> Any:
    return await daemon.chat(model=f"woollama/{name}", **fields)


async def test_a_recipe_is_a_model(recipes: Path) -> None:
    fake = CompatibleFake([say("hello")])
    async with serve(fake) as upstream, serving(up(upstream), recipes=recipes) as daemon:
        response = await ask(daemon, "plain", temperature=0.1)
    assert "hello" == response.json()["choices"][0]["message"]["content"]
    sent = fake.requests[0].json()
    assert ("m-1", 0.1, 3) == (sent["model"], sent["temperature"], sent["seed"])
    system, user = sent["messages"]
    assert {"role": "system", "content": "You are Bo. Keep {{this}}."} == system
    assert HI == [user]


async def test_both_modes_give_one_answer_with_the_usage_of_all_turns(recipes: Path) -> None:
    fake = CompatibleFake([*talk_then_answer(), *talk_then_answer()])
    async with (
        serve(fake) as upstream,
        serving(up(upstream), recipes=recipes, tools=[look]) as daemon,
    ):
        plain = (await ask(daemon, "tools")).json()
        options = {"include_usage": True}
        streamed = await ask(daemon, "tools", stream=True, stream_options=options)
    found = frames(streamed.content)
    assert "It is x." == plain["choices"][0]["message"]["content"] == text_of_frames(found)
    assert {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22} == plain["usage"]
    assert plain["usage"] == found[-2]["usage"]
    reasons = [c["finish_reason"] for f in found[:-2] for c in f["choices"] if c["finish_reason"]]
    assert ["stop"] == reasons
    assert "[DONE]" == found[-1]
    assert b"tool_calls" not in streamed.content
    result = fake.requests[1].json()["messages"][-1]
    assert ("call_1", "about x") == (result["tool_call_id"], result["content"])


async def test_text_without_tools_comes_as_it_is_said(recipes: Path) -> None:
    said = anyio.Event()
    chunk = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: " + json.dumps({**chunk, "choices": choices}).encode() + b"\n\n"

    async def script(exchange: Exchange) -> None:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await exchange.send(head(200, headers) + chunked([event({"content": "a"})], end=False))
        await said.wait()
        await exchange.send(chunked([event({}, "length"), b"data: [DONE]\n\n"]))

    body = b""
    async with serve(script) as upstream, serving(up(upstream), recipes=recipes) as daemon:
        asked = {"model": "woollama/plain", "messages": HI, "stream": True}
        async with daemon.client.stream("POST", "/v1/chat/completions", json=asked) as response:
            async for piece in response.aiter_bytes():
                body += piece
                if b'"content":"a"' in body:
                    said.set()
    assert "length" == frames(body)[-2]["choices"][0]["finish_reason"]


async def test_a_client_that_leaves_ends_the_run(recipes: Path) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    async with serve(script) as upstream, serving(up(upstream), recipes=recipes) as daemon:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, daemon, "plain")
            await upstream.wait_for(1)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await upstream.exchanges[0].gone.wait()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_in_the_first_turn_keeps_its_status(recipes: Path, stream: bool) -> None:
    fake = CompatibleFake([])
    reply = fake.error(429, "slow down")
    fake = CompatibleFake([reply])
    async with serve(fake) as upstream, serving(up(upstream), recipes=recipes) as daemon:
        response = await ask(daemon, "plain", stream=stream)
    assert (429, "slow down") == (response.status_code, response.json()["error"]["message"])


async def test_a_failure_in_a_later_turn_is_the_last_event(recipes: Path) -> None:
    fake = CompatibleFake([talk_then_answer()[0], CompatibleFake([]).error(500, "kaboom")])
    async with (
        serve(fake) as upstream,
        serving(up(upstream), recipes=recipes, tools=[look]) as daemon,
    ):
        response = await ask(daemon, "tools", stream=True)
    assert "kaboom" in frames(response.content)[-1]["error"]["message"]
    assert b"[DONE]" not in response.content
    assert "" == text_of_frames(frames(response.content)[:-1])


async def test_a_recipe_takes_no_tools_of_the_client(recipes: Path) -> None:
    async with serving(recipes=recipes) as daemon:
        tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        response = await ask(daemon, "plain", tools=tools)
    assert (400, "tools") == (response.status_code, response.json()["error"]["param"])


async def test_the_list_has_patterns_with_what_is_declared(recipes: Path) -> None:
    async with serving(recipes=recipes) as daemon:
        listed = (await daemon.client.get("/w1/patterns")).json()["data"]
        one = (await daemon.client.get("/w1/patterns/plain")).json()
        models = (await daemon.client.get("/v1/models")).json()["data"]
    assert ["homeless", "plain", "tools"] == [entry["name"] for entry in listed]
    assert one == listed[1]
    assert {
        "name": "plain",
        "variables": [
            {"name": "who", "default": "Bo", "choices": ["Bo", "Al"]},
            {"name": "this"},
        ],
        "source": "recipe",
        "model": "up/m-1",
        "description": "Says something.",
    } == one
    assert ["woollama/plain", "woollama/tools"] == [entry["id"] for entry in models]


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({}, "You are Bo. Keep {{this}}."),
        ({"input": "IN {{who}}"}, "You are Bo. Keep {{this}}.\n\nIN {{who}}"),
        ({"input": "", "variables": {"who": ""}}, "You are . Keep {{this}}.\n\n"),
        ({"variables": {"this": "{{who}}", "who": 3}}, "You are 3. Keep {{who}}."),
    ],
)
async def test_p_40_render(recipes: Path, body: dict[str, Any], prompt: str) -> None:
    async with serving(recipes=recipes) as daemon:
        response = await daemon.client.post("/w1/patterns/plain/render", json=body)
    assert {"prompt": prompt} == response.json()


@pytest.mark.parametrize("stream", [False, True])
async def test_run_fills_merges_and_overrides(recipes: Path, stream: bool) -> None:
    fake = CompatibleFake([say("ran")])
    body = {
        "input": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        "variables": {"who": "Al"},
        "model": "up/other",
        "options": {"temperature": 0.9},
        "stream": stream,
    }
    async with serve(fake) as upstream, serving(up(upstream), recipes=recipes) as daemon:
        response = await daemon.client.post("/w1/patterns/plain/run", json=body)
    sent = fake.requests[0].json()
    assert ("other", 0.9, 3) == (sent["model"], sent["temperature"], sent["seed"])
    assert ["You are Al. Keep {{this}}.", "a", "b"] == [m["content"] for m in sent["messages"]]
    if stream:
        assert "ran" == text_of_frames(frames(response.content))
    else:
        assert "ran" == response.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("nope/run", {}, 404, "'nope'"),
        ("plaim/render", {}, 404, "plain"),
        ("../../etc/passwd/render", {}, 404, "no"),
        ("%2e%2e%2fpasswd/run", {}, 404, "passwd"),
        ("plain/render", {"input": 5}, 400, "'input'"),
        ("plain/render", {"variables": []}, 400, "'variables'"),
        ("plain/run", {"input": 5}, 400, "'input'"),
        ("plain/run", {"input": [5]}, 400, "input[0]"),
        ("plain/run", {"stream": "y"}, 400, "'stream'"),
        ("plain/run", {"model": 5}, 400, "'model'"),
        ("plain/run", {"varables": {}}, 400, "variables"),
        ("plain/run", {"model": "nope/x"}, 404, "nope"),
        ("homeless/run", {"input": "x"}, 400, "model"),
    ],
)
async def test_bad_requests_say_what_is_wrong(
    recipes: Path, path: str, body: Any, status: int, word: str
) -> None:
    async with serving(recipes=recipes) as daemon:
        response = await daemon.client.post(f"/w1/patterns/{path}", json=body)
    assert status == response.status_code
    assert word in response.json()["error"]["message"]


async def test_an_edit_is_seen_without_a_restart(recipes: Path) -> None:
    async with serving(recipes=recipes) as daemon:
        new = '[recipes.new]\ninferencer = "up/m"\nsystem = "S"\n'
        await anyio.Path(recipes).write_text(new)
        listed = (await daemon.client.get("/w1/patterns")).json()["data"]
    assert ["new"] == [entry["name"] for entry in listed]
