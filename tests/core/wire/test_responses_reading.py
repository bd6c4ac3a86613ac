"""Replies of the Responses API: R-8, R-10, R-13 to R-17, RE-1 to RE-10, RE-14 to RE-19."""

import json
from typing import Any

import pytest

from tests.core.wire.exchange import (
    NOW,
    decoder_of,
    deltas_of,
    error_of,
    failure_of,
    read,
    reply_of,
    stream,
)
from woollama.core.canonical import (
    Delta,
    Finish,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Start,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TruncatedReply
from woollama.core.wire.responses import RESPONSES
from woollama.core.wire.responses_texts import LIMIT_CHARACTERS, Budget

HEAD = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": "gpt-r"}
START = Start("resp_1", "gpt-r", 1_700_000_000)
CREATED = {"type": "response.created", "response": {**HEAD, "status": "in_progress"}}
STOP = Finish("stop", "completed")
CALLS = Finish("tool_calls", "completed")


def message(*texts: str | None, id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {"type": "output_text", "text": text, "annotations": []} for text in texts
    ]
    return {"type": "message", "id": id, "role": "assistant", "content": content, **fields}


def reasoning(*summary: str, raw: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "content": [{"type": "reasoning_text", "text": text} for text in raw],
        **fields,
    }


def function_call(call_id: str | None, arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "f",
        "arguments": arguments,
        **fields,
    }


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def added(index: int | None, item: dict[str, Any]) -> dict[str, Any]:
    return event("output_item.added", item=item, **({} if index is None else _at(index)))


def done(index: int | None, item: dict[str, Any]) -> dict[str, Any]:
    return event("output_item.done", item=item, **({} if index is None else _at(index)))


def _at(index: int) -> dict[str, Any]:
    return {"output_index": index}


def text(index: int, delta: str | None, part: int = 0) -> dict[str, Any]:
    return event("output_text.delta", output_index=index, content_index=part, delta=delta)


def completed(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response: dict[str, Any] = {**HEAD, "status": "completed", "output": list(output), **fields}
    return event(response["status"], response=response)


def whole(*output: dict[str, Any], **fields: Any) -> bytes:
    body = {**HEAD, "status": "completed", "output": list(output), **fields}
    return json.dumps(body).encode()


def deltas(*payloads: Any) -> list[Delta]:
    return deltas_of(RESPONSES, stream(CREATED, *payloads))[1:]


def reply(*payloads: Any) -> Reply:
    return reply_of(RESPONSES, stream(CREATED, *payloads))


def failure(*payloads: Any) -> InferenceError:
    return failure_of(RESPONSES, stream(*payloads))


def test_r_8_tokens_are_read_as_prompt_and_completion() -> None:
    counted = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 2},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 12,
    }
    expected = Usage(
        prompt_tokens=9,
        completion_tokens=3,
        total_tokens=12,
        cached_tokens=0,
        cache_write_tokens=2,
        reasoning_tokens=1,
    )
    assert expected == reply(completed(message("ok"), usage=counted)).usage
    assert expected == reply_of(RESPONSES, whole(message("ok"), usage=counted)).usage


def test_r_8_unknown_usage_stays_unknown_and_the_last_one_counts() -> None:
    """C-6."""
    assert reply(completed(message("ok"), usage=None)).usage is None
    early = event("in_progress", response={**HEAD, "usage": {"input_tokens": 4}})
    assert Usage(prompt_tokens=4) == reply(early, completed(message("ok"))).usage
    late = completed(message("ok"), usage={"input_tokens": 5, "output_tokens": True})
    assert Usage(prompt_tokens=5) == reply(early, late).usage


def test_r_10_a_summary_is_thinking_and_a_cut_reply_ends_as_length() -> None:
    found = reply(
        completed(
            reasoning("Hm."),
            message("Hal"),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        )
    )
    assert ("Hm.", "Hal") == (found.message.reasoning, found.message.content)
    assert ("length", "incomplete.max_output_tokens") == (
        found.finish_reason,
        found.native_finish_reason,
    )


@pytest.mark.parametrize("kind", ["completed", "incomplete"])
def test_r_13_a_reply_ends_well_with_a_terminal_response(kind: str) -> None:
    ended = reply(text(0, "ok"), event(kind, response={**HEAD, "output": [message("ok")]}))
    assert "ok" == ended.message.content


