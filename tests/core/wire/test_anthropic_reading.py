"""Replies of Anthropic: N-13 to N-16, N-19, and AE-2 to AE-13, AE-21, AE-23."""

import itertools
import json
from typing import Any

import pytest

from woollama.core.canonical import (
    Delta,
    Finish,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Start,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
    assemble,
)
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TruncatedReply
from woollama.core.wire import Decoder
from woollama.core.wire.anthropic import ANTHROPIC
from woollama.core.wire.framing import LIMIT_BYTES

NOW = 1_750_000_000.5
START = Start("msg_1", "claude-x", 1_750_000_000)
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x"}
BEGUN: dict[str, Any] = {"type": "message_start", "message": {**HEAD, "content": [], "usage": None}}
STOPPED: dict[str, Any] = {"type": "message_stop"}
END = Finish("stop", "end_turn")


def new_decoder() -> Decoder:
    count = itertools.count(1)
    return ANTHROPIC.codec.decoder(new_id=lambda: f"id{next(count)}", now=lambda: NOW)


def read(data: bytes) -> tuple[Delta, ...]:
    decoder = new_decoder()
    return (*decoder.feed(data), *decoder.finish())


def frames(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def stream(*events: dict[str, Any]) -> list[Delta]:
    return list(read(frames(*events)))


def failed(*events: dict[str, Any]) -> tuple[list[Delta], InferenceError]:
    decoder = new_decoder()
    deltas = list(decoder.feed(frames(*events)))
    with pytest.raises(InferenceError) as caught:
        decoder.finish()
    return deltas, caught.value


def whole(*content: Any, stop_reason: str | None = "end_turn", **fields: Any) -> list[Delta]:
    reply = {**HEAD, "content": content, "stop_reason": stop_reason, **fields}
    return list(read(json.dumps(reply).encode()))


def start(block: Any, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int = 0, **piece: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": piece}


def stop(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ending(reason: str | None = "end_turn", **fields: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **fields}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(identity: str = "toolu_1", given: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "f", "input": given or {}, **fields}


def test_n_19_a_stream_is_read_as_it_comes() -> None:
    decoder = new_decoder()
    assert (START,) == decoder.feed(frames(BEGUN))
    assert () == decoder.feed(frames(start(text(""))))
    assert (TextDelta("Hel"),) == decoder.feed(frames(delta(type="text_delta", text="Hel")))
    assert (TextDelta("lo"),) == decoder.feed(frames(delta(type="text_delta", text="lo")))
    assert () == decoder.feed(frames(stop(), ending()))
    assert not decoder.done
    assert () == decoder.feed(frames(STOPPED))
    assert decoder.done
    assert (END,) == decoder.finish()


def test_n_13_the_summary_of_thinking_is_the_replys_reasoning() -> None:
    thought = {"type": "thinking", "thinking": "sum", "signature": "c2ln"}
    assert [
        START,
        ReasoningDelta("sum"),
        OpaqueDelta("anthropic", "item", thought),
        TextDelta("ok"),
        END,
    ] == whole(thought, text("ok"))


def test_n_13_blocks_of_thinking_are_joined_with_a_blank_line() -> None:
    said = stream(
        BEGUN,
        start({"type": "thinking", "thinking": "a"}),
        delta(type="thinking_delta", thinking="b"),
        stop(),
        start({"type": "thinking", "thinking": ""}, 1),
        stop(1),
        start({"type": "thinking", "thinking": ""}, 2),
        delta(2, type="thinking_delta", thinking="c"),
        delta(2, type="thinking_delta", thinking="d"),
        stop(2),
        ending(),
        STOPPED,
    )
    assert "ab\n\ncd" == assemble(said).message.reasoning


def test_text_blocks_have_nothing_between_them() -> None:
    assert "ab" == assemble(whole(text("a"), text("b"))).message.content


def test_ru_12_signed_thinking_is_kept_as_an_item_of_the_dialect() -> None:
    said = stream(
        BEGUN,
        start({"type": "thinking", "thinking": "", "signature": ""}),
        delta(type="thinking_delta", thinking="h"),
        delta(type="thinking_delta", thinking="m"),
        delta(type="signature_delta", signature="c2"),
        delta(type="signature_delta", signature="c2ln"),
        stop(),
        start({"type": "redacted_thinking", "data": "xx"}, 1),
        stop(1),
        start({"type": "thinking", "thinking": "unsigned"}, 2),
        stop(2),
        ending(),
        STOPPED,
    )
    assert (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "xx"},
    ) == assemble(said).message.opaque["anthropic"]


def test_ae_4_thinking_that_is_not_shown_is_no_reasoning() -> None:
    said = whole(
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "xx"},
        text("ok"),
    )
    assert not [part for part in said if isinstance(part, ReasoningDelta)]
    assert [TextDelta("ok")] == [part for part in said if isinstance(part, TextDelta)]


def usage_of(*usages: Any) -> Usage | None:
    first, *later = usages
    begun = {"type": "message_start", "message": {**HEAD, "usage": first}}
    deltas = stream(begun, *({**ending(), "usage": usage} for usage in later), STOPPED)
    found = [part.usage for part in deltas if isinstance(part, UsageDelta)]
    return found[0] if found else None


def test_n_14_the_prompt_is_what_was_read_and_written_too() -> None:
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 3},
    }
    assert Usage(
        prompt_tokens=125,
        completion_tokens=7,
        total_tokens=132,
        cached_tokens=100,
        cache_write_tokens=20,
        reasoning_tokens=3,
    ) == usage_of(usage)


