"""What every dialect must do, as checks that the tests of a dialect run.

    @pytest.mark.parametrize("name", BEHAVIOURS)
    async def test_my_dialect(name: str) -> None:
        await BEHAVIOURS[name](DialectKit(dialect=MINE, make_fake=MyFake))

Each check plays against the dialect's strict fake, whole replies and streams alike, and raises
``AssertionError`` where the dialect breaks the contract. A dialect that has no words for images may
refuse them; everything else it must do.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from woollama.core.canonical import (
    Finish,
    FunctionCall,
    ReasoningDelta,
    Reply,
    Start,
    TextDelta,
    ToolCall,
    Usage,
    assemble,
    request_from_openai,
)
from woollama.core.errors import (
    CannotEncode,
    InferenceError,
    ProviderError,
    ReplyError,
    TruncatedReply,
)
from woollama.core.testing.fake import Fake, FakeReply, FakeRequest, say
from woollama.core.testing.kits import DialectKit

__all__ = ["BEHAVIOURS", "Behaviour"]

Behaviour = Callable[[DialectKit], Awaitable[None]]

_MODES = (False, True)
_KEY = "sk-of-the-contract"
_INSTRUCTION = "Be exact."
_QUESTION = "How warm is it in Rome and in Oslo?"
_ROME = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"city":"Rome"}'))
_OSLO = ToolCall(id="call_2", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))
_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
_WARM = "It is 30 degrees, and dry."


async def check_text(kit: DialectKit) -> None:
    """A question and a system prompt are taken, the key in its place, and the text comes back."""
    for stream in _MODES:
        fake = kit.fake([say(_WARM)], key=_KEY)
        messages = [{"role": "system", "content": _INSTRUCTION}, _user()]
        reply = await kit.ask(fake, stream=stream, api_key=_KEY, messages=messages)
        _same(_WARM, reply.message.content)
        _same("stop", reply.finish_reason)
        (request,) = fake.requests
        for said in (_INSTRUCTION, _QUESTION, kit.model):
            assert said.encode() in request.body, f"{said!r} is not in {request.body!r}"
        places = [name for name, value in request.headers.items() if _KEY in value]
        _same(1, len(places))
        assert _KEY.encode() not in request.body


async def check_stream(kit: DialectKit) -> None:
    """Text comes in pieces between a start and a finish, the same wherever the bytes are cut."""
    deltas = await kit.deltas(kit.fake([say(_WARM)]), stream=True)
    assert isinstance(deltas[0], Start), deltas
    assert isinstance(deltas[-1], Finish), deltas
    pieces = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(pieces) > 1, "the text came at once"
    _same(_WARM, "".join(pieces))
    chunks = _bytes_of(kit, say(_WARM, calls=[_ROME], reasoning="Hm."), stream=True)
    whole = _read(kit, [b"".join(chunks)])
    _same(whole, _read(kit, chunks))
    _same(whole, _read(kit, [bytes([byte]) for byte in b"".join(chunks)]))


async def check_tools(kit: DialectKit) -> None:
    """A tool is offered, its call comes back whole, and its result is taken with the next turn."""
    await _tool_story(kit, [_ROME])


async def check_parallel_tools(kit: DialectKit) -> None:
    """Two calls of one reply stay apart and in order, and so do their results."""
    await _tool_story(kit, [_ROME, _OSLO])


async def check_reasoning(kit: DialectKit) -> None:
    """Thinking comes apart from the text, and a history that holds it is taken."""
    for stream in _MODES:
        fake = kit.fake([say(_WARM, reasoning="Let me look."), say("Bye.")])
        deltas = await kit.deltas(fake, stream=stream, messages=[_user()])
        thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
        _same("Let me look.", thought)
        reply = assemble(deltas)
        _same((_WARM, "Let me look."), (reply.message.content, reply.message.reasoning))
        history = [_user(), _said(reply), _user("Thanks.")]
        _same("Bye.", (await kit.ask(fake, stream=stream, messages=history)).message.content)


async def check_images(kit: DialectKit) -> None:
    """An image is sent, or refused by its place; never left out."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}}
    text = {"type": "text", "text": "What is this?"}
    fake = kit.fake([say("A dot.")])
    try:
        reply = await kit.ask(fake, messages=[{"role": "user", "content": [text, image]}])
    except CannotEncode as error:
        assert (error.param or "").startswith("messages[0]"), f"it names {error.param!r}"
        return
    _same("A dot.", reply.message.content)
    assert _PNG.encode() in fake.requests[0].body, "the image was left out"


async def check_structured_output(kit: DialectKit) -> None:
    """A JSON schema is sent, and the JSON comes back as it was said."""
    schema = {
        "type": "object",
        "properties": {"degrees_of_warmth": {"type": "integer"}},
        "required": ["degrees_of_warmth"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "warmth", "schema": schema}}
    for stream in _MODES:
        fake = kit.fake([say('{"degrees_of_warmth": 30}')])
        reply = await kit.ask(fake, stream=stream, response_format=wanted)
        _same('{"degrees_of_warmth": 30}', reply.message.content)
        body = json.loads(fake.requests[0].body)
        assert _holds(body, schema), f"the schema is not in {body}"


async def check_usage(kit: DialectKit) -> None:
    """Counts are those that the server told, and none that it did not."""
    told = Usage(
        prompt_tokens=30,
        completion_tokens=12,
        total_tokens=42,
        cached_tokens=10,
        reasoning_tokens=5,
    )
    for stream in _MODES:
        usage = (await kit.ask(kit.fake([say(_WARM, usage=told)]), stream=stream)).usage
        assert usage is not None, "there is no usage"
        counts = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
        _same((30, 12, 42), counts)
        assert usage.cached_tokens in {None, 10}, f"{usage.cached_tokens} cached tokens"
        assert usage.reasoning_tokens in {None, 5}, f"{usage.reasoning_tokens} reasoning tokens"