def test_r_13_a_server_may_answer_json() -> None:
    found = deltas_of(RESPONSES, whole(reasoning("r"), message("ok"), function_call("c")))
    expected = [
        START,
        ReasoningDelta("r"),
        TextDelta("ok"),
        ToolCallDelta(0, "c", "f"),
        ToolCallDelta(0, arguments="{}"),
        CALLS,
    ]
    assert expected == found


def test_r_14_the_first_byte_says_whether_it_is_an_object() -> None:
    """P-20, RE-9: white space does not count, and no label is looked at."""
    assert "ok" == reply_of(RESPONSES, b" \r\n\t" + whole(message("ok"))).message.content
    assert "ok" == reply_of(RESPONSES, b"\n" + stream(completed(message("ok")))).message.content


def test_r_14_neither_an_object_nor_a_stream_is_an_error() -> None:
    assert isinstance(failure_of(RESPONSES, b"<html>busy</html>"), ReplyError)
    assert isinstance(failure_of(RESPONSES, b""), TruncatedReply)


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"id": "resp_1"}', b'{"output": null}'])
def test_r_14_an_object_that_is_no_response_is_an_error(data: bytes) -> None:
    assert "bad_response" == failure_of(RESPONSES, data).kind


def test_r_14_an_event_that_is_no_object_is_an_error() -> None:
    assert "bad_response" == failure(CREATED, "[1]").kind
    assert "bad_response" == failure(CREATED, "nonsense").kind


def test_r_15_the_terminal_output_is_the_reply_and_is_not_read_twice() -> None:
    both = message("Hello", id="msg_2"), function_call("c", '{"a":1}')
    found = deltas(
        added(0, message(id="msg_2")),
        text(0, "Hel"),
        done(1, both[1]),
        completed(*both),
    )
    expected = [
        TextDelta("Hel"),
        ToolCallDelta(0, "c", "f"),
        ToolCallDelta(0, arguments='{"a":1}'),
        TextDelta("lo"),
        CALLS,
    ]
    assert expected == found


def test_r_15_what_came_only_in_the_terminal_output_is_read() -> None:
    assert [TextDelta("ok"), STOP] == deltas(completed(message("ok")))


def test_r_15_a_finished_item_that_the_terminal_output_leaves_out_is_not_the_reply() -> None:
    found = deltas(done(1, message("draft")), completed(message("ok", id="msg_0")))
    assert [TextDelta("ok"), STOP] == found


@pytest.mark.parametrize("fields", [{"output": []}, {"output": None}])
def test_r_16_finished_items_stand_in_for_an_empty_output(fields: dict[str, Any]) -> None:
    """P-20, RE-2: in the order of their output_index, read once."""
    found = reply(
        done(2, message("you", id="b")),
        done(1, function_call("c")),
        done(0, message("Hi, ", id="a")),
        completed(**fields),
    )
    assert "Hi, you" == found.message.content
    assert ["c"] == [call.id for call in found.message.tool_calls]


def test_r_16_thinking_of_finished_items_keeps_their_order_too() -> None:
    later = {**reasoning("two"), "id": "rs_2"}
    found = reply(done(1, later), done(0, reasoning("one")), completed())
    assert "one\n\ntwo" == found.message.reasoning


def test_r_16_partial_items_are_not_read() -> None:
    found = reply(
        added(0, function_call(None, "", name="")),
        event("function_call_arguments.delta", output_index=0, delta='{"a'),
        done(1, message("ok")),
        completed(),
    )
    assert () == found.message.tool_calls
    assert ("ok", "stop") == (found.message.content, found.finish_reason)


def test_r_17_a_stream_without_a_terminal_response_is_an_error() -> None:
    """RE-8, P-24: a clean close is no good end; what came before is still given."""
    found, error = read(RESPONSES, [stream(CREATED, text(0, "par"), done(0, message("par")))])
    assert [START, TextDelta("par")] == found
    assert isinstance(error, TruncatedReply)
    assert ("incomplete_stream", True) == (error.kind, error.retryable)
    assert "stream ended before a terminal response" == error.message


