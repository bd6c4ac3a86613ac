"""Ollama, whatever is said: nothing is lost, any cut reads the same, no bytes break a reader."""

import contextlib
import itertools
import json
from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    Content,
    Delta,
    FunctionCall,
    FunctionTool,
    ImagePart,
    Message,
    Params,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    assemble,
)
from woollama.core.errors import InferenceError, RequestError
from woollama.core.testing.fake import FakeRequest, say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.wire import WireSettings
from woollama.core.wire.ollama import OLLAMA


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
WORDS = st.text(min_size=1, max_size=8)
IMAGES = st.binary(max_size=6).map(
    lambda tail: ImagePart(url="data:image/png;base64," + base64_png(tail))
)


def base64_png(tail: bytes) -> str:
    return msgspec.json.encode(b"\x89PNG\r\n\x1a\n" + tail).decode().strip('"')


@st.composite
def contents(draw: st.DrawFn) -> Content:
    images = draw(st.lists(IMAGES, max_size=2))
    if not images:
        return draw(st.text(max_size=8))
    texts = draw(st.lists(WORDS, max_size=1))
    return (*(TextPart(text=text) for text in texts), *images)


@st.composite
def turns(draw: st.DrawFn, ids: Iterable[int]) -> list[Message]:
    names = draw(st.lists(WORDS, max_size=3))
    calls = tuple(
        ToolCall(
            id=f"c{next(iter(ids))}",
            function=FunctionCall(name=name, arguments=msgspec.json.encode(draw(OBJECTS)).decode()),
        )
        for name in names
    )
    said = AssistantMessage(
        content=draw(st.none() | WORDS), reasoning=draw(st.none() | WORDS), tool_calls=calls
    )
    results = [ToolMessage(tool_call_id=call.id, content=draw(contents())) for call in calls]
    return [UserMessage(content=draw(contents())), said, *draw(st.permutations(results))]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    ids = itertools.count()
    system = draw(st.lists(st.builds(SystemMessage, content=st.text(max_size=8)), max_size=2))
    return (*system, *itertools.chain.from_iterable(draw(st.lists(turns(ids), max_size=3))))


FLOATS = st.floats(-2, 2) | st.integers(-2, 2)
FORMATS = st.just({"type": "json_object"}) | OBJECTS.map(
    lambda schema: {"type": "json_schema", "json_schema": {"name": "format", "schema": schema}}
)
PARAMS = st.builds(
    Params,
    temperature=maybe(FLOATS),
    top_p=maybe(FLOATS),
    max_tokens=maybe(st.integers(1, 2**40)),
    stop=maybe(st.lists(st.text(), max_size=3).map(tuple)),
    seed=maybe(st.integers(-(2**63), 2**63 - 1)),
    presence_penalty=maybe(FLOATS),
    frequency_penalty=maybe(FLOATS),
    logprobs=maybe(st.booleans()),
    top_logprobs=maybe(st.integers(0, 20)),
    response_format=maybe(FORMATS),
    reasoning_effort=maybe(st.sampled_from(["none", "low", "medium", "high", "max"])),
    options=maybe(
        st.dictionaries(st.sampled_from(["num_ctx", "top_k", "min_p"]), st.integers(), min_size=1)
    ),
    keep_alive=maybe(st.sampled_from(["5m", "1h30m", "-1s"]) | st.integers(-1, 9)),
)
TOOLS = st.builds(FunctionTool, name=WORDS, description=maybe(st.text()), parameters=maybe(OBJECTS))
REQUESTS = st.builds(
    ChatRequest,
    model=WORDS,
    messages=conversations(),
    tools=st.lists(TOOLS, max_size=2).map(tuple),
    params=PARAMS,
    stream=st.booleans(),
    extra=st.dictionaries(st.sampled_from(["truncate", "shift"]), st.booleans()),
)


def body(request: ChatRequest, base_url: str = "http://peer.test") -> dict[str, Any]:
    wire = OLLAMA.codec.encode(
        request, base_url=base_url, stream=request.stream, settings=WireSettings()
    )
    return json.loads(wire.body)


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: ChatRequest) -> None:
    assert request == OLLAMA.codec.decode_request(body(request))


@given(REQUESTS, st.sampled_from(["https://ollama.com", "http://cerebras/v1", "http://a/openai"]))
def test_a_1_neither_the_address_nor_the_models_name_changes_the_body(
    request: ChatRequest, base_url: str
) -> None:
    other = msgspec.structs.replace(request, model="gpt-oss")
    assert body(request) | {"model": "gpt-oss"} == body(other, base_url)


@given(REQUESTS)
def test_the_strict_fake_takes_what_is_written(request: ChatRequest) -> None:
    data = json.dumps(body(request)).encode()
    fake = OllamaFake([say("ok")])
    answer = fake.answer(FakeRequest(method="POST", path="/api/chat", body=data))
    assert 200 == answer.status, answer


