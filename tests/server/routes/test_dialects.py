"""Every dialect behind the chat route: efforts, advice, schemas, and what must not get lost."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.wire.peers import EFFORT_WORDS, EFFORTS, wire_reply
from tests.server.routes.serving import HI, frames, serving
from woollama.core.canonical import NOTHING
from woollama.core.providers import ModelSettings, Provider
from woollama.core.testing.fake import Fake, FakeReply, json_reply, say
from woollama.core.testing.fakes import CompatibleFake, OllamaFake, ResponsesFake
from woollama.core.testing.kits import KITS
from woollama.core.testing.upstream import Exchange, serve, whole
from woollama.core.wire import DIALECTS, WireSettings

every_dialect = pytest.mark.parametrize("dialect", sorted(DIALECTS))
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EFFORT_OF = {"m": ModelSettings(efforts=("low", "high"), effort="high")}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
MODEL = {"model": "up/m"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "sk-test-1")


def up(dialect: str, url: str, **fields: Any) -> Provider:
    return KITS[dialect].provider(url, api_key_env="UP_KEY", **fields)


def body_of(fake: Fake) -> dict[str, Any]:
    return json.loads(fake.requests[-1].body)


async def asked(
    dialect: str, fake: Fake, *, provider: Mapping[str, Any] = NOTHING, **fields: Any
) -> Any:
    """The daemon's response to one chat request, the fake behind it."""
    async with (
        serve(fake) as upstream,
        serving(up(dialect, upstream.url, **provider)) as daemon,
    ):
        return await daemon.chat(**MODEL, **fields)


@every_dialect
@either_way
async def test_a_13_the_declared_effort_is_sent_in_the_dialects_own_way(
    dialect: str, stream: bool
) -> None:
    fake = KITS[dialect].fake([say("ok")])
    declared = {"model_settings": EFFORT_OF}
    response = await asked(dialect, fake, provider=declared, stream=stream)
    assert 200 == response.status_code
    assert EFFORTS[dialect].items() <= body_of(fake).items()


@every_dialect
async def test_a_13_a_chosen_effort_wins_over_the_declared_one(dialect: str) -> None:
    fake = KITS[dialect].fake([say("ok")])
    own = {"m": ModelSettings(efforts=("low", "high"), effort="low")}
    await asked(dialect, fake, provider={"model_settings": own}, reasoning_effort="high")
    assert EFFORTS[dialect].items() <= body_of(fake).items()


@every_dialect
async def test_a_13_a_model_that_declares_none_is_sent_none(dialect: str) -> None:
    fake = KITS[dialect].fake([say("ok")])
    await asked(dialect, fake)
    assert EFFORT_WORDS.isdisjoint(body_of(fake))


@every_dialect
@either_way
async def test_ru_17_an_effort_outside_the_list_is_refused_with_the_list(
    dialect: str, stream: bool
) -> None:
    fake = KITS[dialect].fake([say("ok")])
    declared = {"model_settings": EFFORT_OF}
    response = await asked(dialect, fake, provider=declared, stream=stream, reasoning_effort="max")
    error = response.json()["error"]
    assert (400, "reasoning_effort") == (response.status_code, error["param"])
    assert "takes the efforts low, high, not 'max'" in error["message"]
    assert [] == fake.requests


@either_way
async def test_p_22_advice_on_a_relayed_refusal_is_a_header_and_the_body_the_peers(
    stream: bool,
) -> None:
    fake = CompatibleFake([say("ok")], effort_beside_tools="refuse")
    fields: dict[str, Any] = {"tools": [TOOL], "reasoning_effort": "high", "stream": stream}
    response = await asked("compatible", fake, **fields)
    own = fake.answer(fake.requests[0])
    assert 400 == response.status_code == own.status
    assert json.loads(b"".join(own.chunks)) == response.json()
    assert 'dialect = "responses"' in response.headers["x-woollama-hint"]


@either_way
async def test_p_22_advice_on_a_translated_refusal_stands_in_its_message(stream: bool) -> None:
    fake = CompatibleFake([say("ok")], effort_beside_tools="refuse")
    fields: dict[str, Any] = {"tools": [TOOL], "reasoning_effort": "high", "stream": stream}
    response = await asked("compatible", fake, provider={"relay": False}, **fields)
    error = response.json()["error"]
    assert (400, "reasoning_effort") == (response.status_code, error["param"])
    assert error["message"].startswith("Function tools with reasoning_effort are not supported")
    assert error["message"].endswith("the Responses API takes an effort beside tools.")
    assert "x-woollama-hint" not in response.headers