def test_re_1_a_text_from_four_sources_is_read_once() -> None:
    found = deltas(
        added(0, message()),
        event("content_part.added", output_index=0, content_index=0, part={"text": ""}),
        text(0, "Hel"),
        text(0, "lo"),
        event("output_text.done", output_index=0, content_index=0, text="Hello"),
        event("content_part.done", output_index=0, content_index=0, part={"text": "Hello"}),
        done(0, message("Hello")),
        completed(message("Hello")),
    )
    assert [TextDelta("Hel"), TextDelta("lo"), STOP] == found


@pytest.mark.parametrize(
    "later",
    [
        [event("output_text.done", output_index=0, content_index=0, text="Hello")],
        [done(0, message("Hello"))],
        [],
    ],
    ids=["done event", "finished item", "terminal output"],
)
def test_re_1_a_later_source_adds_only_what_follows(later: list[Any]) -> None:
    found = deltas(text(0, "Hel"), *later, completed(message("Hello")))
    assert [TextDelta("Hel"), TextDelta("lo"), STOP] == found


def test_re_1_a_later_text_that_begins_otherwise_is_ignored() -> None:
    found = deltas(text(0, "Hello"), done(0, message("Howdy, all")), completed(message("Hi")))
    assert [TextDelta("Hello"), STOP] == found


def test_re_1_parts_of_one_message_are_told_apart() -> None:
    found = deltas(text(0, "a"), text(0, "b", 1), completed(message("a1", "b1")))
    assert [TextDelta("a"), TextDelta("b"), TextDelta("1"), TextDelta("1"), STOP] == found


def test_re_1_the_text_of_a_later_message_waits_for_the_one_before() -> None:
    found = deltas(
        added(0, message(id="a")),
        added(1, message(id="b")),
        text(1, "you"),
        text(0, "Hi"),
        done(0, message("Hi, ", id="a")),
        text(1, "!"),
        completed(message("Hi, ", id="a"), message("you!", id="b")),
    )
    assert [TextDelta(t) for t in ("Hi", ", ", "you", "!")] == found[:-1]


def test_re_1_held_text_is_said_at_the_end_when_the_message_before_never_finishes() -> None:
    found = deltas(added(0, message(id="a")), text(1, "b"), text(2, "c"), completed())
    assert [TextDelta("b"), TextDelta("c"), STOP] == found
    first, second = message(id="a"), message(id="b")
    found = deltas(
        added(0, first),
        added(0, first),
        added(1, second),
        text(1, "b"),
        text(2, "c"),
        done(0, message("a", id="a")),
        completed(),
    )
    assert [TextDelta("a"), TextDelta("b"), TextDelta("c"), STOP] == found


def test_re_3_incomplete_is_a_success_and_failed_is_an_error() -> None:
    def ended(**details: Any) -> tuple[str, str | None]:
        found = reply(completed(function_call("c", "{"), status="incomplete", **details))
        return found.finish_reason, found.native_finish_reason

    assert ("length", "incomplete.max_output_tokens") == ended(
        incomplete_details={"reason": "max_output_tokens"}
    )
    assert ("length", "incomplete.max_messages") == ended(
        incomplete_details={"reason": "max_messages"}
    )
    assert ("content_filter", "incomplete.content_filter") == ended(
        incomplete_details={"reason": "content_filter"}
    )
    assert ("length", "incomplete.steered") == ended(incomplete_details={"reason": "steered"})
    assert ("length", "incomplete") == ended(incomplete_details=None)
    failed = completed(status="failed", error={"code": "server_error", "message": "oops"})
    assert ("server_error", "oops") == (failure(failed).kind, failure(failed).message)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "server_error", True),
        ("rate_limit_exceeded", "rate_limit", True),
        ("invalid_prompt", "invalid_request", False),
        ("bio_policy", "invalid_request", False),
        ("misalignment_policy_violation", "invalid_request", False),
        ("data_residency_mismatch", "invalid_request", False),
        ("vector_store_timeout", "timeout", True),
    ],
)
def test_re_3_the_code_of_a_failed_response_gives_the_kind(
    code: str, kind: str, retryable: bool
) -> None:
    for data in (
        stream(completed(status="failed", error={"code": code, "message": "m"})),
        whole(status="failed", error={"code": code, "message": "m"}),
    ):
        error = failure_of(RESPONSES, data)
        assert isinstance(error, ProviderError)
        assert (kind, code, retryable) == (error.kind, error.code, error.retryable)