def test_n_14_a_reported_0_is_no_unknown() -> None:
    usage = usage_of({"input_tokens": 5, "cache_read_input_tokens": 0, "output_tokens": 1})
    assert usage is not None
    assert (0, None, None) == (usage.cached_tokens, usage.cache_write_tokens, usage.cost)


def test_ae_3_c_6_counts_are_totals_and_a_later_one_replaces() -> None:
    usage = usage_of(
        {"input_tokens": 5, "cache_read_input_tokens": 1, "output_tokens": 1},
        {"input_tokens": 6, "output_tokens": 4},
        {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 2}},
    )
    assert usage is not None
    assert (7, 9, 1, 2) == (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
    )


def test_ae_3_ae_11_null_says_nothing() -> None:
    null = {
        "input_tokens": None,
        "cache_read_input_tokens": None,
        "cache_creation_input_tokens": None,
        "output_tokens": 7,
        "output_tokens_details": None,
    }
    usage = usage_of({"input_tokens": 5, "cache_read_input_tokens": 3}, null)
    assert usage is not None
    assert (8, 3, None) == (usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens)
    assert Usage(completion_tokens=7, total_tokens=7) == usage_of(null)


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None}, "odd", {"input_tokens": True}])
def test_usage_that_is_not_told_is_unknown(usage: Any) -> None:
    assert usage_of(usage, usage) is None


@pytest.mark.parametrize(
    ("native", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("tomorrow", "stop"),
        (None, "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
    ],
)
def test_n_15_ae_7_ae_9_stop_reasons_and_the_native_word(native: str | None, reason: Any) -> None:
    assert Finish(reason, native) == whole(text("a"), stop_reason=native)[-1]
    assert Finish(reason, native) == stream(BEGUN, ending(native), STOPPED)[-1]


@pytest.mark.parametrize(
    ("native", "reason"),
    [
        ("end_turn", "tool_calls"),
        ("pause_turn", "tool_calls"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_c_5_any_call_makes_it_a_turn_of_calls_but_for_cap_and_filter(
    native: str, reason: Any
) -> None:
    assert Finish(reason, native) == whole(call(), stop_reason=native)[-1]


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"type": "refusal", "category": "cyber", "explanation": "Policy."}, "Policy."),
        ({"type": "refusal", "category": "bio", "explanation": None}, "declined: bio"),
        ({"type": "refusal", "category": None, "explanation": ""}, "declined"),
        (None, "declined"),
        ("odd", "declined"),
    ],
)
def test_n_16_a_refusal_says_that_the_model_declined_and_why(details: Any, said: str) -> None:
    ended = [RefusalDelta(said), Finish("content_filter", "refusal")]
    assert [START, *ended] == whole(stop_reason="refusal", stop_details=details)
    assert [START, *ended] == stream(BEGUN, ending("refusal", stop_details=details), STOPPED)


def test_ae_23_the_text_before_a_refusal_stays() -> None:
    message = assemble(whole(text("So"), stop_reason="refusal")).message
    assert ("So", "declined") == (message.content, message.refusal)


def test_ae_2_c_9_pings_and_unknown_events_and_blocks_are_skipped() -> None:
    assert [START, TextDelta("ok"), END] == stream(
        {"type": "ping"},
        BEGUN,
        {"type": "future_event", "foo": 1},
        start({"type": "future_block", "text": "no"}),
        delta(type="future_delta", text="no"),
        stop(),
        start(text("ok"), 1),
        {"type": "ping"},
        stop(1),
        ending(),
        STOPPED,
    )