@either_way
async def test_p_22_another_refusal_gets_no_advice(stream: bool) -> None:
    fake = CompatibleFake([say("ok")])
    response = await asked("compatible", fake, stream=stream, tool_choice="required")
    assert 400 == response.status_code
    assert "x-woollama-hint" not in response.headers


async def test_p_22_one_conversation_only_the_dialect_differs() -> None:
    refusing = CompatibleFake([say("ok")], effort_beside_tools="refuse")
    taking = ResponsesFake([say("ok")], models=["m"])
    fields: dict[str, Any] = {"tools": [TOOL], "reasoning_effort": "high"}
    statuses = [
        (await asked("compatible", refusing, **fields)).status_code,
        (await asked("responses", taking, **fields)).status_code,
    ]
    assert [400, 200] == statuses


THINKING_WORDS: Mapping[str, str | None] = {
    "anthropic": None,
    "cerebras": "reasoning",
    "ollama": "thinking",
    "responses": None,
}


@pytest.mark.parametrize("dialect", sorted(THINKING_WORDS))
@pytest.mark.parametrize("alias", ["reasoning", "reasoning_content"])
async def test_thinking_in_history_is_taken_under_either_name(dialect: str, alias: str) -> None:
    """A-2, A-3: the client says it as it was told it, the provider hears its own word or none."""
    fake = KITS[dialect].fake([say("Bye.")])
    history = [*HI, {"role": "assistant", "content": "Warm.", alias: "Let me look."}, *HI]
    response = await asked(dialect, fake, messages=history)
    assert 200 == response.status_code
    sent, word = fake.requests[0].body.decode(), THINKING_WORDS[dialect]
    assert (word is not None) is ("Let me look." in sent)
    assert word is None or f'"{word}":"Let me look."' in sent


@every_dialect
@either_way
async def test_p_3_the_size_of_the_context_is_ollamas_or_refused_by_name(
    dialect: str, stream: bool
) -> None:
    fake = KITS[dialect].fake([say("ok")])
    response = await asked(dialect, fake, options={"num_ctx": 8192}, stream=stream)
    if dialect == "ollama":
        assert 200 == response.status_code
        assert {"num_ctx": 8192} == body_of(fake)["options"]
    else:
        param = response.json()["error"]["param"]
        assert (400, "options", []) == (response.status_code, param, fake.requests)


def said(dialect: str, *, stream: bool) -> bytes:
    """How the server of a dialect says it is warm."""
    return wire_reply(dialect, say("It is warm."), stream=stream or dialect == "responses")


