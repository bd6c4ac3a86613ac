"""Chat Completions as everyone speaks it: the rules OC-1 to OC-46."""

import json
from typing import Any

import pytest

from tests.core.wire.exchange import (
    HI,
    NOW,
    WEATHER,
    body_of,
    call,
    decoder_of,
    deltas_of,
    encode,
    error_of,
    failure_of,
    read,
    refused,
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
    Usage,
    UsageDelta,
)
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TruncatedReply
from woollama.core.wire import Bearer, WireSettings
from woollama.core.wire.chat import COMPATIBLE

HEAD: dict[str, Any] = {"id": "c1", "created": 1_700_000_000, "model": "m-1"}
START = Start("c1", "m-1", 1_700_000_000)


def body(**fields: Any) -> dict[str, Any]:
    return body_of(COMPATIBLE, **fields)


def chunk(finish: str | None = None, /, **delta: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def whole(finish: str | None = "stop", /, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion", "choices": [choice]}


def fragment(index: int | None = None, arguments: Any = "", **fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name",) if key in fields}
    raw = {**fields, "function": {**function, "arguments": arguments}}
    return raw if index is None else {"index": index, **raw}


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return chunk(tool_calls=list(fragments))


def deltas(*payloads: Any) -> list[Delta]:
    """What is said between the start and the finish."""
    found = deltas_of(COMPATIBLE, stream(*payloads, chunk("stop"), "[DONE]"))
    assert START == found[0]
    assert isinstance(found[-1], Finish)
    return found[1:-1]


def called(*payloads: Any) -> list[tuple[str, str, str]]:
    reply = reply_of(COMPATIBLE, stream(*payloads, chunk("tool_calls")))
    return [(c.id, c.name, c.arguments) for c in reply.message.tool_calls]


def reply(payload: Any) -> Reply:
    return reply_of(COMPATIBLE, json.dumps(payload).encode())


def failure(*payloads: Any) -> InferenceError:
    return failure_of(COMPATIBLE, stream(*payloads))


def test_requests_go_to_chat_completions_with_the_key_as_a_bearer() -> None:
    wire = encode(COMPATIBLE, base_url="http://peer.test/v1/")
    assert ("POST", "http://peer.test/v1/chat/completions") == (wire.method, wire.url)
    assert Bearer() == COMPATIBLE.key_place


def test_oc_1_developer_is_sent_as_system() -> None:
    sent = body(messages=[{"role": "developer", "content": "d"}, HI])
    assert [{"role": "system", "content": "d"}, HI] == sent["messages"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_oc_2_the_cap_is_one_field_that_a_setting_names(field: str) -> None:
    """A-7."""
    sent = body(max_tokens=7, settings=WireSettings(output_field=field))
    other = {"max_tokens", "max_completion_tokens"} - {field}
    assert 7 == sent[field]
    assert other.isdisjoint(sent)


def test_oc_3_a_chunk_with_nothing_to_say_says_nothing() -> None:
    quiet = chunk(role="assistant", content="", refusal=None) | {"usage": None, "obfuscation": "x"}
    assert [TextDelta("a")] == deltas(quiet, chunk(content="a"), quiet)


def test_oc_4_a_chunk_may_have_no_choices() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    none: dict[str, Any] = {"choices": []}
    first, moderation = {"id": "", "model": "", **none}, {**HEAD, **none, "moderation": 1}
    last = {**HEAD, **none, "usage": usage}
    found = deltas(first, moderation, chunk(content="a"), last, {**HEAD, "choices": None})
    counted = Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)
    assert [TextDelta("a"), UsageDelta(counted)] == found


def test_oc_5_interleaved_fragments_are_put_together_by_index() -> None:
    found = called(
        calls(fragment(0, "", id="a", name="f"), fragment(1, "[", id="b", name="g")),
        calls(fragment(1, "1]")),
        calls(fragment(0, "{}")),
    )
    assert [("a", "f", "{}"), ("b", "g", "[1]")] == found


def test_oc_6_without_an_index_ids_and_names_tell_calls_apart() -> None:
    found = called(
        calls(fragment(None, "{", id="a", name="f")),
        calls(fragment(None, "}")),
        calls(fragment(None, "[", id="b", name="g"), fragment(None, "0", id="a")),
        calls(fragment(None, "]", id="b")),
        calls(fragment(None, "1", name="h")),
    )
    assert [("a", "f", "{}0"), ("b", "g", "[]"), ("call_made1", "h", "1")] == found


def test_oc_6_another_id_and_a_name_under_one_index_start_a_call() -> None:
    found = called(
        calls(fragment(0, "{}", id="a", name="f")),
        calls(fragment(0, "[", id="b", name="g")),
        calls(fragment(0, "]", id="b")),
        calls(fragment(0, "1", id="c")),
    )
    assert [("a", "f", "{}"), ("b", "g", "[]1")] == found


def test_oc_7_empty_ids_and_names_never_overwrite() -> None:
    found = called(
        calls(fragment(0, "{", id="a", name="f")),
        calls(fragment(0, "}", id="", name="")),
        calls(fragment(0, "", id=None, name=None)),
    )
    assert [("a", "f", "{}")] == found


def test_oc_8_whole_arguments_may_come_at_once() -> None:
    assert [("a", "f", '{"x":1}')] == called(calls(fragment(0, '{"x":1}', id="a", name="f")))


def test_oc_9_extra_content_is_kept_and_goes_back_verbatim() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    own = {"index": 0, "extra_content": signature}
    found = deltas(calls(fragment(0, "{}", id="a", name="f")), calls(own))
    assert OpaqueDelta("compatible", "extra_content", signature, 0) in found
    said = reply(whole(tool_calls=[{**call("a"), "extra_content": signature}])).message
    assert signature == said.tool_calls[0].extra_content
    sent = body(messages=[{"role": "assistant", "tool_calls": [call("a") | own]}])
    assert signature == sent["messages"][0]["tool_calls"][0]["extra_content"]


def test_oc_10_an_object_of_arguments_is_serialised() -> None:
    found = reply(whole(tool_calls=[fragment(None, {"a": "ü"}, id="a", name="f")])).message
    assert '{"a":"ü"}' == found.tool_calls[0].arguments


@pytest.mark.parametrize("identity", [None, "", "null"])
def test_oc_11_a_missing_id_is_made(identity: str | None) -> None:
    """C-7."""
    ((made, _, _),) = called(calls(fragment(0, "{}", id=identity, name="f")))
    assert "call_made1" == made


@pytest.mark.parametrize("arguments", ["", None])
def test_oc_12_empty_arguments_are_an_empty_object(arguments: str | None) -> None:
    assert [("a", "f", "{}")] == called(calls(fragment(0, arguments, id="a", name="f")))


def test_oc_13_no_text_beside_calls_is_null() -> None:
    found = reply(whole("tool_calls", content=None, tool_calls=[call("a")]))
    assert found.message.content is None
    assert found.to_openai()["choices"][0]["message"]["content"] is None
    sent = body(messages=[{"role": "assistant", "content": None, "tool_calls": [call("a")]}])
    assert sent["messages"][0]["content"] is None


def test_oc_14_calls_under_stop_end_as_tool_calls() -> None:
    found = reply(whole("stop", tool_calls=[call("a")]))
    assert ("tool_calls", "stop") == (found.finish_reason, found.native_finish_reason)


def test_oc_15_a_half_call_under_length_stays_as_it_is() -> None:
    """C-5."""
    found = reply(whole("length", tool_calls=[call("a", arguments='{"x')]))
    assert ("length", '{"x') == (found.finish_reason, found.message.tool_calls[0].arguments)


def test_oc_16_the_old_function_call_is_one_call() -> None:
    function = {"name": "f", "arguments": "{}"}
    found = reply(whole("function_call", function_call=function))
    made = found.message.tool_calls[0]
    assert ("call_made1", "f", "{}") == (made.id, made.name, made.arguments)
    assert ("tool_calls", "function_call") == (found.finish_reason, found.native_finish_reason)


def test_oc_17_an_array_of_content_is_split_by_type() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "x"}, 1]},
        {"type": "thinking", "thinking": "m"},
        {"type": "thinking", "thinking": ""},
        {"type": "text", "text": "a"},
        {"type": "text", "text": None},
        {"type": "reference", "reference_ids": [1]},
        "odd",
        {"type": "text", "text": "b"},
    ]
    found = reply(whole(content=parts)).message
    assert ("hm", "ab") == (found.reasoning, found.content)


