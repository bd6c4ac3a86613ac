"""Replies of Ollama: rules O-3 and those of OL-9 to OL-27 that are about what comes."""

import itertools
import json
from typing import Any

import pytest

from woollama.core.canonical import (
    Delta,
    Finish,
    OpaqueDelta,
    ReasoningDelta,
    Start,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
    assemble,
)
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TruncatedReply
from woollama.core.wire import Decoder
from woollama.core.wire.ollama import OLLAMA
from woollama.core.wire.ollama_reading import OllamaReading, unix_seconds

HEAD = {"model": "m", "created_at": "2023-11-14T22:13:20.123456789Z"}
START = Start("chatcmpl-id1", "m", 1_700_000_000)
NOW = 1_750_000_000.5


def said(**message: Any) -> dict[str, Any]:
    return {**HEAD, "message": {"role": "assistant", "content": "", **message}, "done": False}


def end(**fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": fields.pop("content", "")}
    return {**HEAD, "message": message, "done": True, "done_reason": "stop", **fields}


def called(name: str, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"index": 0, "name": name, "arguments": arguments or {}}}


def decoder() -> Decoder:
    counter = itertools.count(1)
    return OLLAMA.codec.decoder(new_id=lambda: f"id{next(counter)}", now=lambda: NOW)


def lines(*payloads: Any) -> bytes:
    return b"".join(json.dumps(payload).encode() + b"\n" for payload in payloads)


def read(*chunks: bytes) -> tuple[list[Delta], InferenceError | None]:
    reading = decoder()
    deltas: list[Delta] = []
    try:
        for chunk in chunks:
            deltas.extend(reading.feed(chunk))
        deltas.extend(reading.finish())
    except InferenceError as error:
        return deltas, error
    return deltas, None


def deltas(*payloads: Any) -> list[Delta]:
    found, error = read(lines(*payloads))
    assert error is None
    return found


def failure(*chunks: bytes) -> InferenceError:
    _, error = read(*chunks)
    assert error is not None
    return error


def test_o_3_thinking_content_and_calls_of_one_line_come_in_this_order() -> None:
    line = said(content="lo", thinking="late", tool_calls=[called("f", {"a": 1}, id="c")])
    assert [
        START,
        ReasoningDelta("late"),
        TextDelta("lo"),
        ToolCallDelta(0, "c", "f", '{"a":1}'),
        Finish("tool_calls", "stop"),
    ] == deltas(line, end())


def test_o_3_a_reply_that_is_not_streamed_is_a_stream_of_one_line() -> None:
    reply = end(content="Hello", prompt_eval_count=9, eval_count=3)
    usage = Usage(prompt_tokens=9, completion_tokens=3, total_tokens=12)
    expected = [START, TextDelta("Hello"), UsageDelta(usage), Finish("stop", "stop")]
    assert (expected, None) == read(json.dumps(reply).encode())


def test_ol_9_calls_without_ids_get_their_own_in_order_of_appearance() -> None:
    found = deltas(said(tool_calls=[called("f"), called("g", id=None)]), said(), end())
    assert [
        ToolCallDelta(0, "call_id2", "f", "{}"),
        ToolCallDelta(1, "call_id3", "g", "{}"),
    ] == found[1:-1]


def test_ol_9_equal_indexes_on_different_lines_are_different_calls() -> None:
    found = deltas(
        said(tool_calls=[called("f", id="a")]), said(tool_calls=[called("g", id="b")]), end()
    )
    calls = [(d.index, d.id, d.name) for d in found if isinstance(d, ToolCallDelta)]
    assert [(0, "a", "f"), (1, "b", "g")] == calls


@pytest.mark.parametrize("bad", ["oops", 7, None, [], {}])
def test_c_9_what_is_no_call_is_skipped(bad: Any) -> None:
    assert [START, Finish("stop", "stop")] == deltas(said(tool_calls=[bad]), end())