def test_ae_5_pieces_of_arguments_are_joined_and_never_to_the_start() -> None:
    assert [
        START,
        ToolCallDelta(0, "toolu_1", "f"),
        ToolCallDelta(0, arguments='{"a"'),
        ToolCallDelta(0, arguments=": 1}"),
        Finish("tool_calls", "tool_use"),
    ] == stream(
        BEGUN,
        start(call()),
        delta(type="input_json_delta", partial_json=""),
        delta(type="input_json_delta", partial_json='{"a"'),
        delta(type="input_json_delta", partial_json=": 1}"),
        stop(),
        ending("tool_use"),
        STOPPED,
    )


@pytest.mark.parametrize("pieces", [[], [""], [None], [7]])
def test_ae_5_a_call_without_pieces_has_empty_arguments(pieces: list[Any]) -> None:
    said = stream(
        BEGUN,
        start(call()),
        *(delta(type="input_json_delta", partial_json=piece) for piece in pieces),
        stop(),
        ending("tool_use"),
        STOPPED,
    )
    assert "{}" == assemble(said).message.tool_calls[0].arguments


@pytest.mark.parametrize(
    ("given", "arguments"),
    [({"city": "Åre", "n": 1}, '{"city":"Åre","n":1}'), ("oops", "oops"), ([1], "[1]")],
)
def test_ae_5_c_8_what_a_call_begins_with_stands_when_nothing_follows(
    given: Any, arguments: str
) -> None:
    assert arguments == assemble(whole(call(given=given))).message.tool_calls[0].arguments
    said = stream(BEGUN, start(call(given=given)), stop(), ending("tool_use"), STOPPED)
    assert arguments == assemble(said).message.tool_calls[0].arguments


def test_ae_6_parallel_calls_are_told_apart_by_their_block() -> None:
    said = stream(
        BEGUN,
        start(text("Ok.")),
        stop(),
        start(call("a"), 1),
        start(call("b"), 2),
        delta(2, type="input_json_delta", partial_json='{"n":2}'),
        delta(1, type="input_json_delta", partial_json='{"n":1}'),
        stop(2),
        stop(1),
        ending("tool_use"),
        STOPPED,
    )
    calls = assemble(said).message.tool_calls
    assert [("a", '{"n":1}'), ("b", '{"n":2}')] == [(c.id, c.arguments) for c in calls]


def test_ae_8_server_tools_are_no_calls() -> None:
    server: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    found: dict[str, Any] = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [],
    }
    assert [START, TextDelta("ok"), END] == whole(server, found, text("ok"))
    assert [START, TextDelta("ok"), END] == stream(
        BEGUN,
        start(server),
        delta(type="input_json_delta", partial_json='{"query":"q"}'),
        stop(),
        start(found, 1),
        stop(1),
        start(text(""), 2),
        delta(2, type="text_delta", text="ok"),
        delta(2, type="citations_delta", citation={"type": "web_search_result_location"}),
        stop(2),
        ending(),
        STOPPED,
    )


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"error": {"type": "overloaded_error", "message": "Overloaded"}},
    ],
)
def test_ae_12_an_error_after_200_is_an_error(payload: dict[str, Any]) -> None:
    deltas, error = failed(BEGUN, start(text("par")), payload, ending(), STOPPED)
    assert [START, TextDelta("par")] == deltas
    assert isinstance(error, ProviderError)
    assert ("overloaded", None, "Overloaded", True) == (
        error.kind,
        error.peer_status,
        error.message,
        error.retryable,
    )
    with pytest.raises(ProviderError):
        read(json.dumps(payload).encode())


def test_ae_12_an_error_behind_the_stop_reason_counts_too() -> None:
    broken = {"type": "error", "error": {"type": "api_error", "message": "Oh"}}
    _, error = failed(BEGUN, ending(), broken)
    assert "server_error" == error.kind


@pytest.mark.parametrize("events", [(), (BEGUN,), (BEGUN, start(text("par")), stop())])
def test_ae_13_p_24_a_clean_end_before_a_stop_reason_is_cut_off(events: Any) -> None:
    deltas, error = failed({"type": "ping"}, *events)
    assert isinstance(error, TruncatedReply)
    assert "stream ended before message_stop" == error.message
    assert not [part for part in deltas if isinstance(part, Finish)]


@pytest.mark.parametrize("mark", [ending(), STOPPED])
def test_c_15_a_stop_reason_or_message_stop_is_the_mark(mark: dict[str, Any]) -> None:
    assert "stop" == assemble(stream(BEGUN, start(text("a")), mark)).finish_reason


