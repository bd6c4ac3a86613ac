"""What holds of every request to and every reply of the Responses API."""

import json
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.exchange import BASE_URL, deltas_of, read, stream
from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FilePart,
    FunctionCall,
    FunctionTool,
    ImagePart,
    Message,
    NamedTool,
    Params,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    assemble,
)
from woollama.core.testing.golden import canonical_events
from woollama.core.wire import WireSettings
from woollama.core.wire.responses import RESPONSES

texts = st.text(max_size=12)
words = st.text(min_size=1, max_size=8)
schemas: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(words, st.just({"type": "string"}))}
)
parts = st.one_of(
    st.builds(TextPart, text=texts),
    st.builds(ImagePart, url=words, detail=st.sampled_from([None, "low", "high"])),
    st.builds(FilePart, filename=words, file_data=words),
)
contents = st.one_of(texts, st.lists(parts, min_size=1, max_size=3).map(tuple))
calls = st.builds(ToolCall, id=words, function=st.builds(FunctionCall, name=words, arguments=texts))


def _says_something(message: AssistantMessage) -> bool:
    return bool(message.content or message.refusal or message.tool_calls)


turns = st.builds(
    AssistantMessage,
    content=st.one_of(st.none(), words),
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    refusal=st.one_of(st.none(), words),
).filter(_says_something)
users = st.builds(UserMessage, content=contents)
results = st.builds(ToolMessage, tool_call_id=words, content=contents)
formats: st.SearchStrategy[Any] = st.one_of(
    st.just({"type": "json_object"}),
    st.fixed_dictionaries(
        {
            "type": st.just("json_schema"),
            "json_schema": st.fixed_dictionaries({"name": words, "schema": schemas}),
        }
    ),
)
params = st.builds(
    Params,
    temperature=st.one_of(st.none(), st.floats(0, 2)),
    top_p=st.one_of(st.none(), st.floats(0, 1)),
    max_tokens=st.one_of(st.none(), st.integers(1, 9999)),
    seed=st.one_of(st.none(), st.integers(0, 9)),
    stop=st.one_of(st.none(), st.tuples(words)),
    parallel_tool_calls=st.one_of(st.none(), st.booleans()),
    response_format=st.one_of(st.none(), formats),
    reasoning_effort=st.one_of(st.none(), st.sampled_from(["low", "high"])),
    prompt_cache_key=st.one_of(st.none(), words),
    metadata=st.one_of(st.none(), st.dictionaries(words, words, min_size=1)),
    user=st.one_of(st.none(), words),
)
tools = st.builds(
    FunctionTool,
    name=words,
    description=st.one_of(st.none(), texts),
    parameters=schemas,
    strict=st.booleans(),
)


def _conversation(system: str, others: list[Message], first: Message) -> tuple[Message, ...]:
    # Two turns of the assistant in a row may be one turn in two items.
    kept: list[Message] = [SystemMessage(content=system)] if system else []
    kept.append(first)
    for message in others:
        both = isinstance(message, AssistantMessage) and isinstance(kept[-1], AssistantMessage)
        if not both:
            kept.append(message)
    return tuple(kept)


conversations = st.builds(
    _conversation, texts, st.lists(st.one_of(users, turns, results), max_size=5), users
)
requests = st.builds(
    ChatRequest,
    model=words,
    messages=conversations,
    tools=st.lists(tools, max_size=2).map(tuple),
    tool_choice=st.one_of(
        st.none(), st.sampled_from(["auto", "none", "required"]), st.builds(NamedTool, name=words)
    ),
    params=params,
    stream=st.just(True),
    extra=st.dictionaries(
        st.sampled_from(["include", "truncation", "verbosity", "service_tier"]),
        st.sampled_from(["a", "b"]),
    ),
)


@given(requests)
def test_decoding_what_was_encoded_gives_the_request_back(request: ChatRequest) -> None:
    wire = RESPONSES.codec.encode(request, base_url=BASE_URL, stream=True, settings=WireSettings())
    again = RESPONSES.codec.decode_request(json.loads(wire.body))
    # That nothing is stored is said in every request.
    extra = {key: value for key, value in again.extra.items() if key != "store"}
    assert msgspec.to_builtins(request) == msgspec.to_builtins(
        msgspec.structs.replace(again, extra=extra)
    )


def _output(reply: Reply) -> list[dict[str, Any]]:
    message = reply.message
    items: list[dict[str, Any]] = []
    if message.reasoning:
        summary = [{"type": "summary_text", "text": message.reasoning}]
        items.append({"type": "reasoning", "id": "rs", "summary": summary})
    content: list[dict[str, Any]] = []
    if message.content:
        content.append({"type": "output_text", "text": message.content})
    if message.refusal:
        content.append({"type": "refusal", "refusal": message.refusal})
    if content:
        items.append({"type": "message", "id": "msg", "content": content})
    for i, call in enumerate(message.tool_calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
        )
    return items