def test_a_call_without_a_name_is_left_to_the_tool_layer() -> None:
    found = deltas(said(tool_calls=[{"id": "a", "function": "oops"}]), end())
    assert ToolCallDelta(0, "a", "", "") == found[1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({}, "{}"), ({"b": 1, "a": "é"}, '{"b":1,"a":"é"}'), ('{"a":1}', '{"a":1}'), (None, "")],
)
def test_ol_9_arguments_are_serialised_and_text_passes(arguments: Any, text: str) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}
    found = deltas(said(tool_calls=[call]), end())
    assert ToolCallDelta(0, "call_id2", "f", text) == found[1]


def test_c_8_no_arguments_are_an_empty_object_in_the_reply() -> None:
    reply = assemble(deltas(said(tool_calls=[{"function": {"name": "f"}}]), end()))
    assert "{}" == reply.message.tool_calls[0].arguments


@pytest.mark.parametrize("calls", [(), (called("f"),)])
def test_ol_10_the_cap_ends_a_reply_also_with_calls(calls: tuple[Any, ...]) -> None:
    found = deltas(said(content="a", tool_calls=list(calls)), end(done_reason="length"))
    assert Finish("length", "length") == found[-1]


def test_ol_11_an_empty_last_line_says_nothing() -> None:
    assert [START, TextDelta("a"), Finish("stop", "stop")] == deltas(said(content="a"), end())


def test_ol_12_calls_are_read_from_any_line() -> None:
    last = end()
    last["message"]["tool_calls"] = [called("g", id="b")]
    found = deltas(said(tool_calls=[called("f", id="a")]), last)
    assert ["a", "b"] == [d.id for d in found if isinstance(d, ToolCallDelta)]
    assert Finish("tool_calls", "stop") == found[-1]


def test_ol_13_lines_and_characters_may_be_cut_anywhere() -> None:
    data = '{"message":{"content":"é🙂"},"done":false}\r\n\n \r\n{"done":true}'.encode()
    whole = read(data)
    assert whole == (
        [Start("chatcmpl-id1", None, 1_750_000_000), TextDelta("é🙂"), Finish("stop", None)],
        None,
    )
    for size in (1, 2, 3, 7):
        assert whole == read(*(data[i : i + size] for i in range(0, len(data), size)))


def test_ol_13_a_line_may_be_long() -> None:
    text = "x" * (4 * 1024 * 1024)
    assert TextDelta(text) == deltas(said(content=text), end())[1]


def test_ol_14_an_error_line_after_output_ends_the_reply() -> None:
    data = lines(said(content="par"), {"error": "runner died"}, end())
    found, error = read(data)
    assert [START, TextDelta("par")] == found
    assert isinstance(error, ProviderError)
    assert ("server_error", "runner died", True) == (error.kind, error.message, error.retryable)


def test_ol_14_an_error_line_may_be_the_first() -> None:
    found, error = read(lines({"error": "no memory", "status_code": 503}))
    assert [] == found
    assert isinstance(error, ProviderError)
    assert ("overloaded", 503) == (error.kind, error.peer_status)


@pytest.mark.parametrize(
    "data",
    [
        lines(said(content="par")),
        lines(said(content="par"))[:-1],
        lines(said(content="par")) + b'{"model":"m","crea',
        lines(said(content="par")) + b'{"model":"m","message":{"content":"\xc3',
        b'{"model":"m","message":{"content":"he',
        b"",
        b" \n\n",
    ],
)
def test_ol_15_a_reply_that_just_ends_is_incomplete(data: bytes) -> None:
    error = failure(data)
    assert isinstance(error, TruncatedReply)
    assert ("incomplete_stream", True) == (error.kind, error.retryable)


def test_ol_15_done_must_be_true() -> None:
    assert isinstance(failure(lines(said(done="yes"), {**end(), "done": 1})), TruncatedReply)