def test_oc_18_comments_and_a_byte_order_mark_are_skipped() -> None:
    noise = b"\xef\xbb\xbf: OPENROUTER PROCESSING\n\n: keep-alive\n\n"
    data = noise + stream(chunk(content="a")) + b":\n\n" + stream(chunk("stop"))
    assert [START, TextDelta("a"), Finish("stop", "stop")] == deltas_of(COMPATIBLE, data)


def test_oc_19_lines_end_in_any_way_and_data_may_be_spread() -> None:
    """C-11."""
    payload = json.dumps(chunk(content="a"), indent=1)
    spread = "".join(f"data:{line}\r\n" for line in payload.split("\n"))
    data = f"event: x\r\nid: 1\r\nretry: 5\r\n{spread}\r\ndata: {json.dumps(chunk('stop'))}\r\r"
    found = deltas_of(COMPATIBLE, data.encode())
    assert [START, TextDelta("a"), Finish("stop", "stop")] == found


def test_oc_20_blank_lines_may_come_before_an_object() -> None:
    data = json.dumps(whole(content="a")).encode()
    decoder = decoder_of(COMPATIBLE)
    assert () == decoder.feed(b"\n") + decoder.feed(b"\r\n \t") + decoder.feed(data)
    assert [START, TextDelta("a"), Finish("stop", "stop")] == list(decoder.finish())