def test_re_3_a_failure_that_gives_no_reason_is_still_an_error() -> None:
    for failed in (completed(status="failed"), event("failed"), event("failed", response=None)):
        error = failure(CREATED, failed)
        assert ("server_error", None) == (error.kind, error.native_type)
        assert "does not say why" in error.message


def test_re_3_an_error_beside_a_good_status_is_an_error() -> None:
    assert "oops" == failure(completed(message("ok"), error={"message": "oops"})).message


@pytest.mark.parametrize(
    "said",
    [
        {"code": "slow_down", "message": "Wait.", "param": None},
        {"error": {"type": "slow_down", "code": "slow_down", "message": "Wait."}},
    ],
    ids=["flat", "nested"],
)
def test_re_4_an_error_event_is_read_in_both_shapes(said: dict[str, Any]) -> None:
    error = failure({"type": "error", "sequence_number": 3, **said})
    assert ("rate_limit", "slow_down", "Wait.") == (error.kind, error.code, error.message)


def test_re_4_an_error_without_a_type_of_event_is_an_error_too() -> None:
    assert "oops" == failure(CREATED, {"error": {"message": "oops"}}).message


def test_re_4_nothing_counts_behind_an_error() -> None:
    data = stream(CREATED, {"type": "error", "message": "oops"}, completed(message("ok")))
    found, error = read(RESPONSES, [data])
    assert [START] == found
    assert error is not None
    assert read(RESPONSES, [stream({"type": "error", "message": "oops"})])[0] == []


def test_re_5_the_id_of_a_call_is_its_call_id() -> None:
    found = deltas(
        added(0, function_call("call_1", "")),
        event("function_call_arguments.delta", output_index=0, item_id="fc_1", delta='{"a'),
        event("function_call_arguments.done", output_index=0, arguments='{"a":1}'),
        done(0, function_call("call_1", '{"a":1}')),
        completed(function_call("call_1", '{"a":1}')),
    )
    expected = [
        ToolCallDelta(0, "call_1", "f"),
        ToolCallDelta(0, arguments='{"a'),
        ToolCallDelta(0, arguments='":1}'),
        CALLS,
    ]
    assert expected == found


def test_re_5_a_call_without_a_call_id_is_given_one() -> None:
    """C-7."""
    found = deltas(
        added(0, function_call(None, "")),
        event("function_call_arguments.delta", output_index=0, delta="{}"),
        done(0, function_call(None, "{}")),
        completed(function_call(None, "{}")),
    )
    assert [ToolCallDelta(0, "call_made1", "f", "{}"), CALLS] == found


def test_re_5_a_call_opens_when_its_name_is_known() -> None:
    found = deltas(
        event("function_call_arguments.delta", output_index=0, delta="{"),
        event("function_call_arguments.delta", output_index=0, delta=""),
        added(0, function_call("c", "")),
        added(0, function_call("c", "")),
        event("function_call_arguments.delta", output_index=0, delta="}"),
        completed(),
    )
    expected = [ToolCallDelta(0, "c", "f", "{"), ToolCallDelta(0, arguments="}"), CALLS]
    assert expected == found


@pytest.mark.parametrize(("given", "read_as"), [(None, "{}"), ("", "{}"), ({"a": 1}, '{"a":1}')])
def test_re_5_arguments_of_other_shapes_are_text(given: Any, read_as: str) -> None:
    (found,) = reply(completed(function_call("c", given))).message.tool_calls
    assert read_as == found.arguments


def test_re_6_completed_with_calls_ends_as_tool_calls() -> None:
    found = reply(completed(message("t"), function_call("c")))
    assert ("tool_calls", "completed") == (found.finish_reason, found.native_finish_reason)


def test_re_7_the_summary_wins_and_parts_are_a_blank_line_apart() -> None:
    assert [ReasoningDelta("a"), ReasoningDelta("\n\nb"), STOP] == deltas(
        completed(reasoning("a", "", "b", raw=("x",)))
    )
    assert [ReasoningDelta("x"), ReasoningDelta("\n\ny"), STOP] == deltas(
        completed(reasoning("", raw=("x", "y")))
    )