@pytest.mark.parametrize("reason", [None, "stop", "load", "unload", "something new"])
def test_ol_16_every_other_reason_is_stop_and_keeps_its_word(reason: str | None) -> None:
    assert Finish("stop", reason) == deltas(end(done_reason=reason))[-1]


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_eval_count": 9, "eval_count": 3}, (9, 3, 12)),
        ({"eval_count": 3}, (0, 3, 3)),
        ({"prompt_eval_count": 9}, (9, 0, 9)),
        ({"prompt_eval_count": 0, "eval_count": 0}, (0, 0, 0)),
        ({"prompt_eval_count": None, "eval_count": "3"}, None),
        ({}, None),
    ],
)
def test_ol_17_an_absent_count_is_0_beside_the_other_one(
    counts: dict[str, Any], usage: tuple[int, int, int] | None
) -> None:
    reply = assemble(deltas(end(**counts)))
    if usage is None:
        assert reply.usage is None
    else:
        prompt, completion, total = usage
        assert reply.usage == Usage(
            prompt_tokens=prompt, completion_tokens=completion, total_tokens=total
        )


def test_ol_17_counts_before_the_last_line_are_none() -> None:
    assert None is assemble(deltas({**said(), "eval_count": 3}, end())).usage


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000),
        ("2023-11-14T23:13:20.1+01:00", 1_700_000_000),
        ("2023-11-14t22:13:20z", 1_700_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (1_700_000_000, None),
    ],
)
def test_ol_18_times_have_up_to_nine_digits_and_any_offset(
    text: object, seconds: int | None
) -> None:
    assert seconds == unix_seconds(text)


def test_ol_18_a_reply_without_a_time_is_of_now() -> None:
    assert Start("chatcmpl-id1", "m", 1_750_000_000) == deltas({**end(), "created_at": "?"})[0]


def error(status: int, body: bytes) -> ProviderError:
    return OLLAMA.codec.decode_error(status, {}, body, now=lambda: NOW)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "authentication", False),
        (403, "permission", False),
        (404, "not_found", False),
        (499, "canceled", False),
        (500, "server_error", True),
        (503, "overloaded", True),
    ],
)
def test_ol_19_statuses_have_their_kinds(status: int, kind: str, retryable: bool) -> None:
    found = error(status, b'{"error":"text"}')
    assert (kind, status, "text", retryable, None) == (
        found.kind,
        found.peer_status,
        found.message,
        found.retryable,
        found.retry_after,
    )


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (401, {"error": "unauthorized", "signin_url": "https://x/c"}, "https://x/c"),
        (401, {"error": "unauthorized"}, None),
        (400, {"error": '"m" does not support thinking'}, "no effort"),
        (400, {"error": "invalid format"}, None),
        (404, {"error": "model 'm' not found"}, "ollama pull"),
        (404, {"error": "page not found"}, None),
    ],
)
def test_ol_19_known_refusals_come_with_advice(
    status: int, body: dict[str, str], hint: str | None
) -> None:
    found = error(status, json.dumps(body).encode())
    assert body["error"] == found.message
    assert (hint is None) is (found.hint is None)
    assert (hint or "") in (found.hint or "")


def test_ol_23_counts_are_those_of_the_last_line() -> None:
    found = deltas(
        {**said(thinking="t"), "eval_count": 50},
        said(content="{}"),
        end(prompt_eval_count=9, eval_count=3),
    )
    usage = Usage(prompt_tokens=9, completion_tokens=3, total_tokens=12)
    assert UsageDelta(usage) == found[-2]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (502, b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (404, b"404 page not found", "404 page not found"),
        (500, b"", "The provider answered status 500 and no message."),
        (500, b"x" * 600, "x" * 500),
    ],
)
def test_ol_27_a_proxys_error_is_its_text(status: int, body: bytes, message: str) -> None:
    assert message == error(status, body).message


@pytest.mark.parametrize(
    "data",
    [
        b"<html>Hello</html>",
        b"Hello\n",
        b"data: {}\n\n",
        b'{"a":1}{"b":2}\n',
        b"[]",
        b'"text"',
        b"null",
        b'\x1f\x8b\x08{"done":true}',
        lines(said(content="a")) + b"oops\n",
    ],
)
def test_ol_27_what_is_no_reply_of_ollama_is_said_so(data: bytes) -> None:
    found = failure(data)
    assert type(found) is ReplyError
    assert "bad_response" == found.kind


