"""What holds for any request and any bytes: nothing is lost, nothing but our errors is raised."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    Delta,
    FilePart,
    FunctionCall,
    FunctionTool,
    ImagePart,
    Message,
    NamedTool,
    OtherTool,
    Params,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.errors import InferenceError, RequestError
from woollama.core.testing.golden import Case, canonical_error, canonical_events, load_cases
from woollama.core.wire import WireSettings
from woollama.core.wire.anthropic import ANTHROPIC

FIXTURES = Path(__file__).parents[2] / "fixtures" / "dialects" / "anthropic"
STREAMS = [case for case in load_cases(FIXTURES) if case.kind == "stream"]
NOW = 1_750_000_000.0

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: bool(text.strip())
)
names = st.text("abcXYZ019_-", min_size=1, max_size=8)
marks: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"cache_control": {"type": "ephemeral"}}]
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2)


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | words, nested, max_leaves=4
)
objects = st.dictionaries(words, anything, max_size=2)
texts = st.builds(TextPart, text=words, extra=marks)
images = st.builds(
    ImagePart,
    url=st.sampled_from(["data:image/png;base64,iVBORw0=", "https://example.org/a.png"]),
    extra=marks,
)
files = st.builds(
    FilePart,
    filename=st.none() | words,
    file_data=st.sampled_from(
        ["data:application/pdf;base64,JVBERi0=", "data:text/plain;base64,R3LDvMOfZQ=="]
    ),
    extra=marks,
)


def content(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Text, or parts; one plain text is a string."""
    several = st.lists(st.one_of(texts, *parts), min_size=2, max_size=3).map(tuple)
    return words | several | st.tuples(st.builds(TextPart, text=words, extra=marks.filter(bool)))