REPLIES = st.builds(
    say,
    maybe(WORDS),
    reasoning=maybe(WORDS),
    calls=st.lists(
        st.builds(
            ToolCall,
            id=WORDS,
            function=st.builds(
                FunctionCall,
                name=WORDS,
                arguments=OBJECTS.map(lambda value: msgspec.json.encode(value).decode()),
            ),
        ),
        max_size=2,
    ),
)


@given(REPLIES, st.booleans())
def test_what_the_strict_fake_says_is_read_as_it_was_meant(reply: Reply, stream: bool) -> None:
    answer = OllamaFake([reply]).render(reply, {"model": "m", "stream": stream})
    deltas, failure = read(answer.chunks)
    assert failure is None
    assert reply.message == assemble(deltas).message


def read(chunks: Iterable[bytes]) -> tuple[list[Delta], dict[str, Any] | None]:
    counter = itertools.count()
    decoder = OLLAMA.codec.decoder(new_id=lambda: f"id{next(counter)}", now=lambda: 1.0)
    deltas: list[Delta] = []
    try:
        for chunk in chunks:
            deltas.extend(decoder.feed(chunk))
        deltas.extend(decoder.finish())
    except InferenceError as error:
        return deltas, {"kind": error.kind, "message": str(error), "status": error.status}
    return deltas, None


MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "content": st.text() | SCALARS,
        "thinking": st.text() | SCALARS,
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"function": st.fixed_dictionaries({"name": st.text(), "arguments": JSON})},
                optional={"id": st.text()},
            )
            | JSON,
            max_size=2,
        ),
    },
)
LINES = st.fixed_dictionaries(
    {"message": MESSAGES | JSON, "done": st.booleans()},
    optional={
        "model": st.text() | JSON,
        "created_at": st.text() | st.datetimes().map(lambda time: time.isoformat()),
        "done_reason": st.sampled_from(["stop", "length", "load", None]),
        "eval_count": st.integers() | JSON,
        "error": st.just("") | JSON,
    },
)
BREAKS = st.sampled_from([b"\n", b"\r\n", b"\n\n \n", b""])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    payloads = draw(st.lists(LINES, max_size=5))
    written = (json.dumps(p, ensure_ascii=draw(st.booleans())).encode() for p in payloads)
    return b"".join(line + draw(BREAKS) for line in written)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in itertools.pairwise([0, *ends, len(data)])]


@given(streams(), st.lists(st.integers(0, 10_000), max_size=6))
def test_any_cut_of_the_bytes_gives_the_same_deltas(data: bytes, places: list[int]) -> None:
    whole = read([data])
    assert whole == read(cut(data, places))
    assert whole == read(data[i : i + 1] for i in range(len(data)))


@given(st.lists(st.binary(max_size=40) | streams(), max_size=4))
@example([b'{"done":true,"created_at":"9999-12-31T23:59:59-23:59"}'])
@example([b'{"done":true,"created_at":"0001-01-01T00:00:00+23:59"}'])
@example([b'{"a":' * 100_000])
@example([b"[" * 100_000])
@example([b'{"done":true,"eval_count":1e400}'])
@example([b'{"done":true,"model":"\\ud800"}'])
@example([b"\xef\xbb\xbf" * 2])
def test_no_bytes_raise_anything_but_our_errors(chunks: list[bytes]) -> None:
    read(chunks)


@given(st.integers(400, 599), st.binary(max_size=40) | LINES.map(lambda x: json.dumps(x).encode()))
def test_no_bytes_break_the_reading_of_an_error(status: int, data: bytes) -> None:
    error = OLLAMA.codec.decode_error(status, {}, data, now=lambda: 1.0)
    assert (status, True) == (error.peer_status, bool(error.message))


SENT_CALLS = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": st.text() | JSON, "arguments": OBJECTS | JSON})},
    optional={"id": st.text() | JSON},
)
SENT_MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "Tool"]) | JSON},
    optional={
        "content": st.text() | JSON,
        "thinking": JSON,
        "images": st.lists(st.just("iVBORw0KGgo=") | JSON, max_size=2),
        "tool_calls": st.lists(SENT_CALLS | JSON, max_size=2),
        "tool_name": st.text() | JSON,
        "tool_call_id": st.text() | JSON,
        "name": JSON,
    },
)
SENT_BODIES = st.fixed_dictionaries(
    {"model": st.just("m") | JSON, "messages": st.lists(SENT_MESSAGES, max_size=4)},
    optional=dict.fromkeys(("stream", "format", "options", "think", "tools", "seed"), JSON),
)


@given(SENT_BODIES | OBJECTS)
def test_no_body_of_a_client_raises_anything_but_our_errors(sent: dict[str, Any]) -> None:
    with contextlib.suppress(RequestError):
        OLLAMA.codec.decode_request(sent)