@pytest.mark.parametrize("layout", [2, "\t"])
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_a_plain_reply_laid_out_over_several_lines_is_read(layout: int | str, size: int) -> None:
    reply = end(content="Hello\n", tool_calls=[], eval_count=3)
    data = json.dumps(reply, indent=layout).encode()
    found = read(*(data[i : i + size] for i in range(0, len(data), size)))
    assert read(lines(reply)) == found


def test_an_error_laid_out_over_several_lines_is_read() -> None:
    found = failure(json.dumps({"error": "no"}, indent=2).encode())
    assert isinstance(found, ProviderError)
    assert "no" == found.message


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{\n  "done": true,\n', "incomplete_stream"),
        (b'{\n  "done": false\n}\n', "incomplete_stream"),
        (b"{\n  oops\n}\n", "bad_response"),
        (b'{\n  "done": true\n}\n{\n  "done": true\n}\n', "bad_response"),
        (b"[\n]\n", "bad_response"),
    ],
)
def test_what_is_laid_out_over_several_lines_and_no_reply_is_said_so(
    data: bytes, kind: str
) -> None:
    assert kind == failure(data).kind


def test_a_reply_over_endless_lines_is_an_error_and_not_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("woollama.core.wire.ollama_reading.LIMIT_BYTES", 100)
    assert "longer than 100 bytes" in failure(b"{\n" + b'"a":\n' * 100).message


def test_a_reply_given_as_one_object_is_read_too() -> None:
    out: list[Delta] = []
    OllamaReading(new_id=lambda: "id1", now=lambda: NOW).whole(end(content="a"), out)
    assert [START, TextDelta("a"), Finish("stop", "stop")] == out


def test_what_comes_behind_the_end_does_not_count() -> None:
    reading = decoder()
    reading.feed(lines(end(), said(content="late"), {"error": "late"}))
    assert reading.done
    assert () == reading.feed(lines(said(content="later")))
    assert (Finish("stop", "stop"),) == reading.finish()


def test_p_24_a_fault_is_raised_again_and_nothing_finishes() -> None:
    reading = decoder()
    assert 2 == len(reading.feed(lines(said(content="a"), {"error": "no"})))
    assert reading.done
    with pytest.raises(ProviderError):
        reading.feed(b"")
    with pytest.raises(ProviderError):
        reading.finish()


def test_c_9_unknown_keys_and_shapes_are_ignored() -> None:
    odd = {**HEAD, "message": "text", "hologram": [1], "done": None}
    more: dict[str, Any] = {
        "message": {"content": [1], "thinking": 7, "tool_calls": {}},
        "model": 9,
    }
    assert [Start("chatcmpl-id1", None, 1_750_000_000), Finish("stop", "stop")] == deltas(
        more, end()
    )
    assert [START, Finish("stop", "stop")] == deltas(odd, end())


def test_the_model_list_is_read_by_name() -> None:
    body = {
        "models": [
            {"name": "qwen3:4b", "modified_at": "2023-11-14T22:13:20Z", "size": 1},
            {"name": "b"},
            {"name": ""},
            {},
            7,
        ]
    }
    found = OLLAMA.codec.decode_models(json.dumps(body).encode())
    assert [("qwen3:4b", 1_700_000_000), ("b", None)] == [(m.id, m.created) for m in found]


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"models":null}', b"<html>"])
def test_what_is_no_model_list_is_said_so(body: bytes) -> None:
    with pytest.raises(ReplyError):
        OLLAMA.codec.decode_models(body)


def test_c_3_the_probabilities_of_tokens_come_back() -> None:
    tokens = [{"token": text, "logprob": -0.5, "bytes": [97]} for text in ("a", "b")]
    first = {**said(content="a"), "logprobs": tokens[:1]}
    second = {**said(content="b"), "logprobs": tokens[1:]}
    found = deltas(first, second, end())
    given = OpaqueDelta("compatible", "logprobs", {"content": tokens[:1]})
    assert [START, TextDelta("a"), given] == found[:3]
    assert {"content": tokens} == assemble(found).to_openai()["choices"][0]["logprobs"]