def _pieces(index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"output_index": index, "item_id": item["id"]}
    match item["type"]:
        case "reasoning":
            texts = [("reasoning_summary_text", 0, item["summary"][0]["text"])]
        case "message":
            kinds = {"output_text": "text", "refusal": "refusal"}
            texts = [
                (part["type"], i, part[kinds[part["type"]]])
                for i, part in enumerate(item["content"])
            ]
        case _:
            texts = [("function_call_arguments", 0, item["arguments"])]
    return [
        {"type": f"response.{name}.delta", **at, "content_index": part, "delta": piece}
        for name, part, text in texts
        for piece in (text[: len(text) // 2], text[len(text) // 2 :])
    ]


def _finished(reply: Reply) -> Reply:
    reason = "tool_calls" if reply.message.tool_calls else "stop"
    return msgspec.structs.replace(reply, finish_reason=reason)


def _call_id(call: ToolCall) -> str:
    return call.id


replies = st.builds(
    Reply,
    id=words,
    created=st.integers(0, 2**40),
    model=words,
    message=st.builds(
        AssistantMessage,
        content=st.one_of(st.none(), words),
        reasoning=st.one_of(st.none(), words),
        refusal=st.one_of(st.none(), words),
        tool_calls=st.lists(
            st.builds(
                ToolCall, id=words, function=st.builds(FunctionCall, name=words, arguments=words)
            ),
            max_size=3,
            unique_by=_call_id,
        ).map(tuple),
    ),
    finish_reason=st.just(""),
    native_finish_reason=st.just("completed"),
    usage=st.one_of(
        st.none(),
        st.builds(
            Usage,
            prompt_tokens=st.integers(0, 9),
            completion_tokens=st.integers(0, 9),
            total_tokens=st.integers(0, 18),
        ),
    ),
).map(_finished)


def _response(reply: Reply, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = reply.usage
    return {
        "id": reply.id,
        "created_at": reply.created,
        "model": reply.model,
        "status": "completed",
        "output": output,
        "usage": usage
        and {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        },
    }


@given(replies, st.data())
def test_a_reply_is_the_same_from_whichever_sources_it_comes(reply: Reply, data: Any) -> None:
    """RE-1, R-15, R-16: whole, or in events of which any may be missing but one source's."""
    items = _output(reply)
    whole = json.dumps(_response(reply, items)).encode()
    assert reply == assemble(deltas_of(RESPONSES, whole))
    finished = data.draw(st.booleans(), label="items finish")
    ends_empty = finished and data.draw(st.booleans(), label="terminal output is empty")
    said = data.draw(st.booleans(), label="deltas come")
    begin = data.draw(st.booleans(), label="items begin")
    events: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        bare = {key: item[key] for key in item if key in {"type", "id", "call_id", "name"}}
        if begin or said:
            events.append(
                {"type": "response.output_item.added", "output_index": index, "item": bare}
            )
        if said:
            events.extend(_pieces(index, item))
        if finished:
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
    terminal = _response(reply, [] if ends_empty else items)
    streamed = stream(*events, {"type": "response.completed", "response": terminal})
    if events:
        created = {"type": "response.created", "response": _response(reply, [])}
        streamed = stream(created) + streamed
    assert reply == assemble(deltas_of(RESPONSES, streamed))


REPLY = stream(
    {"type": "response.created", "response": {"id": "r", "created_at": 1, "model": "m"}},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "Grüße 🎈"},
    {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
    },
    {"type": "response.completed", "response": {"status": "completed", "output": []}},
)


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.integers(0, 10_000), max_size=8), st.booleans(), st.integers(0, 200))
def test_any_cut_of_the_bytes_gives_the_same_deltas(
    places: list[int], carriage_returns: bool, missing: int
) -> None:
    data = REPLY.replace(b"\n", b"\r\n") if carriage_returns else REPLY
    data = data[: len(data) - missing]
    (expected, error), (found, other) = read(RESPONSES, [data]), read(RESPONSES, _cut(data, places))
    assert list(canonical_events(expected, error)) == list(canonical_events(found, other))


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3))


plain: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts
)
json_values = st.recursive(plain, _nested, max_leaves=6)
kinds = st.sampled_from(
    [
        "response.created",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "error",
    ]
)
item_kinds = st.sampled_from(["message", "reasoning", "function_call", "other"])
Json = dict[str, Any]


def _fields(*names: str) -> st.SearchStrategy[Json]:
    return st.dictionaries(st.sampled_from(names), json_values)


def _item(kind: str, fields: Json) -> Json:
    return {"type": kind, **fields}


def _event(kind: str, fields: Json, item: Json | None, items: list[Json], rest: Json) -> Json:
    event = {"type": kind, **fields, "response": {**rest, "output": items}}
    return event if item is None else {**event, "item": item}


def _bytes(events: list[Json]) -> bytes:
    return stream(*events)


def _whole(items: list[Json]) -> Json:
    return {"output": items}


odd_items = st.builds(
    _item,
    item_kinds,
    _fields("id", "call_id", "name", "content", "summary", "arguments", "encrypted_content"),
)
odd_events = st.builds(
    _event,
    kinds,
    _fields("output_index", "content_index", "item_id", "delta", "text", "error", "item"),
    st.one_of(st.none(), odd_items),
    st.lists(odd_items, max_size=3),
    _fields("id", "usage", "status", "created_at", "incomplete_details"),
)


@given(st.one_of(st.binary(max_size=200), st.lists(odd_events, max_size=6).map(_bytes)))
def test_no_bytes_make_the_decoder_raise_anything_but_our_errors(data: bytes) -> None:
    read(RESPONSES, [data])
    read(RESPONSES, [b"data: " + data + b"\n\n"])


@given(st.one_of(json_values, st.lists(odd_items).map(_whole)))
def test_no_object_makes_the_decoder_raise_anything_but_our_errors(value: Any) -> None:
    read(RESPONSES, [json.dumps(value).encode()])