def test_oc_21_a_character_may_be_cut_between_two_reads() -> None:
    data = stream(json.dumps(chunk(content="Grüße 🎈"), ensure_ascii=False), chunk("stop"))
    found, error = read(COMPATIBLE, [data[i : i + 1] for i in range(len(data))])
    assert error is None
    assert TextDelta("Grüße 🎈") in found


@pytest.mark.parametrize("alias", ["reasoning", "reasoning_content"])
def test_oc_22_thinking_is_read_under_both_names(alias: str) -> None:
    """A-4."""
    assert [ReasoningDelta("a")] == deltas(chunk(**{alias: "a"}))
    assert "a" == reply(whole(**{alias: "a"}, content="b")).message.reasoning


def test_oc_23_thinking_that_comes_twice_is_read_once() -> None:
    details = [
        {"type": "reasoning.text", "text": "d"},
        {"type": "reasoning.summary", "summary": "s"},
    ]
    both = reply(whole(reasoning="a", reasoning_content="b", reasoning_details=details)).message
    assert ("a", tuple(details)) == (both.reasoning, both.reasoning_details)
    assert "b" == reply(whole(reasoning="", reasoning_content="b")).message.reasoning
    alone = reply(whole(reasoning_details=[*details, {"type": "reasoning.encrypted"}, 1])).message
    assert "ds" == alone.reasoning


def test_oc_24_thinking_in_history_is_reasoning_content() -> None:
    """A-3."""
    said = {"role": "assistant", "content": "b", "reasoning": "a"}
    expected = {"role": "assistant", "content": "b", "reasoning_content": "a"}
    assert [expected] == body(messages=[said])["messages"]
    without = {"role": "assistant", "content": "b"}
    assert [without] == body(messages=[without])["messages"]


