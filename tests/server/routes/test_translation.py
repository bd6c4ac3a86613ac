"""Another dialect behind the chat route: its requests, its replies in our words."""

import json
from typing import Any

import pytest

from tests.server.routes.serving import frames, serving, text_of_frames
from woollama.core.canonical import FunctionCall, ToolCall, Usage
from woollama.core.providers import Provider
from woollama.core.testing.fake import Fake, say
from woollama.core.testing.fakes.anthropic import AnthropicFake
from woollama.core.testing.fakes.cerebras import CerebrasFake
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.fakes.responses import ResponsesFake
from woollama.core.testing.upstream import Exchange, serve, whole
from woollama.core.wire import WireSettings

TRANSLATED: tuple[tuple[type[Fake], dict[str, str]], ...] = (
    (AnthropicFake, {"kind": "anthropic"}),
    (OllamaFake, {"kind": "ollama"}),
    (ResponsesFake, {"dialect": "responses"}),
    (CerebrasFake, {"dialect": "cerebras"}),
)
MODEL = "gpt-oss-120b"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"q":"x"}'))
COUNTED = Usage(prompt_tokens=3, completion_tokens=2, total_tokens=5)

every_dialect = pytest.mark.parametrize(
    ("fake", "how"), TRANSLATED, ids=lambda value: getattr(value, "__name__", "")
)


def up(url: str, how: dict[str, Any], **fields: Any) -> Provider:
    return Provider("up", url, api_key_env="UP_KEY", **how, **fields)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "sk-test-1")


@every_dialect
async def test_text_and_thinking(fake: type[Fake], how: dict[str, str]) -> None:
    peer = fake([say("hello world", reasoning="hm", usage=COUNTED)] * 2)
    async with serve(peer) as upstream, serving(up(upstream.url, how)) as daemon:
        plain = (await daemon.chat(model=f"up/{MODEL}")).json()
        options = {"include_usage": True}
        streamed = await daemon.chat(model=f"up/{MODEL}", stream=True, stream_options=options)
    message = plain["choices"][0]["message"]
    assert ("hello world", "hm") == (message["content"], message["reasoning_content"])
    assert "chat.completion" == plain["object"]
    found = frames(streamed.content)
    assert "hello world" == text_of_frames(found)
    thinking = [f["choices"][0]["delta"].get("reasoning_content", "") for f in found[:-2]]
    assert "hm" == "".join(thinking)
    assert {"role": "assistant", "content": ""} == found[0]["choices"][0]["delta"]
    assert "stop" == found[-3]["choices"][0]["finish_reason"]
    assert plain["usage"] == found[-2]["usage"]
    assert ([], "[DONE]") == (found[-2]["choices"], found[-1])


@every_dialect
async def test_no_usage_chunk_unless_it_was_asked_for(
    fake: type[Fake], how: dict[str, str]
) -> None:
    peer = fake([say("hello", usage=COUNTED)])
    async with serve(peer) as upstream, serving(up(upstream.url, how)) as daemon:
        found = frames((await daemon.chat(model=f"up/{MODEL}", stream=True)).content)
    assert all("usage" not in frame for frame in found[:-1])


@every_dialect
async def test_tool_calls(fake: type[Fake], how: dict[str, str]) -> None:
    peer = fake([say(calls=[CALL])] * 2)
    async with serve(peer) as upstream, serving(up(upstream.url, how)) as daemon:
        plain = (await daemon.chat(model=f"up/{MODEL}", tools=[TOOL])).json()
        streamed = await daemon.chat(model=f"up/{MODEL}", tools=[TOOL], stream=True)
    call = plain["choices"][0]["message"]["tool_calls"][0]
    assert ("look", {"q": "x"}) == (
        call["function"]["name"],
        json.loads(call["function"]["arguments"]),
    )
    pieces = [
        piece
        for frame in frames(streamed.content)[:-1]
        for choice in frame["choices"]
        for piece in choice["delta"].get("tool_calls", ())
    ]
    assert {0} == {piece["index"] for piece in pieces}
    assert ["look"] == [p["function"]["name"] for p in pieces if "name" in p["function"]]
    arguments = "".join(piece["function"]["arguments"] for piece in pieces)
    assert {"q": "x"} == json.loads(arguments)


@every_dialect
async def test_a_refusal_in_another_dialect_is_told_in_ours(
    fake: type[Fake], how: dict[str, str]
) -> None:
    peer = fake([])
    peer.answer = lambda _request: peer.error(429, "slow down")  # type: ignore[method-assign]
    async with serve(peer) as upstream, serving(up(upstream.url, how)) as daemon:
        for stream in (False, True):
            response = await daemon.chat(model=f"up/{MODEL}", stream=stream)
            assert 429 == response.status_code
            error = response.json()["error"]
            assert "slow down" in error["message"]
            assert {"message", "type", "param", "code"} <= error.keys()


async def test_a_stream_that_breaks_off_ends_in_an_error_event() -> None:
    async def script(exchange: Exchange) -> None:
        line = b'{"model":"m","message":{"role":"assistant","content":"par"},"done":false}\n'
        await exchange.send(whole(line, headers={"content-type": "application/x-ndjson"}))

    async with serve(script) as upstream:
        provider = up(upstream.url, {"kind": "ollama"})
        async with serving(provider) as daemon:
            response = await daemon.chat(stream=True)
    found = frames(response.content)
    assert "par" == text_of_frames(found[:-1])
    assert "error" in found[-1]
    assert b"[DONE]" not in response.content


async def test_what_was_left_out_is_named_in_a_header() -> None:
    settings = WireSettings(drop_params=frozenset({"seed"}))
    async with serve(AnthropicFake([say("ok")])) as upstream:
        provider = up(upstream.url, {"kind": "anthropic"}, settings=settings)
        async with serving(provider) as daemon:
            response = await daemon.chat(seed=1)
    assert (200, "seed") == (response.status_code, response.headers["x-woollama-dropped"])


async def test_what_has_no_words_is_refused_by_name() -> None:
    async with serving(up("http://127.0.0.1:1/v1", {"kind": "anthropic"})) as daemon:
        response = await daemon.chat(seed=1)
    assert (400, "seed") == (response.status_code, response.json()["error"]["param"])


async def test_the_alias_of_the_thinking_is_a_setting() -> None:
    async with serve(OllamaFake([say("ok", reasoning="hm")])) as upstream:
        provider = up(upstream.url, {"kind": "ollama"})
        async with serving(provider, reasoning="reasoning") as daemon:
            message = (await daemon.chat()).json()["choices"][0]["message"]
    assert "hm" == message["reasoning"]


async def test_relay_off_decodes_and_encodes_again() -> None:
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"content": [{"type": "text", "text": "ok"}]}}],
    }
    reply = whole(json.dumps(body).encode())

    async def script(exchange: Exchange) -> None:
        await exchange.send(reply)

    async with serve(script) as upstream, serving(up(upstream.url, {}, relay=False)) as daemon:
        message = (await daemon.chat()).json()["choices"][0]["message"]
    assert {"role": "assistant", "content": "ok"} == message