def thinking(said: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": said, "signature": "c2ln"}


@st.composite
def rounds(draw: st.DrawFn, ids: "itertools.count[int]") -> list[Message]:
    """A question, perhaps calls and their results, an answer; calls are numbered."""
    calls = [
        ToolCall(
            id=f"toolu_{next(ids)}",
            function=FunctionCall(name=draw(names), arguments=_text(draw(objects))),
            extra_content=draw(st.none() | st.just({"anthropic": {"caller": {"type": "direct"}}})),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    thought = draw(st.none() | words)
    turn: list[Message] = [UserMessage(content=draw(content(images, files)))]
    if calls:
        turn.append(
            AssistantMessage(
                content=draw(st.none() | content()),
                tool_calls=tuple(calls),
                reasoning=thought,
                opaque={"anthropic": (thinking(thought),)} if thought else {},
            )
        )
        turn += [
            ToolMessage(
                tool_call_id=call.id,
                content=draw(st.just("") | content(images)),
                is_error=draw(st.booleans()),
                extra=draw(marks),
            )
            for call in calls
        ]
    else:
        turn.append(AssistantMessage(content=draw(content())))
    return turn


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", **schema}


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}


tools = st.builds(
    FunctionTool,
    name=names,
    description=st.none() | words,
    parameters=st.builds(object_schema, objects),
    strict=st.none() | st.booleans(),
    extra=marks,
) | st.just(OtherTool(type="bash_20250124", raw={"type": "bash_20250124", "name": "bash"}))


@st.composite
def requests(draw: st.DrawFn) -> ChatRequest:
    """Requests that the table says are converted without loss."""
    ids = itertools.count(1)
    system = draw(st.none() | content())
    messages: list[Message] = [] if system is None else [SystemMessage(content=system)]
    for _ in range(draw(st.integers(1, 3))):
        messages += draw(rounds(ids))
    offered = tuple(draw(st.lists(tools, max_size=2)))
    named = st.builds(NamedTool, name=names)
    choice: Any = draw(st.sampled_from([None, "auto", "none", "required"]) | named)
    choosable = bool(offered) and choice not in (None, "none")
    ratio = st.none() | st.floats(0, 1)
    return ChatRequest(
        model=draw(names),
        messages=tuple(messages),
        tools=offered,
        tool_choice=choice if offered else None,
        params=Params(
            temperature=draw(ratio),
            top_p=draw(ratio),
            max_tokens=draw(st.integers(1, 10**6)),
            stop=draw(st.none() | st.lists(words, min_size=1, max_size=2).map(tuple)),
            response_format=draw(st.none() | st.builds(response_format, objects)),
            parallel_tool_calls=draw(st.sampled_from([None, False])) if choosable else None,
            reasoning_effort=draw(st.none() | st.sampled_from(["low", "max"])),
            user=draw(st.none() | words),
        ),
        stream=draw(st.booleans()),
        extra=draw(st.sampled_from([{}, {"top_k": 40, "speed": "fast"}])),
    )


@given(requests())
def test_what_is_encoded_decodes_to_itself(request: ChatRequest) -> None:
    wire = ANTHROPIC.codec.encode(
        request,
        base_url="http://peer.test/v1",
        stream=request.stream,
        settings=WireSettings(replay_reasoning=True),
    )
    decoded = ANTHROPIC.codec.decode_request(msgspec.json.decode(wire.body))
    assert request == decoded
    assert () == wire.dropped


def decode(chunks: list[bytes]) -> tuple[list[Delta], InferenceError | None]:
    count = itertools.count(1)
    decoder = ANTHROPIC.codec.decoder(new_id=lambda: f"id{next(count)}", now=lambda: NOW)
    deltas: list[Delta] = []
    try:
        for chunk in chunks:
            deltas += decoder.feed(chunk)
            if decoder.done:
                break
        deltas += decoder.finish()
    except InferenceError as error:
        return deltas, error
    return deltas, None


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.path.name)
@given(places=st.lists(st.integers(0, 10_000), max_size=8))
def test_any_cut_of_the_bytes_gives_the_same_deltas(case: Case, places: list[int]) -> None:
    once, first = decode([case.body])
    cut_up, second = decode(cut(case.body, places))
    assert list(canonical_events(once, first)) == list(canonical_events(cut_up, second))
    assert (first is None) is (second is None)


def typed(kind: Any, rest: dict[str, Any]) -> dict[str, Any]:
    return {**rest, "type": kind}


def framed(many: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: %s\n\n" % msgspec.json.encode(one) for one in many)


def events() -> st.SearchStrategy[bytes]:
    """Events that look like the API's, with anything in their places."""
    starts = ["message_start", "content_block_start", "content_block_delta"]
    ends = ["content_block_stop", "message_delta", "message_stop", "error", "ping"]
    blocks = ["text", "thinking", "redacted_thinking", "tool_use"]
    deltas = ["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]
    keys = ["text", "thinking", "signature", "data", "id", "name", "input", "partial_json", "usage"]
    places = ["message", "content_block", "delta", "usage", "index", "error"]
    inner = st.dictionaries(st.sampled_from(keys), anything, max_size=3)
    block = st.builds(typed, st.sampled_from([*blocks, *deltas]) | anything, inner)
    fields = st.dictionaries(st.sampled_from(places), block | anything, max_size=4)
    event = st.builds(typed, st.sampled_from([*starts, *ends]) | anything, fields)
    return st.lists(event, max_size=6).map(framed)


@given(st.binary(max_size=200) | events(), st.lists(st.integers(0, 400), max_size=3))
def test_no_bytes_raise_anything_but_our_errors(data: bytes, places: list[int]) -> None:
    deltas, error = decode(cut(data, places))
    if error is not None:
        assert canonical_error(error)["kind"]
    else:
        assert deltas


blocks = st.dictionaries(
    st.sampled_from(["type", "text", "source", "id", "name", "input", "tool_use_id", "content"]),
    st.sampled_from(["text", "image", "document", "tool_use", "tool_result", "thinking"])
    | anything,
    max_size=4,
)
turns = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": words | st.lists(blocks | anything, max_size=3) | anything,
    }
)
fields = st.dictionaries(
    st.sampled_from(
        [
            "max_tokens",
            "metadata",
            "output_config",
            "stop_sequences",
            "stream",
            "system",
            "temperature",
            "thinking",
            "tool_choice",
            "tools",
        ]
    ),
    anything,
    max_size=3,
)


def fault_in(body: Mapping[str, Any]) -> RequestError | None:
    try:
        request = ANTHROPIC.codec.decode_request(body)
        ANTHROPIC.codec.encode(
            request, base_url="http://peer.test", stream=False, settings=WireSettings()
        )
    except RequestError as error:
        return error
    return None


@given(fields, st.lists(turns | anything, max_size=3))
def test_any_body_is_a_request_or_names_what_is_wrong(
    body: dict[str, Any], said: list[Any]
) -> None:
    fault = fault_in({"model": "m", "messages": said, **body})
    assert fault is None or fault.param