def test_a_done_of_older_versions_is_no_mark_of_its_own() -> None:
    done = b"data: [DONE]\n\n"
    assert [START, END] == list(read(frames(BEGUN, ending()) + done))
    decoder = new_decoder()
    assert (START,) == decoder.feed(frames(BEGUN) + done)
    with pytest.raises(TruncatedReply):
        decoder.finish()


def test_ae_21_a_server_may_leave_out_the_model_and_the_id() -> None:
    begun = {"type": "message_start", "message": {"role": "assistant", "model": ""}}
    assert Start("msg_id1", None, 1_750_000_000) == stream(begun, STOPPED)[0]


def test_ae_21_a_server_may_leave_out_the_start_and_the_stops() -> None:
    assert [
        Start("msg_id1", None, 1_750_000_000),
        TextDelta("a"),
        ReasoningDelta("b"),
        ToolCallDelta(0, "toolu_id2", ""),
        ToolCallDelta(0, arguments="{}"),
        Finish("tool_calls", "end_turn"),
    ] == stream(
        delta(type="text_delta", text="a"),
        delta(type="signature_delta", signature="c2ln"),
        delta(type="thinking_delta", thinking="b"),
        stop(9),
        start({"type": "tool_use"}, 1),
        delta(1, type="thinking_delta", thinking="no"),
        ending(),
    )


def test_a_block_that_begins_again_has_ended() -> None:
    said = stream(BEGUN, start(call("a", {"n": 1})), start(call("b")), ending("tool_use"), STOPPED)
    calls = assemble(said).message.tool_calls
    assert [("a", '{"n":1}'), ("b", "{}")] == [(c.id, c.arguments) for c in calls]


def test_c_14_the_label_does_not_matter_but_the_first_byte() -> None:
    reply = {**HEAD, "content": [text("ok")], "stop_reason": "end_turn"}
    assert [START, TextDelta("ok"), END] == list(read(b" \n" + json.dumps(reply).encode()))


@pytest.mark.parametrize(
    "data",
    [
        b'{"id":"msg_1","type":"message"}',
        b'{"content":"text"}',
        b"[1]",
        b"data: 7\n\n",
        b'data: {"type"\n\ndata: x\n\n',
        b"<html>502</html>",
    ],
)
def test_what_is_no_reply_is_an_error(data: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        read(data)
    assert "bad_response" == caught.value.kind or isinstance(caught.value, TruncatedReply)


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"type": None}, {"type": ["text"]}])
def test_odd_blocks_say_nothing(odd: Any) -> None:
    assert [START, END] == whole(odd)
    said = stream(BEGUN, start(odd), {**delta(), "delta": odd}, ending(), STOPPED)
    assert [START, END] == said


@pytest.mark.parametrize("index", [None, "0", 1.5, True, [0]])
def test_an_odd_index_is_the_first(index: Any) -> None:
    said = stream(
        BEGUN,
        {**start(call()), "index": index},
        {**delta(type="input_json_delta", partial_json='{"n":1}'), "index": index},
        {**stop(), "index": index},
        ending("tool_use"),
        STOPPED,
    )
    assert '{"n":1}' == assemble(said).message.tool_calls[0].arguments


def test_what_is_kept_of_a_reply_has_a_limit() -> None:
    decoder = new_decoder()
    piece = frames(delta(type="thinking_delta", thinking="x" * (LIMIT_BYTES // 8)))
    decoder.feed(frames(BEGUN))
    for _ in range(8):
        decoder.feed(piece)
    with pytest.raises(ReplyError, match="longer than"):
        decoder.feed(piece)


def test_the_signatures_that_are_kept_have_a_limit_too() -> None:
    decoder = new_decoder()
    signed = {"type": "thinking", "signature": "x" * (LIMIT_BYTES // 8)}
    for index in range(8):
        decoder.feed(frames(start(signed, index)))
    with pytest.raises(ReplyError, match="longer than"):
        decoder.feed(frames(start(signed, 8)))


def test_the_blocks_that_are_open_have_a_limit() -> None:
    with pytest.raises(ReplyError, match="1000 open blocks"):
        stream(BEGUN, *(start(call(), index) for index in range(1001)))


def test_a_block_that_ended_is_not_kept() -> None:
    decoder = new_decoder()
    thinking = "x" * (LIMIT_BYTES // 8)
    for _ in range(9):
        decoder.feed(frames(start({"type": "thinking", "thinking": thinking}), stop()))
    assert not decoder.done