@pytest.mark.parametrize(
    ("native", "reason"),
    [
        ("model_length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("error", "error"),
        ("eos", "stop"),
        ("insufficient_system_resource", "stop"),
    ],
)
def test_oc_25_other_words_for_the_finish_are_understood_and_kept(native: str, reason: str) -> None:
    found = reply(whole(native, content="a"))
    assert (reason, native) == (found.finish_reason, found.native_finish_reason)


def test_oc_26_without_done_the_finish_reason_is_the_mark() -> None:
    """C-15."""
    assert [START, Finish("stop", "stop")] == deltas_of(COMPATIBLE, stream(chunk("stop")))
    error = failure(chunk(content="par"))
    assert isinstance(error, TruncatedReply)
    assert ("incomplete_stream", True) == (error.kind, error.retryable)


def test_oc_27_done_without_a_finish_reason_is_a_success() -> None:
    found = deltas_of(COMPATIBLE, stream(chunk(content="a"), "[DONE]"))
    assert [START, TextDelta("a"), Finish("stop", None)] == found


@pytest.mark.parametrize("behind", [[], ["[DONE]"], [chunk(content="more"), chunk("stop")]])
def test_oc_28_an_error_in_the_stream_is_its_end(behind: list[Any]) -> None:
    error = {"error": {"message": "gone", "code": 502}}
    for payload in (error, chunk("error", content="") | error):
        data = stream(chunk(content="par"), payload, *behind)
        found, failed = read(COMPATIBLE, [data])
        assert [START, TextDelta("par")] == found
        assert isinstance(failed, ProviderError)
        assert ("gone", 502, "server_error") == (failed.message, failed.peer_status, failed.kind)


def test_oc_29_the_status_of_a_failed_generation_is_in_the_error() -> None:
    said = {
        "message": "Failed to call a function.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function>",
        "status_code": 400,
    }
    data = b"event: error\n" + stream({"error": said})
    error = failure_of(COMPATIBLE, data)
    assert (400, "tool_use_failed", "invalid_request") == (
        error.peer_status,
        error.code,
        error.kind,
    )
    assert "<function>" not in str(error)
    assert "<function>" == error.payload["error"]["failed_generation"]


def test_oc_30_a_refusal_is_a_field_of_its_own() -> None:
    assert [RefusalDelta("N"), RefusalDelta("o")] == deltas(chunk(refusal="N"), chunk(refusal="o"))
    found = reply(whole("stop", content=None, refusal="No."))
    assert ("No.", None, "stop") == (
        found.message.refusal,
        found.message.content,
        found.finish_reason,
    )


COUNTS = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"usage": COUNTS}, {}),
        ({"x_groq": {"usage": COUNTS}}, {}),
        ({"usage": {**COUNTS, "prompt_cache_hit_tokens": 4}}, {"cached_tokens": 4}),
        ({"usage": {**COUNTS, "cost": 0.5}}, {"cost": 0.5}),
        (
            {
                "usage": {
                    **COUNTS,
                    "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 1},
                    "completion_tokens_details": {"reasoning_tokens": 2},
                }
            },
            {"cached_tokens": 0, "cache_write_tokens": 1, "reasoning_tokens": 2},
        ),
    ],
)
def test_oc_31_usage_is_read_wherever_it_is(fields: dict[str, Any], expected: Any) -> None:
    counted = Usage(prompt_tokens=9, completion_tokens=3, total_tokens=12, **expected)
    assert counted == reply(whole(content="a") | fields).usage


def test_oc_31_the_last_usage_counts_and_none_is_added_up() -> None:
    """C-6."""
    running = [chunk(content="a") | {"usage": {**COUNTS, "completion_tokens": n}} for n in (1, 2)]
    ended = chunk("stop") | {"usage": COUNTS}
    found = deltas_of(COMPATIBLE, stream(*running, ended))
    counted = Usage(prompt_tokens=9, completion_tokens=3, total_tokens=12)
    assert [UsageDelta(counted), Finish("stop", "stop")] == found[-2:]
    assert reply(whole(content="a")).usage is None


def test_oc_32_the_first_chunk_of_azure_names_nothing() -> None:
    empty: dict[str, Any] = {
        "id": "",
        "model": "",
        "created": 0,
        "choices": [],
        "prompt_filter_results": [],
    }
    annotated = {"id": "", "model": "", "choices": [{"index": 0, "delta": None}]}
    assert [TextDelta("a")] == deltas(empty, chunk(content="a"), annotated)
    said = {"message": "filtered", "code": "content_filter", "innererror": {"x": 1}}
    error = error_of(COMPATIBLE, 400, {"error": said})
    assert ("invalid_request", "content_filter") == (error.kind, error.code)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "Sun, 15 Jun 2025 15:06:45 GMT"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
)
def test_oc_33_the_wait_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert 1_750_000_000.0 == NOW
    error = error_of(COMPATIBLE, 429, {"error": {"message": "slow"}}, headers)
    assert seconds == error.retry_after
    assert ("rate_limit", True) == (error.kind, error.retryable)


@pytest.mark.parametrize("code", ["insufficient_quota", "credit_balance_exhausted"])
def test_oc_34_waiting_does_not_cure_an_empty_account(code: str) -> None:
    error = error_of(COMPATIBLE, 429, {"error": {"message": "m", "code": code}})
    assert ("rate_limit", False) == (error.kind, error.retryable)


def test_oc_35_the_first_error_of_an_array_is_read() -> None:
    said = [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]
    error = error_of(COMPATIBLE, 400, said)
    assert ("bad", "400", "INVALID_ARGUMENT") == (error.message, error.code, error.native_type)
    assert "bad" == failure_of(COMPATIBLE, json.dumps(said).encode()).message


