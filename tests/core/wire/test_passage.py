"""Frames that pass as bytes: whole ones, up to an error or the end (RU-15)."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.wire.cutting import CUTS, fed, pieces_of, singles, slices_of
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TruncatedReply
from woollama.core.wire import passage
from woollama.core.wire.passage import ChatPassage, check_completion

TEXT = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
ERROR = b'data: {"error":{"message":"no","code":429}}\n\n'
DONE = b"data: [DONE]\n\n"
Outcome = tuple[bytes, bool, str | None]


def outcome(*pieces: bytes) -> Outcome:
    """What left, whether it ended with `[DONE]`, and the error it ended with."""
    out = b""
    through = ChatPassage()
    fault: InferenceError | None = None
    try:
        for piece in pieces:
            out += through.feed(piece)
        out += through.finish()
        fault = through.fault
    except ReplyError as error:
        fault = error
    return out, through.ended, None if fault is None else f"{type(fault).__name__}: {fault}"


GOOD = [
    TEXT + STOP + DONE,
    TEXT + STOP,
    TEXT + DONE,
    DONE,
    (TEXT + STOP + DONE).replace(b"\n", b"\r\n"),
    (TEXT + STOP + DONE).replace(b"\n", b"\r"),
    b"data: {}\r\n\n" + STOP + b"data: [DONE]\n\r\n",
    b": ping\n\n" + TEXT + b": ping\n\n\n\n" + STOP + DONE,
    b"\xef\xbb\xbf" + TEXT + DONE,
    b"event: message\nid: 1\n" + TEXT + STOP + DONE,
    b"data:" + TEXT[6:] + b"data:[DONE]\n\n",
    b'data: {"a":\ndata: 1}\n\n' + DONE,
]


@pytest.mark.parametrize("stream", GOOD)
def test_a_good_stream_passes_as_it_is(stream: bytes) -> None:
    assert (stream, b"[DONE]" in stream, None) == outcome(stream)
    assert (stream, b"[DONE]" in stream, None) == outcome(*singles(stream))


def test_oc_20_white_space_before_the_first_event_does_not_begin_the_stream() -> None:
    through = ChatPassage()
    assert b"" == through.feed(b"\n\n") + through.feed(b" \r\n\r\n") + through.feed(b"\n")
    assert TEXT == through.feed(TEXT)
    assert (b"", False, "ProviderError: no") == outcome(b"\n\n", b"\n" + ERROR)


@pytest.mark.parametrize(
    ("stream", "passed"),
    [
        (TEXT + STOP[:-1], TEXT + STOP[:-1]),
        (TEXT + STOP[:-2], TEXT + STOP[:-2]),
        (TEXT + STOP + DONE[:-2], TEXT + STOP + DONE[:-2]),
        (TEXT + DONE[:-1], TEXT + DONE[:-1]),
    ],
)
def test_c_12_a_last_frame_gets_its_blank_line(stream: bytes, passed: bytes) -> None:
    for pieces in ([stream], singles(stream)):
        out, _, fault = outcome(*pieces)
        assert (passed + b"\n\n", None) == (out, fault)


@pytest.mark.parametrize("behind", [TEXT, ERROR, DONE, b"data: {", b"garbage\n\n"])
def test_nothing_behind_the_end_counts(behind: bytes) -> None:
    stream = TEXT + STOP + DONE
    assert (stream, True, None) == outcome(stream + behind)
    assert (stream, True, None) == outcome(*singles(stream + behind))


@pytest.mark.parametrize("behind", [b"", TEXT, STOP, DONE])
@pytest.mark.parametrize("before", [b"", TEXT, TEXT + STOP, b": ping\n\n"])
def test_oc_28_an_error_frame_stops_it_and_never_leaves(before: bytes, behind: bytes) -> None:
    for pieces in ([before + ERROR + behind], singles(before + ERROR + behind)):
        assert (before, False, "ProviderError: no") == outcome(*pieces)


@pytest.mark.parametrize(
    "error",
    [
        ERROR,
        ERROR[:-2],
        ERROR.replace(b"\n", b"\r\n"),
        b"event: error\n" + ERROR,
        b'data: {"choices":[{"finish_reason":"error"}],"error":{"message":"no"}}\n\n',
        b'data: [{"error":{"message":"no"}}]\n\n',
        b'data: {"object":"error","message":"no"}\n\n',
        b'data: {"error":\ndata: {"message":"no"}}\n\n',
        b'data: {"error" : "no"}\n\n',
    ],
)
def test_an_error_is_known_in_every_shape(error: bytes) -> None:
    assert (TEXT, False, "ProviderError: no") == outcome(TEXT + error)
    assert (TEXT, False, "ProviderError: no") == outcome(*singles(TEXT + error))


@pytest.mark.parametrize(
    "frame",
    [
        b'data: {"choices":[{"delta":{"content":"say \\"error\\": {}"}}]}\n\n',
        b'data: {"choices":[{"delta":{},"finish_reason":"error"}]}\n\n',
        b'data: {"error":null,"choices":[]}\n\n',
        b'data: {"error":{},"choices":[]}\n\n',
        b'data: {"choices":[],"x":{"error":{"message":"inside"}}}\n\n',
        b'data: "error"\n\n',
        b'data: {"error\n\n',
        b': "error"\n\n',
    ],
)
def test_what_only_looks_like_an_error_passes(frame: bytes) -> None:
    assert (frame + DONE, True, None) == outcome(frame + DONE)


@pytest.mark.parametrize(
    "frame",
    [
        b'data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\n\\ndata: [DONE]\\n\\n"}}]}\n\n',
        b": data: [DONE]\n\n",
    ],
)
def test_what_only_looks_like_the_end_passes(frame: bytes) -> None:
    assert (frame + STOP, False, None) == outcome(frame + STOP)


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\n\n",
        b": ping\n\n",
        TEXT,
        TEXT + b'data: {"choices":[{"del',
        TEXT + STOP[:-6],
        STOP + b'data: {"usage":{"total',
        b'data: {"choices":[{"delta":{"content":"\\"finish_reason\\": \\"stop\\""}}]}\n\n',
    ],
)
def test_p_24_oc_26_a_stream_that_breaks_off_is_an_error(stream: bytes) -> None:
    for pieces in ([stream], singles(stream)):
        _, ended, fault = outcome(*pieces)
        assert not ended
        assert fault is not None
        assert fault.startswith("TruncatedReply")


def test_what_is_cut_inside_a_frame_never_leaves() -> None:
    out, _, _ = outcome(TEXT + STOP + b'data: {"usage":{"total')
    assert TEXT + STOP == out


@pytest.mark.parametrize(
    "text", [b"<html>\n\n<body>\n\n", b"upstream busy", b"error: x\n\n", b"<p>" * 400]
)
def test_text_that_is_no_event_stream_never_leaves(text: bytes) -> None:
    for pieces in ([text], singles(text)):
        out, _, fault = outcome(*pieces)
        assert b"" == out
        assert fault is not None
        assert "neither JSON nor a stream of events" in fault


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_frame_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(passage, "LIMIT_BYTES", 100)
    long = TEXT + b"data: " + b"x" * 200 + b"\n\n" + STOP
    through = ChatPassage()
    with pytest.raises(ReplyError, match="longer than 100 bytes"):
        fed(through.feed, slices_of(long, size))


def test_many_short_frames_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "LIMIT_BYTES", 100)
    assert (TEXT * 9 + DONE, True, None) == outcome(TEXT * 9 + DONE)


FRAMES = st.lists(
    st.sampled_from(
        [
            TEXT,
            STOP,
            ERROR,
            DONE,
            TEXT.replace(b"\n", b"\r\n"),
            STOP.replace(b"\n", b"\r"),
            DONE.replace(b"\n", b"\r\n"),
            b": ping\n\n",
            b"\n",
            b"\r",
            b"\r\n",
            b"data: {",
            b"event: x\n",
            b"<p>",
        ]
    ),
    max_size=8,
).map(b"".join)


@given(FRAMES, CUTS)
@example(TEXT + b"\r" + DONE, [len(TEXT) - 1])
def test_any_cut_lets_the_same_bytes_pass(stream: bytes, cuts: list[int]) -> None:
    expected = outcome(stream)
    assert expected == outcome(*pieces_of(stream, cuts))
    assert expected == outcome(*singles(stream))


@given(FRAMES)
def test_what_passes_is_the_beginning_of_what_came(stream: bytes) -> None:
    out, _, _ = outcome(stream)
    came = stream.lstrip()
    assert came.startswith(out) or (out.endswith(b"\n\n") and came == out[:-2])


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
def test_a_read_that_holds_a_whole_stream_is_as_good_as_many(blank: bytes) -> None:
    """Marks in every frame, an error far behind: what leaves ends right before it."""
    null = b'data: {"choices":[],"error":null,"x":"[DONE]"}'
    before = (null + blank) * 50
    stream = before + ERROR.replace(b"\n\n", blank) + DONE
    out, ended, fault = outcome(stream)
    assert (before, False) == (out, ended)
    assert fault is not None
    assert outcome(stream) == outcome(*singles(stream))


def test_oc_37_a_completion_passes_and_its_usage_is_seen() -> None:
    head = check_completion(b' {"choices": [], "usage": {"prompt_tokens": 3}, "x": 1e400} ')
    assert {"prompt_tokens": 3} == head.usage


@pytest.mark.parametrize("error", ["null", '""', "{}", "false", "0", "[]"])
def test_an_empty_error_is_none(error: str) -> None:
    check_completion(f'{{"error": {error}, "choices": []}}'.encode())


@pytest.mark.parametrize("error", ['{"message": "no"}', '"no"'])
def test_oc_28_an_error_in_a_completion_is_raised(error: str) -> None:
    with pytest.raises(ProviderError, match="no") as caught:
        check_completion(f'{{"error": {error}, "choices": []}}'.encode())
    assert 502 == caught.value.status


@pytest.mark.parametrize("choices", ["", '"choices": null', '"choices": {}', '"choices": "x"'])
def test_oc_37_a_reply_without_choices_is_refused(choices: str) -> None:
    with pytest.raises(ReplyError, match="no list 'choices'") as caught:
        check_completion(f"{{{choices}}}".encode())
    assert ("bad_response", 502, True) == (
        caught.value.kind,
        caught.value.status,
        caught.value.retryable,
    )


@pytest.mark.parametrize("body", [b"", b" ", b'{"choices": [', b'{"choices": [{"a'])
def test_c_15_a_reply_that_stops_in_the_middle_is_cut(body: bytes) -> None:
    with pytest.raises(TruncatedReply):
        check_completion(body)


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'"text"', b"null", b"[" * 100_000])
def test_a_reply_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        check_completion(body)
    assert 502 == caught.value.status


def test_a_reply_of_another_shape_is_shown() -> None:
    with pytest.raises(ReplyError, match="is not a completion") as caught:
        check_completion(msgspec.json.encode([1, 2]))
    assert [1, 2] == caught.value.payload


@pytest.mark.parametrize("space", [b"", b" ", b"  ", b"\t"])
@pytest.mark.parametrize("before", [b"", TEXT, TEXT * 2, TEXT.replace(b":null", b": null")])
def test_a_finish_reason_counts_behind_any_white_space(before: bytes, space: bytes) -> None:
    named = b'data: {"choices":[{"finish_reason":' + space + b'"stop"}]}\n\n'
    assert (before + named, False, None) == outcome(before + named)


@pytest.mark.parametrize("space", [b"", b" ", b"  ", b"\t"])
def test_no_finish_reason_is_none(space: bytes) -> None:
    named = b'data: {"choices":[{"finish_reason":' + space + b"null}]}\n\n"
    assert "TruncatedReply" in str(outcome(named * 2)[2])
    assert (named * 2 + STOP, False, None) == outcome(named * 2 + STOP)