def test_re_7_a_streamed_summary_is_not_followed_by_the_raw_text() -> None:
    found = reply(
        added(0, reasoning()),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Sh"),
        event("reasoning_text.delta", output_index=0, content_index=0, delta="raw"),
        event("reasoning_summary_text.done", output_index=0, summary_index=0, text="Short"),
        done(0, reasoning("Short", "more", raw=("raw",))),
        completed(reasoning("Short", "more", raw=("raw",))),
    )
    assert "Short\n\nmore" == found.message.reasoning


def test_re_7_raw_text_that_was_said_is_not_followed_by_the_summary() -> None:
    found = reply(
        event("reasoning_text.delta", output_index=0, content_index=0, delta="raw"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Short"),
        completed(reasoning("Short", raw=("raw text",))),
    )
    assert "raw text" == found.message.reasoning


def test_re_10_a_refusal_is_kept_apart_and_the_finish_stays() -> None:
    item = message("Well. ")
    item["content"].append({"type": "refusal", "refusal": "No."})
    item["content"].append({"type": "output_audio", "data": "AA=="})
    found = deltas(
        event("refusal.delta", output_index=0, content_index=1, delta="N"),
        event("refusal.done", output_index=0, content_index=1, refusal="No"),
        completed(item),
    )
    expected = [
        RefusalDelta("N"),
        RefusalDelta("o"),
        TextDelta("Well. "),
        RefusalDelta("."),
        STOP,
    ]
    assert expected == found


def test_re_11_unknown_events_and_items_are_skipped_and_messages_concatenate() -> None:
    """C-9."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    found = deltas(
        added(0, search),
        event("web_search_call.searching", output_index=0),
        done(0, search),
        event("output_text.annotation.added", output_index=1, annotation={}),
        event("new_thing.delta", delta="x"),
        event("output_text.weird", output_index=1, text="x"),
        {"type": None},
        {},
        text(1, "Hi, "),
        text(2, "you"),
        completed(search, message("Hi, ", phase="commentary"), message("you", id="msg_2")),
    )
    assert [TextDelta("Hi, "), TextDelta("you"), STOP] == found


def test_re_12_a_detail_is_an_error_body() -> None:
    error = error_of(RESPONSES, 400, {"detail": "System messages are not allowed"})
    assert ("invalid_request", "System messages are not allowed", 400) == (
        error.kind,
        error.message,
        error.peer_status,
    )
    listed = error_of(RESPONSES, 422, {"detail": [{"loc": ["body"], "msg": "bad"}]})
    assert '[{"loc":["body"],"msg":"bad"}]' == listed.message


def test_re_14_encrypted_thinking_is_no_text_and_is_kept_for_its_own_dialect() -> None:
    """RU-12: from the finished item, since the one that begins may be incomplete; once."""
    item = reasoning("r", encrypted_content="gAAA")
    found = reply_of(
        RESPONSES,
        stream(
            CREATED,
            added(0, reasoning(encrypted_content="gA")),
            done(0, item),
            done(1, message("ok")),
            completed(item, message("ok")),
        ),
    )
    assert {"responses": (item,)} == found.message.opaque
    assert ("r", "ok") == (found.message.reasoning, found.message.content)
    assert b"gAAA" not in json.dumps(found.to_openai()).encode()
    assert [OpaqueDelta("responses", "item", item)] == [
        d for d in deltas(completed(item)) if isinstance(d, OpaqueDelta)
    ]


def test_re_15_what_gateways_leave_out_is_not_needed() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "ok"}, None]}
    found = deltas_of(
        RESPONSES,
        stream(
            text(0, None),
            event("output_text.done", output_index=0, text=None),
            text(0, "ok"),
            done(0, item),
            done(0, message(None)),
            event("completed", response={"output": [item]}),
        ),
    )
    assert [Start("resp_made1", None, int(NOW)), TextDelta("ok"), STOP] == found


def test_re_15_without_a_first_event_the_terminal_response_names_the_reply() -> None:
    assert START == deltas_of(RESPONSES, stream(completed(message("ok"))))[0]


def test_re_16_ids_that_differ_between_events_change_nothing() -> None:
    found = deltas(
        added(0, message(id="a")),
        event("output_text.delta", output_index=0, item_id="b", content_index=0, delta="ok"),
        done(0, message("ok", id="c")),
        completed(message("ok", id="d"), function_call("c", id="e")),
    )
    assert [TextDelta("ok"), ToolCallDelta(0, "c", "f")] == found[:2]


def test_re_16_the_terminal_output_may_hold_items_that_no_event_spoke_of() -> None:
    found = reply(
        added(0, message(id="a")),
        text(0, "ok"),
        done(1, function_call("c")),
        completed(reasoning("why"), message("ok", id="a"), function_call("c", id="other")),
    )
    assert ("why", "ok") == (found.message.reasoning, found.message.content)
    assert ["c"] == [call.id for call in found.message.tool_calls]


LLAMA = [
    event("created", response={"id": "resp_1", "object": "response", "status": "in_progress"}),
    added(None, {**reasoning(), "id": "rs"}),
    event("reasoning_text.delta", item_id="rs", delta="hm"),
    done(None, {**reasoning(raw=("hm",)), "id": "rs"}),
    added(None, message(id="msg")),
    event("output_text.delta", item_id="msg", delta="Hi"),
    event("output_text.done", item_id="msg", text="Hi"),
    done(None, message("Hi", id="msg")),
    added(None, {"type": "function_call", "call_id": "fc_a", "name": "f", "arguments": ""}),
    event("function_call_arguments.delta", item_id="fc_a", delta="{}"),
    done(None, {"type": "function_call", "call_id": "fc_a", "name": "f", "arguments": "{}"}),
]


def test_re_16_a_server_that_sends_no_output_index_is_read_by_ids() -> None:
    """As llama.cpp's server answers."""
    output = [
        reasoning(raw=("hm",), id="rs"),
        message("Hi", id="msg"),
        {"type": "function_call", "call_id": "fc_a", "name": "f", "arguments": "{}"},
    ]
    expected = [
        Start("resp_1", None, int(NOW)),
        ReasoningDelta("hm"),
        TextDelta("Hi"),
        ToolCallDelta(0, "fc_a", "f"),
        ToolCallDelta(0, arguments="{}"),
        CALLS,
    ]
    assert expected == deltas_of(RESPONSES, stream(*LLAMA, completed(*output)))


def test_re_16_without_index_and_id_an_event_belongs_to_the_item_that_began_last() -> None:
    found = deltas(
        added(None, {"type": "message"}),
        event("output_text.delta", delta="a"),
        done(None, {"type": "message", "content": [{"type": "output_text", "text": "ab"}]}),
        event("output_text.delta", delta="c"),
        done(None, function_call("c")),
        completed(),
    )
    assert [TextDelta("a"), TextDelta("b"), TextDelta("c")] == found[:3]


@pytest.mark.parametrize("status", ["cancelled", "in_progress", "queued", "new"])
def test_re_17_any_other_last_status_is_an_error(status: str) -> None:
    kind = "canceled" if status == "cancelled" else "incomplete_stream"
    ended = event("completed", response={**HEAD, "status": status, "output": [message("ok")]})
    assert kind == failure(CREATED, ended).kind
    assert kind == failure_of(RESPONSES, whole(message("ok"), status=status)).kind


def test_re_18_a_done_marker_is_ignored() -> None:
    assert [STOP] == deltas("[DONE]", completed(), "[DONE]")
    assert "incomplete_stream" == failure(CREATED, "[DONE]").kind


def test_re_19_equal_ids_of_two_replies_are_kept() -> None:
    for _ in range(2):
        (found,) = reply(completed(function_call("call_0"))).message.tool_calls
        assert "call_0" == found.id


def test_nothing_is_read_behind_the_terminal_response() -> None:
    decoder = decoder_of(RESPONSES)
    decoder.feed(stream(completed(message("ok")), text(0, "more")))
    assert decoder.done
    assert [STOP] == list(decoder.finish())


def test_what_a_reply_makes_us_keep_is_limited() -> None:
    budget = Budget()
    budget.spend(LIMIT_CHARACTERS)
    with pytest.raises(ReplyError, match="longer than"):
        budget.spend(1)