def test_oc_36_a_body_that_is_no_json_is_told_in_part() -> None:
    error = error_of(COMPATIBLE, 502, b"<html>" + b"x" * 999 + b"</html>")
    assert ("server_error", 500) == (error.kind, len(error.message))
    empty = error_of(COMPATIBLE, 503, b"")
    assert ("overloaded", True) == (empty.kind, "503" in empty.message)


def test_oc_37_an_error_under_200_is_an_error() -> None:
    error = failure_of(COMPATIBLE, b'{"error": {"message": "gone", "code": 429}}')
    assert ("rate_limit", 429) == (error.kind, error.peer_status)
    nothing = failure_of(COMPATIBLE, json.dumps({**HEAD, "choices": None}).encode())
    assert isinstance(nothing, ReplyError)
    assert ("bad_response", True) == (nothing.kind, nothing.retryable)
    odd = failure_of(COMPATIBLE, b'{"object": "error", "message": "no such model"}')
    assert "no such model" == odd.message


def test_oc_38_an_object_instead_of_a_stream_is_a_reply() -> None:
    assert body(stream=True)["stream"] is True
    assert "a" == reply(whole(content="a")).message.content


def test_oc_39_think_tags_in_the_text_are_left_alone() -> None:
    """C-10."""
    assert "<think>a</think>b" == reply(whole(content="<think>a</think>b")).message.content


def test_oc_40_names_of_tools_are_sent_as_they_come() -> None:
    # The tool layer has made them fit before they get here.
    tool = {"type": "function", "function": {"name": "server__tool"}}
    assert [tool] == body(tools=[tool])["tools"]


def test_oc_41_system_messages_are_sent_as_given_and_merged_only_on_request() -> None:
    given = [{"role": "system", "content": "a"}, HI, {"role": "system", "content": "b"}]
    assert given == body(messages=given)["messages"]
    merged = body(messages=given, settings=WireSettings(merge_system=True))["messages"]
    assert [{"role": "system", "content": "a\n\nb"}, HI] == merged


def test_oc_42_only_what_is_set_is_sent() -> None:
    assert {"model", "messages"} == set(body())
    nulls = dict.fromkeys(["temperature", "tools", "stop", "tool_choice", "seed", "user", "x"])
    assert {"model", "messages"} == set(body(**nulls))
    streamed = body(stream=True, settings=WireSettings(stream_usage=False))
    assert {"model", "messages", "stream"} == set(streamed)


def test_oc_43_the_advice_comes_also_when_no_effort_was_sent() -> None:
    """A-14."""
    assert "reasoning_effort" not in body(tools=[WEATHER])
    said = {"message": "Function tools are not supported.", "param": "reasoning_effort"}
    error = error_of(COMPATIBLE, 400, {"error": said})
    assert error.hint is not None
    assert 'dialect = "responses"' in error.hint


def test_oc_44_a_missing_message_is_empty_and_a_missing_count_is_0() -> None:
    usage = {"prompt_tokens": 9, "total_tokens": 9}
    found = reply({**HEAD, "choices": [{"index": 0, "finish_reason": "stop"}], "usage": usage})
    assert (None, ()) == (found.message.content, found.message.tool_calls)
    assert Usage(prompt_tokens=9, completion_tokens=0, total_tokens=9) == found.usage


def test_oc_45_an_id_repeated_in_every_fragment_is_one_id() -> None:
    pieces = [calls(fragment(0, text, id="a", name="f")) for text in ("{", "}")]
    assert [("a", "f", "{}")] == called(*pieces)
    without = [calls(fragment(None, text, id="a", name="f")) for text in ("{", "}")]
    assert [("a", "f", "{}")] == called(*without)


def test_oc_46_foreign_words_and_fields_are_no_fault() -> None:
    """C-9."""
    odd: dict[str, Any] = {
        "service_tier": "on_demand",
        "system_fingerprint": 1,
        "object": "x",
        "new": {},
    }
    assert [TextDelta("a")] == deltas(chunk(content="a", role="robot", audio={}) | odd)


def test_c_3_a_second_choice_is_an_error_and_not_lost() -> None:
    first = chunk(content="a")
    first["choices"].append("odd")
    second = {**HEAD, "choices": [{"index": 1, "delta": {"content": "b"}}]}
    said, error = read(COMPATIBLE, [stream(first), stream(second)])
    assert TextDelta("a") == said[-1]
    assert error is not None
    assert "several choices" in str(error)
    assert "'n'" in str(error)