@every_dialect
@either_way
async def test_p_24_a_reply_that_breaks_off_is_an_error_and_never_done(
    dialect: str, stream: bool
) -> None:
    """Not streaming, nothing of it is released."""
    body = said(dialect, stream=stream)
    cut = FakeReply(chunks=(body[: len(body) // 2],))
    response = await asked(dialect, KITS[dialect].fake([cut]), stream=stream)
    assert b"[DONE]" not in response.content
    if stream and 200 == response.status_code:
        assert "error" in frames(response.content)[-1]
        return
    assert 502 == response.status_code
    assert b"warm" not in response.content
    assert {"error"} == response.json().keys()


@every_dialect
async def test_c_3_what_a_reply_has_no_place_for_is_refused_or_relayed(dialect: str) -> None:
    fake = KITS[dialect].fake([say("ok")])
    response = await asked(dialect, fake, n=2)
    if dialect == "compatible":
        assert [0, 1] == [choice["index"] for choice in response.json()["choices"]]
        return
    error = response.json()["error"]
    assert (400, "n", []) == (response.status_code, error["param"], fake.requests)
    assert "list it in the provider's drop_params" in error["message"]


@every_dialect
@either_way
async def test_what_drop_params_leaves_out_is_named_in_a_header(dialect: str, stream: bool) -> None:
    fake = KITS[dialect].fake([say("ok")])
    settings = WireSettings(drop_params=frozenset({"n"}))
    response = await asked(dialect, fake, provider={"settings": settings}, n=2, stream=stream)
    assert (200, "n") == (response.status_code, response.headers["x-woollama-dropped"])
    assert "n" not in body_of(fake)


TOKENS = [{"token": "o", "logprob": -0.1}, {"token": "k", "logprob": -0.2}]


def probable(*tokens: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content = "".join(token["token"] for token in tokens)
    message = {"role": "assistant", "content": content}
    said = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}
    return {**said, **({"logprobs": list(tokens)} if tokens else {}), **fields}


def lines(*payloads: dict[str, Any]) -> FakeReply:
    chunks = tuple(json.dumps(payload).encode() + b"\n" for payload in payloads)
    return FakeReply(headers={"content-type": "application/x-ndjson"}, chunks=chunks)


async def test_c_3_probabilities_that_were_asked_for_come_back() -> None:
    whole = json_reply(200, probable(*TOKENS, done=True))
    fake = OllamaFake([whole], models=["m"])
    response = await asked("ollama", fake, logprobs=True)
    assert True is body_of(fake)["logprobs"]
    assert {"content": TOKENS} == response.json()["choices"][0]["logprobs"]


async def test_c_3_probabilities_that_were_asked_for_are_streamed() -> None:
    parts = [probable(token) for token in TOKENS]
    fake = OllamaFake([lines(*parts, probable(done=True))], models=["m"])
    response = await asked("ollama", fake, logprobs=True, stream=True)
    found = frames(response.content)
    choices = [frame["choices"][0] for frame in found[:-1]]
    told = [choice["logprobs"]["content"] for choice in choices if "logprobs" in choice]
    assert [[token] for token in TOKENS] == told


async def test_c_3_a_second_choice_from_a_server_that_does_not_stream_is_an_error() -> None:
    """Its bytes would pass whole; as events there is a place for one."""
    fake = CompatibleFake([say("ok")], models=["m"])
    request = json.dumps({"model": "m", "messages": HI, "n": 2}).encode()

    async def script(exchange: Exchange) -> None:
        plain = fake.render(say("ok"), json.loads(request))
        await exchange.send(whole(b"".join(plain.chunks)))

    async with serve(script) as upstream, serving(up("compatible", upstream.url)) as daemon:
        response = await daemon.chat(**MODEL, n=2, stream=True)
    assert b"several choices" in response.content
    assert b"[DONE]" not in response.content


@every_dialect
@pytest.mark.parametrize("text", [rb"\ud83d", rb"a\udcff", rb"\ude00\ud83d"])
async def test_half_a_character_is_a_clear_refusal(dialect: str, text: bytes) -> None:
    fake = KITS[dialect].fake([])
    content = b'{"model":"up/m","messages":[{"role":"user","content":"%s"}]}' % text
    async with serve(fake) as upstream, serving(up(dialect, upstream.url)) as daemon:
        response = await daemon.chat_raw(content)
    assert (400, []) == (response.status_code, fake.requests)
    assert "an escape in it is half of a character" in response.json()["error"]["message"]


@every_dialect
@pytest.mark.parametrize("number", [b"1e999", b"9" * 5000])
async def test_a_number_that_cannot_be_read_is_a_clear_refusal_or_relayed(
    dialect: str, number: bytes
) -> None:
    fake = KITS[dialect].fake([])
    content = b'{"model":"up/m","messages":[],"x":%s}' % number
    async with serve(fake) as upstream, serving(up(dialect, upstream.url)) as daemon:
        response = await daemon.chat_raw(content)
    error = response.json()["error"]
    assert 400 == response.status_code
    told = "parse the JSON" if dialect == "compatible" else "The request body cannot be read"
    assert told in error["message"]


REFERRING = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}, "when": {"anyOf": [{"type": "null"}]}},
    "$defs": {"Place": {"properties": {"city": {"type": ["string", "null"]}}}},
}
PLACE = {"properties": {"city": {"type": ["string", "null"]}}}
SHAPED: dict[str, dict[str, Any]] = {
    "as_is": REFERRING,
    "inline": {
        "type": "object",
        "properties": {"place": PLACE, "when": {"anyOf": [{"type": "null"}]}},
    },
    "normalize": {
        "type": "object",
        "properties": {
            "place": {"type": "object", "properties": {"city": {"type": "string"}}},
            "when": {"anyOf": [{"type": "null"}]},
        },
    },
}


@every_dialect
@pytest.mark.parametrize("mode", sorted(SHAPED))
async def test_tool_schemas_have_the_shape_that_the_provider_wants(dialect: str, mode: Any) -> None:
    fake = KITS[dialect].fake([say("ok")])
    tool = {"type": "function", "function": {"name": "look", "parameters": REFERRING}}
    settings = WireSettings(schema_mode=mode)
    response = await asked(dialect, fake, provider={"settings": settings}, tools=[tool])
    assert 200 == response.status_code
    (sent,) = body_of(fake)["tools"]
    schemas = (sent.get("function", sent), sent)
    shown = [
        given[key] for given in schemas for key in ("parameters", "input_schema") if key in given
    ]
    assert SHAPED[mode] == shown[0]
