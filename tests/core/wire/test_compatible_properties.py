"""Chat Completions, whatever is said: nothing is lost, and any cut reads the same."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.cutting import CUTS, pieces_of, singles
from tests.core.wire.exchange import read
from tests.core.wire.peers import wire_reply
from woollama.core.canonical import (
    AssistantMessage,
    AudioPart,
    ChatRequest,
    FilePart,
    FunctionCall,
    FunctionTool,
    ImagePart,
    Message,
    NamedTool,
    OtherChoice,
    OtherPart,
    OtherTool,
    Params,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.testing.fake import say
from woollama.core.wire import WireSettings
from woollama.core.wire.chat import COMPATIBLE

words = st.text(min_size=1, max_size=8)
scalars = st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(words, scalars, max_size=3)
# What no one knows travels with what it stands beside.
marks = st.sampled_from([{}, {"vendor": {"a": [1]}}, {"cache_control": {"type": "ephemeral"}}])
details: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.just("reasoning.text"), "text": words}
)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


parts = st.one_of(
    st.builds(TextPart, text=st.text(), extra=marks),
    st.builds(ImagePart, url=words, detail=st.sampled_from([None, "low"]), extra=marks),
    st.builds(AudioPart, data=words, format=st.just("wav"), extra=marks),
    st.builds(FilePart, filename=maybe(words), file_data=words, extra=marks),
    st.builds(OtherPart, type=st.just("video"), raw=st.just({"type": "video", "url": "x"})),
)
contents = st.text() | st.lists(parts, max_size=3).map(tuple)
calls = st.builds(
    ToolCall,
    id=st.text(),
    function=st.builds(FunctionCall, name=words, arguments=st.text()),
    extra_content=maybe(objects),
)
messages: st.SearchStrategy[Message] = st.one_of(
    # `developer` is sent as `system` (OC-1).
    st.builds(SystemMessage, content=contents, extra=marks),
    st.builds(UserMessage, content=contents, extra=marks),
    st.builds(
        AssistantMessage,
        content=maybe(contents),
        tool_calls=st.lists(calls, max_size=2).map(tuple),
        reasoning=maybe(words),
        refusal=maybe(words),
        reasoning_details=st.lists(details, max_size=2).map(tuple),
        extra=marks,
    ),
    st.builds(ToolMessage, tool_call_id=st.text(), content=contents, extra=marks),
)
numbers = st.floats(-2, 2) | st.integers(-2, 2)
params = st.builds(
    Params,
    temperature=maybe(numbers),
    top_p=maybe(numbers),
    max_tokens=maybe(st.integers(0, 10**9)),
    stop=maybe(st.lists(words, max_size=3).map(tuple)),
    seed=maybe(st.integers(-(2**63), 2**63 - 1)),
    presence_penalty=maybe(numbers),
    frequency_penalty=maybe(numbers),
    n=maybe(st.integers(1, 3)),
    logprobs=maybe(st.booleans()),
    top_logprobs=maybe(st.integers(0, 20)),
    response_format=maybe(objects),
    parallel_tool_calls=maybe(st.booleans()),
    reasoning_effort=maybe(words),
    prompt_cache_key=maybe(words),
    metadata=maybe(objects),
    user=maybe(words),
)
tools = st.builds(
    FunctionTool,
    name=words,
    description=maybe(st.text()),
    parameters=maybe(objects),
    strict=maybe(st.booleans()),
    extra=marks,
) | st.just(OtherTool(type="web_search", raw={"type": "web_search", "near": "me"}))
choices = st.one_of(
    st.sampled_from([None, "auto", "none", "required"]),
    st.builds(NamedTool, name=words),
    st.just(OtherChoice(raw={"type": "allowed_tools", "mode": "auto"})),
)
requests = st.builds(
    ChatRequest,
    model=words,
    messages=st.lists(messages, max_size=4).map(tuple),
    tools=st.lists(tools, max_size=2).map(tuple),
    tool_choice=choices,
    params=params,
    stream=st.booleans(),
    extra=st.dictionaries(st.sampled_from(["verbosity", "logit_bias", "vendor"]), scalars),
)


def encode(request: ChatRequest) -> dict[str, Any]:
    settings = WireSettings(stream_usage=False)
    wire = COMPATIBLE.codec.encode(
        request, base_url="http://peer.test/v1", stream=request.stream, settings=settings
    )
    return json.loads(wire.body)


@given(requests)
def test_a_request_is_read_as_it_was_written(request: ChatRequest) -> None:
    assert request == COMPATIBLE.codec.decode_request(encode(request))


replies = st.builds(
    say,
    maybe(words),
    reasoning=maybe(words),
    calls=st.lists(calls, max_size=2),
    finish=st.sampled_from([None, "length", "content_filter"]),
)


@given(replies, st.booleans(), CUTS, st.integers(0, 60))
def test_any_cut_of_the_bytes_gives_the_same_deltas(
    reply: Any, stream: bool, cuts: list[int], missing: int
) -> None:
    data = wire_reply("compatible", reply, stream=stream)
    data = data[: len(data) - missing]
    whole = _told(read(COMPATIBLE, [data]))
    for chunks in (pieces_of(data, cuts), singles(data), itertools.chain(singles(data), [b""])):
        assert whole == _told(read(COMPATIBLE, chunks))


def _told(found: tuple[list[Any], Exception | None]) -> tuple[list[Any], str]:
    deltas, error = found
    return deltas, f"{type(error).__name__}: {error}"