def test_a_server_may_number_its_only_choice_as_it_likes() -> None:
    only = {"index": 1, "delta": {"content": "a"}, "finish_reason": "stop"}
    assert "a" == reply_of(COMPATIBLE, stream({**HEAD, "choices": [only]})).message.content


def test_c_3_the_probabilities_of_tokens_come_back() -> None:
    token = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}
    said = chunk(content="a")
    said["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    data = stream(said, said, chunk("stop"), "[DONE]")
    choice = reply_of(COMPATIBLE, data).to_openai()["choices"][0]
    assert {"content": [token, token]} == choice["logprobs"]


@pytest.mark.parametrize("odd", [1, [], {}, {"content": None}, {"content": []}])
def test_no_probabilities_are_none(odd: Any) -> None:
    said = chunk(content="a")
    said["choices"][0]["logprobs"] = odd
    assert [TextDelta("a")] == deltas(said)


def test_a_call_that_is_never_named_is_left_to_the_tool_layer() -> None:
    assert [("a", "", "{}")] == called(calls(fragment(0, "{}", id="a")))
    late = called(calls(fragment(0, "{", id=None)), calls(fragment(0, "}", id="a", name="f")))
    assert [("a", "f", "{}")] == late


def test_odd_shapes_of_a_chunk_say_nothing() -> None:
    odd: list[Any] = [
        chunk(content=1, reasoning=1, refusal=1, tool_calls=1, function_call=1),
        chunk(tool_calls=[1], reasoning_details=1),
        {**HEAD, "choices": [{"index": 0, "delta": 1}]},
        {**HEAD, "choices": [], "usage": 1, "x_groq": 1},
    ]
    assert [] == deltas(*odd)


@pytest.mark.parametrize("payload", ["[]", "1", "null", '"text"'])
def test_a_payload_that_is_no_object_is_an_error(payload: str) -> None:
    assert "bad_response" == failure(chunk(content="a"), payload).kind


def test_a_reply_without_names_is_given_some() -> None:
    data = stream({"choices": [{"delta": {"content": "a"}}]}, "[DONE]")
    assert Start("chatcmpl-made1", None, int(NOW)) == deltas_of(COMPATIBLE, data)[0]


def test_usage_is_asked_for_beside_what_the_caller_asks_of_a_stream() -> None:
    options = {"include_obfuscation": False}
    sent = body(stream=True, stream_options=options)
    assert {**options, "include_usage": True} == sent["stream_options"]
    quiet = body(stream=True, stream_options=options, settings=WireSettings(stream_usage=False))
    assert options == quiet["stream_options"]
    assert "stream_options" not in body(stream_options=options)


@pytest.mark.parametrize(("name", "value"), [("options", {"num_ctx": 1}), ("keep_alive", "5m")])
def test_c_3_what_only_ollama_has_is_refused_by_name(name: str, value: Any) -> None:
    """RU-18."""
    error = refused(COMPATIBLE, **{name: value})
    assert ("unsupported_parameter", name) == (error.kind, error.param)


def test_other_tools_and_choices_are_sent_as_they_came() -> None:
    tool = {"type": "custom", "custom": {"name": "sql"}}
    choice = {"type": "custom", "custom": {"name": "sql"}}
    sent = body(tools=[tool], tool_choice=choice)
    assert ([tool], choice) == (sent["tools"], sent["tool_choice"])
    named = {"type": "function", "function": {"name": "f"}}
    assert named == body(tools=[WEATHER], tool_choice=named)["tool_choice"]
    assert "none" == body(tools=[WEATHER], tool_choice="none")["tool_choice"]


def test_the_list_of_models_is_openais() -> None:
    wire = COMPATIBLE.codec.models_request("http://x/v1/")
    assert ("GET", "http://x/v1/models") == (wire.method, wire.url)
    listed = {"data": [{"id": "a", "context_length": 9}, {"id": ""}, 1]}
    found = COMPATIBLE.codec.decode_models(json.dumps(listed).encode())
    assert [("a", 9)] == [(info.id, info.context) for info in found]
    assert ["a"] == [info.id for info in COMPATIBLE.codec.decode_models(b'[{"id": "a"}]')]
    with pytest.raises(ReplyError, match="no list 'data'"):
        COMPATIBLE.codec.decode_models(b'{"models": []}')
