"""No reply makes us keep without end: lines, events, arguments, calls and the whole have limits."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.core.wire.exchange import read
from tests.core.wire.peers import NAMES, wire_chunks
from woollama.core.canonical import (
    Delta,
    FunctionCall,
    OpaqueDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    assemble,
)
from woollama.core.canonical import assembly as assembly_module
from woollama.core.errors import ReplyError
from woollama.core.testing.fake import say
from woollama.core.wire import DIALECTS, chat_calls, framing, ndjson, sse
from woollama.core.wire.chat_calls import LIMIT_CALLS

LIMIT = 4000
TALK = say("word " * 2000)
LONG = json.dumps({"text": "x " * 5000})
CALL = ToolCall(id="call_1", function=FunctionCall(name="f", arguments=LONG))
CALLING = say(calls=[CALL])
CHAT = [name for name in NAMES if name in {"compatible", "cerebras"}]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the named limits ``LIMIT``."""

    def set_limits(*names: str) -> None:
        for module in (chat_calls, framing, ndjson, sse):
            for name in names:
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, LIMIT)

    return set_limits


def failure(name: str, chunks: Iterable[bytes]) -> str:
    said, error = read(DIALECTS[name], chunks)
    assert isinstance(error, ReplyError), said
    return error.message


@pytest.mark.parametrize("name", NAMES)
def test_a_line_or_event_without_end_is_refused(
    name: str, small_limits: Callable[..., None]
) -> None:
    small_limits("LIMIT_BYTES")
    head = wire_chunks(name, TALK)[0]
    message = failure(name, [head, *(b"data: {" if i == 0 else b" " * 100 for i in range(100))])
    kind = "line" if name == "ollama" else "event"
    assert f"One {kind} of the reply is longer than {LIMIT} bytes." == message


@pytest.mark.parametrize("name", NAMES)
def test_an_object_without_end_is_refused(name: str, small_limits: Callable[..., None]) -> None:
    small_limits("LIMIT_BYTES")
    message = failure(name, [b"{", *(b" " * 100 for _ in range(100))])
    # An object of Ollama's is a line.
    assert f"longer than {LIMIT} bytes" in message


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_without_end_is_refused(name: str, small_limits: Callable[..., None]) -> None:
    small_limits("LIMIT_STREAM_BYTES")
    chunks = wire_chunks(name, TALK)
    assert sum(map(len, chunks)) > LIMIT
    assert f"The reply is longer than {LIMIT} bytes." == failure(name, chunks)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_without_end_are_refused(name: str, small_limits: Callable[..., None]) -> None:
    small_limits("LIMIT_ARGUMENTS")
    message = failure(name, wire_chunks(name, CALLING))
    assert f"The arguments of the calls are longer than {LIMIT} characters." == message


def fragments(of: Callable[[int], dict[str, Any]], count: int) -> Iterator[bytes]:
    for i in range(count):
        choice = {"index": 0, "delta": {"tool_calls": [of(i)]}}
        yield b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"


@pytest.mark.parametrize("name", CHAT)
def test_arguments_of_a_call_that_is_never_named_are_refused_too(
    name: str, small_limits: Callable[..., None]
) -> None:
    small_limits("LIMIT_ARGUMENTS")
    pieces = fragments(lambda _: {"index": 0, "function": {"arguments": "x" * 100}}, 100)
    assert f"longer than {LIMIT} characters" in failure(name, pieces)


@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize("key", ["index", "id"])
def test_calls_without_end_are_refused(name: str, key: str) -> None:
    def call(i: int) -> dict[str, Any]:
        return {key: i if key == "index" else f"call_{i}", "function": {"name": "f"}}

    _, error = read(DIALECTS[name], fragments(call, LIMIT_CALLS))
    assert error is not None
    assert "stream ended before a finish reason" == error.message
    message = failure(name, fragments(call, LIMIT_CALLS + 1))
    assert f"The reply calls more than {LIMIT_CALLS} tools." == message


CALLS = [ToolCallDelta(index, "c", "f") for index in range(100)]


@pytest.mark.parametrize(
    "deltas",
    [
        [TextDelta("x" * 100)] * 100,
        [OpaqueDelta("compatible", "reasoning_details", "x" * 100)] * 100,
        [OpaqueDelta("compatible", "logprobs", {"content": ["x" * 100]})] * 100,
        [OpaqueDelta("responses", "item", {})] * 100,
        CALLS,
    ],
    ids=["text", "details", "logprobs", "items", "calls"],
)
def test_what_a_whole_reply_adds_up_to_has_a_limit(
    deltas: list[Delta], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly_module, "LIMIT_CHARACTERS", LIMIT)
    with pytest.raises(ReplyError, match=f"longer than {LIMIT} characters"):
        assemble(deltas)