async def check_errors(kit: DialectKit) -> None:
    """A refusal keeps its status and its words, also inside a good status; keys are not shown."""
    kinds = {400: "invalid_request", 404: "not_found", 429: "rate_limit", 500: "server_error"}
    for stream in _MODES:
        for status, kind in kinds.items():
            error = await _refusal(kit, kit.fake().error(status, "slow down"), stream=stream)
            _same((status, status, kind), (error.status, error.peer_status, error.kind))
            assert "slow down" in error.message, error.message
            _same(status in {429, 500}, error.retryable)
        inside = msgspec.structs.replace(kit.fake().error(500, "it broke"), status=200)
        error = await _refusal(kit, inside, stream=stream)
        assert "it broke" in error.message, error.message
        try:
            await kit.ask(kit.fake([say(_WARM)], key=_KEY), stream=stream, api_key="sk-wrong-one")
        except ProviderError as refused:
            _same("authentication", refused.kind)
            assert "sk-wrong-one" not in f"{refused} {refused.payload}", "the key is shown"
        else:
            raise AssertionError("a wrong key was taken: it may be in the wrong place")


async def check_truncation(kit: DialectKit) -> None:
    """A reply cut by its cap says so; one that breaks off is an error, never a shorter reply."""
    for stream in _MODES:
        reply = await kit.ask(kit.fake([say("It is", finish="length")]), stream=stream)
        _same(("It is", "length"), (reply.message.content, reply.finish_reason))
        body = b"".join(_bytes_of(kit, say(_WARM), stream=stream))
        whole = await kit.ask(_saying(kit, body), stream=stream)
        for end in range(len(body)):
            try:
                reply = await kit.ask(_saying(kit, body[:end]), stream=stream)
            except ReplyError:
                continue
            # The mark of its end had come; what may follow tells no more of the message.
            _same(whole.message, reply.message)
            _same(whole.finish_reason, reply.finish_reason)
        try:
            await kit.ask(_saying(kit, body[: len(body) // 2]), stream=stream)
        except TruncatedReply as error:
            _same(("incomplete_stream", 502, True), (error.kind, error.status, error.retryable))
        else:
            raise AssertionError("half a reply was taken for a whole one")


BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {
        "text": check_text,
        "stream": check_stream,
        "tools": check_tools,
        "parallel tools": check_parallel_tools,
        "reasoning": check_reasoning,
        "images": check_images,
        "structured output": check_structured_output,
        "usage": check_usage,
        "errors": check_errors,
        "truncation": check_truncation,
    }
)
"""The contract: a name and a check for each behaviour."""


def _user(text: str = _QUESTION) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _tool() -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks at a thermometer.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }


async def _tool_story(kit: DialectKit, calls: list[ToolCall]) -> None:
    for stream in _MODES:
        fake = kit.fake([say(calls=calls), say(_WARM)])
        reply = await kit.ask(fake, stream=stream, messages=[_user()], tools=[_tool()])
        _same("tool_calls", reply.finish_reason)
        found = reply.message.tool_calls
        _same([call.name for call in calls], [call.name for call in found])
        _same(
            [json.loads(call.arguments) for call in calls],
            [json.loads(call.arguments) for call in found],
        )
        _same(len(calls), len({call.id for call in found if call.id}))
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"{30 - i} degrees"}
            for i, call in enumerate(found)
        ]
        history = [_user(), _said(reply), *results]
        reply = await kit.ask(fake, stream=stream, messages=history, tools=[_tool()])
        _same(_WARM, reply.message.content)
        first, second = (request.body for request in fake.requests)
        assert b"Looks at a thermometer." in first, "the tool was not offered"
        places = [second.find(f"{30 - i} degrees".encode()) for i in range(len(calls))]
        assert -1 not in places, "a result was left out"
        _same(sorted(places), places)


def _said(reply: Reply) -> dict[str, Any]:
    return reply.to_openai()["choices"][0]["message"]


def _bytes_of(kit: DialectKit, reply: Reply, *, stream: bool) -> tuple[bytes, ...]:
    """How the fake says ``reply`` when a request of ours asks for it."""
    target = kit.target()
    hi = request_from_openai({"model": kit.model, "messages": [_user()]})
    wire = target.authorize(target.encode(hi, stream=stream), "k")
    path = "/" + wire.url.split("/", 3)[3]
    answer = kit.fake([reply]).answer(
        FakeRequest(method=wire.method, path=path, headers=wire.headers, body=wire.body)
    )
    _same(200, answer.status)
    return answer.chunks


def _saying(kit: DialectKit, body: bytes) -> Fake:
    return kit.fake([FakeReply(chunks=(body,))])


def _read(kit: DialectKit, chunks: Iterable[bytes]) -> Reply:
    decoder = kit.dialect.codec.decoder(new_id=lambda: "made", now=lambda: 0.0)
    deltas = [delta for chunk in chunks for delta in decoder.feed(chunk)]
    return assemble([*deltas, *decoder.finish()])


async def _refusal(kit: DialectKit, reply: FakeReply, *, stream: bool) -> InferenceError:
    try:
        await kit.ask(kit.fake([reply]), stream=stream)
    except InferenceError as error:
        return error
    raise AssertionError(f"taken for an answer: {reply}")


def _holds(value: Any, wanted: Any) -> bool:
    """Whether ``wanted`` stands somewhere in ``value``."""
    if value == wanted:
        return True
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value).values()
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    return any(_holds(each, wanted) for each in inner)


def _same(expected: Any, actual: Any) -> None:
    assert expected == actual, f"expected {expected!r}, got {actual!r}"
