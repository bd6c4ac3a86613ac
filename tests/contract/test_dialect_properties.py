"""Every dialect, whatever comes: requests survive, cuts change nothing, no bytes break a reader."""

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    Delta,
    FunctionCall,
    FunctionTool,
    Message,
    Params,
    Reply,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    canonical_hash,
)
from woollama.core.errors import InferenceError, RequestError
from woollama.core.testing.fake import FakeRequest, say
from woollama.core.testing.golden import canonical_events
from woollama.core.testing.kits import KITS, DialectKit
from woollama.core.wire import WireSettings
from woollama.core.wire.refusals import asks_for_nothing

every_dialect = pytest.mark.parametrize("kit", KITS.values(), ids=list(KITS))
# A hang is longer than this, on a machine however busy.
in_time = settings(deadline=timedelta(seconds=5), max_examples=40)

# Text of white space alone is no text to every API.
words = st.text(min_size=1, max_size=8).filter(str.strip)
names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=4,
)
objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(words, values, max_size=3)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@st.composite
def _round(draw: st.DrawFn, ids: Iterator[int]) -> list[Message]:
    """A question; calls with their results, or an answer."""
    question = UserMessage(content=draw(words))
    calls = tuple(
        ToolCall(
            id=f"call_{next(ids)}",
            function=FunctionCall(name=draw(names), arguments=_json(draw(objects))),
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    said = AssistantMessage(content=draw(words), tool_calls=calls)
    return [
        question,
        said,
        *(ToolMessage(tool_call_id=call.id, content=draw(words)) for call in calls),
    ]


@st.composite
def requests(draw: st.DrawFn) -> ChatRequest:
    """Requests that every dialect has words for."""
    ids = itertools.count(1)
    messages: list[Message] = draw(st.lists(st.builds(SystemMessage, content=words), max_size=1))
    for _ in range(draw(st.integers(1, 3))):
        messages += draw(_round(ids))
    schema = st.fixed_dictionaries({"type": st.just("object"), "properties": objects})
    tool = st.builds(
        FunctionTool, name=names, description=words, parameters=schema, strict=st.just(False)
    )
    return ChatRequest(
        model=draw(names),
        messages=(*messages, UserMessage(content=draw(words))),
        tools=tuple(draw(st.lists(tool, max_size=2))),
        params=Params(
            temperature=draw(st.none() | st.floats(0, 1)),
            top_p=draw(st.none() | st.floats(0, 1)),
            max_tokens=draw(st.integers(1, 10**6)),
            reasoning_effort=draw(st.sampled_from([None, "low", "high"])),
        ),
        stream=True,
    )


def read_back(kit: DialectKit, request: ChatRequest) -> ChatRequest:
    """What a codec reads of the body that it wrote."""
    codec = kit.dialect.codec
    wire = codec.encode(
        request,
        base_url="http://peer.test/v1",
        stream=True,
        settings=WireSettings(stream_usage=False),
    )
    assert () == wire.dropped
    decoded = codec.decode_request(json.loads(wire.body))
    # A codec may say aloud what the API would assume anyway.
    extra = {
        name: value for name, value in decoded.extra.items() if not asks_for_nothing(name, value)
    }
    return msgspec.structs.replace(decoded, extra=extra)


@every_dialect
@given(requests())
@in_time
def test_a_request_is_read_as_it_was_written(kit: DialectKit, request: ChatRequest) -> None:
    assert request == read_back(kit, request)


@given(requests())
@in_time
def test_p_25_a_11_a_request_has_one_hash_under_every_dialect(request: ChatRequest) -> None:
    hashes = {name: canonical_hash(read_back(kit, request)) for name, kit in KITS.items()}
    assert dict.fromkeys(KITS, canonical_hash(request)) == hashes


calls = st.builds(
    ToolCall,
    id=st.from_regex(r"call_[0-9]{1,4}", fullmatch=True),
    function=st.builds(FunctionCall, name=names, arguments=objects.map(_json)),
)
replies = st.builds(
    say,
    st.none() | words,
    calls=st.lists(calls, max_size=2, unique_by=lambda call: call.id),
    reasoning=st.none() | words,
    finish=st.sampled_from([None, "length"]),
    usage=st.none()
    | st.builds(Usage, prompt_tokens=st.integers(0, 9), completion_tokens=st.just(2)),
)


def said(kit: DialectKit, reply: Reply, *, stream: bool) -> bytes:
    """The bytes in which the strict server says a reply, when it is asked by our codec."""
    target = kit.target()
    request = ChatRequest(model=kit.model, messages=(UserMessage(content="hi"),))
    wire = target.authorize(target.encode(request, stream=stream), "k")
    path = "/" + wire.url.split("/", 3)[3]
    asked = FakeRequest(method=wire.method, path=path, headers=wire.headers, body=wire.body)
    return b"".join(kit.fake([reply]).answer(asked).chunks)


def read(kit: DialectKit, chunks: Iterable[bytes]) -> tuple[list[Delta], InferenceError | None]:
    count = itertools.count(1)
    decoder = kit.dialect.codec.decoder(new_id=lambda: f"made{next(count)}", now=lambda: 1e9)
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


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


places = st.lists(st.integers(0, 100_000), max_size=8)


@every_dialect
@given(replies, st.booleans(), places, st.integers(0, 80), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@in_time
def test_any_cut_of_the_bytes_gives_the_same_events(
    kit: DialectKit, reply: Reply, stream: bool, at: list[int], missing: int, end: bytes
) -> None:
    data = said(kit, reply, stream=stream)
    if data.startswith((b"data:", b"event:")):
        data = data.replace(b"\n", end)
    data = data[: max(0, len(data) - missing)]
    expected = list(canonical_events(*read(kit, [data])))
    for chunks in (cut(data, at), [data[i : i + 1] for i in range(len(data))]):
        assert expected == list(canonical_events(*read(kit, chunks)))


@st.composite
def broken(draw: st.DrawFn, data: bytes) -> bytes:
    """A good reply with some of its bytes taken out, put twice, or replaced."""
    for _ in range(draw(st.integers(1, 4))):
        a, b = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        filling = draw(st.sampled_from([b"", data[a:b] * 2, b"null", b"{}", b"[]", b'"', b"\xff"]))
        data = data[:a] + filling + data[b:]
    return data


@every_dialect
@given(replies, st.booleans(), st.data())
@in_time
def test_no_bytes_raise_anything_but_our_errors(
    kit: DialectKit, reply: Reply, stream: bool, choose: st.DataObject
) -> None:
    good = said(kit, reply, stream=stream)
    data = choose.draw(broken(good) | st.binary(max_size=200))
    found = read(kit, cut(data, choose.draw(places)))
    assert list(canonical_events(*found)) == list(canonical_events(*read(kit, [data])))


def _put(value: Any, path: list[int], what: Any) -> Any:
    """``value`` with something else in one place inside it."""
    if not path or not value:
        return what
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        name = list(fields)[path[0] % len(fields)]
        return {**fields, name: _put(fields[name], path[1:], what)}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        at = path[0] % len(items)
        return [*items[:at], _put(items[at], path[1:], what), *items[at + 1 :]]
    return what


paths = st.lists(st.integers(0, 20), min_size=1, max_size=5)


def _altered(payload: bytes, path: list[int], what: Any) -> bytes:
    start = payload.find(b"{")
    if start < 0:
        return payload
    try:
        value = json.loads(payload[start:])
    except ValueError:
        return payload
    return payload[:start] + json.dumps(_put(value, path, what)).encode()


@every_dialect
@given(replies, st.booleans(), st.lists(st.tuples(st.integers(0, 50), paths, values), max_size=3))
@in_time
def test_no_values_in_good_places_raise_anything_but_our_errors(
    kit: DialectKit, reply: Reply, stream: bool, changes: list[tuple[int, list[int], Any]]
) -> None:
    lines = said(kit, reply, stream=stream).split(b"\n")
    for line, path, what in changes:
        lines[line % len(lines)] = _altered(lines[line % len(lines)], path, what)
    data = b"\n".join(lines)
    bytewise = read(kit, [data[i : i + 1] for i in range(len(data))])
    assert list(canonical_events(*bytewise)) == list(canonical_events(*read(kit, [data])))


@every_dialect
@given(st.integers(400, 599), st.binary(max_size=60) | values.map(lambda v: _json(v).encode()))
@in_time
def test_any_body_of_a_refusal_is_an_error_of_ours(
    kit: DialectKit, status: int, body: bytes
) -> None:
    error = kit.dialect.codec.decode_error(status, {}, body, now=lambda: 1e9)
    assert (status, True) == (error.status, bool(error.message))
    assert json.dumps(error.to_openai())


@every_dialect
@given(st.binary(max_size=60) | values.map(lambda v: _json(v).encode()))
@in_time
def test_any_body_is_a_list_of_models_or_an_error_of_ours(kit: DialectKit, body: bytes) -> None:
    try:
        models = kit.dialect.codec.decode_models(body)
    except InferenceError:
        return
    assert all(isinstance(model.id, str) for model in models)


@every_dialect
@given(requests(), st.lists(st.tuples(paths, values), min_size=1, max_size=3))
@in_time
def test_any_body_is_a_request_or_names_what_is_wrong(
    kit: DialectKit, request: ChatRequest, changes: list[tuple[list[int], Any]]
) -> None:
    codec = kit.dialect.codec
    wire = codec.encode(request, base_url="http://h", stream=True, settings=WireSettings())
    body = json.loads(wire.body)
    for path, what in changes:
        body = _put(body, path, what)
    # Anything else that is raised fails the test.
    with suppress(RequestError):
        codec.decode_request(cast("dict[str, Any]", body))
