"""Object or stream, by the first byte; faults behind good deltas; limits (C-14, C-15)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.cutting import CUTS, pieces_of, singles
from woollama.core.canonical import Delta, TextDelta
from woollama.core.errors import InferenceError, ReplyError, TruncatedReply
from woollama.core.wire import framing
from woollama.core.wire.framing import ReplyDecoder, parse
from woollama.core.wire.ndjson import LineSplitter
from woollama.core.wire.sse import EventSplitter


class Echo:
    """A reading whose events are texts; `bad` fails, `end` ends."""

    def whole(self, payload: Any, out: list[Delta]) -> None:
        out.append(TextDelta(f"whole:{payload}"))

    def event(self, data: bytes, out: list[Delta]) -> bool:
        if data == b"bad":
            raise ReplyError("bad")
        out.append(TextDelta(data.decode()))
        return data == b"end"

    def end(self, out: list[Delta]) -> None:
        out.append(TextDelta("|"))


def decoder(*, lines: bool = False) -> ReplyDecoder:
    if lines:
        return ReplyDecoder(Echo(), LineSplitter(), objects=False)
    return ReplyDecoder(Echo(), EventSplitter())


def texts(*pieces: bytes, lines: bool = False) -> tuple[list[str], str | None]:
    """The texts in order, and the error they end with."""
    one = decoder(lines=lines)
    out: list[str] = []
    try:
        for piece in pieces:
            out += [delta.text for delta in one.feed(piece) if isinstance(delta, TextDelta)]
        out += [delta.text for delta in one.finish() if isinstance(delta, TextDelta)]
    except InferenceError as error:
        return out, f"{type(error).__name__}: {error}"
    return out, None


EVENTS = b"data: a\n\ndata: b\n\n"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b'{"x": 1}', ["whole:{'x': 1}"]),
        (b"[1]", ["whole:[1]"]),
        (b' \r\n\t{"x": 1} ', ["whole:{'x': 1}"]),
        (b'\xef\xbb\xbf{"x": 1}', ["whole:{'x': 1}"]),
        (EVENTS, ["a", "b", "|"]),
        (b"\n\n" + EVENTS, ["a", "b", "|"]),
        (b"\xef\xbb\xbf" + EVENTS, ["a", "b", "|"]),
        (b": ping\n\n" + EVENTS, ["a", "b", "|"]),
        (b"data: {}\n\n", ["{}", "|"]),
    ],
)
def test_c_14_the_first_byte_tells_an_object_from_a_stream(
    reply: bytes, expected: list[str]
) -> None:
    assert (expected, None) == texts(reply)
    assert (expected, None) == texts(*singles(reply))


def test_lines_of_json_are_no_object() -> None:
    assert (['{"a": 1}', "|"], None) == texts(b'{"a": 1}\n', lines=True)


@given(st.sampled_from([EVENTS, b' {"x": [1, 2]}', b"\xef\xbb\xbf: c\n\n" + EVENTS]), CUTS)
def test_any_cut_gives_the_same_deltas(reply: bytes, cuts: list[int]) -> None:
    assert texts(reply) == texts(*pieces_of(reply, cuts))


def test_what_follows_the_end_is_not_read() -> None:
    one = decoder()
    assert (TextDelta("end"),) == one.feed(b"data: end\n\ndata: bad\n\n")
    assert one.done
    assert () == one.feed(b"data: bad\n\n")
    assert (TextDelta("|"),) == one.finish()


def test_a_fault_behind_good_deltas_is_raised_by_the_next_call() -> None:
    one = decoder()
    assert (TextDelta("a"),) == one.feed(b"data: a\n\ndata: bad\n\ndata: b\n\n")
    assert one.done
    with pytest.raises(ReplyError, match="bad"):
        one.feed(b"data: c\n\n")
    with pytest.raises(ReplyError, match="bad"):
        one.finish()


def test_a_fault_before_any_delta_is_raised_at_once_and_again() -> None:
    one = decoder()
    with pytest.raises(ReplyError, match="bad"):
        one.feed(b"data: bad\n\n")
    with pytest.raises(ReplyError, match="bad"):
        one.finish()


@pytest.mark.parametrize("reply", [b"", b" \n", b"\xef\xbb\xbf", b"\xef", b": ping\n\n"])
def test_c_15_nothing_is_no_reply(reply: bytes) -> None:
    for pieces in ([reply], singles(reply)):
        assert ([], "TruncatedReply: The provider's reply is empty.") == texts(*pieces)


@pytest.mark.parametrize("reply", [b'{"x":', b"[1, 2", b'{"x": "a'])
def test_c_15_an_object_that_stops_in_the_middle_is_cut(reply: bytes) -> None:
    out, fault = texts(reply)
    assert [] == out
    assert fault is not None
    assert fault.startswith("TruncatedReply")


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (b"<html>busy</html>", "<html>busy</html>"),
        (b"  upstream\n\nbusy\n\n", "upstream\n\nbusy"),
        (b"<p>" * 1000, ("<p>" * 1000)[:500]),
    ],
)
def test_text_that_is_neither_is_shown_whatever_the_cut(reply: bytes, shown: str) -> None:
    for pieces in ([reply], singles(reply)):
        one = decoder()
        for piece in pieces:
            one.feed(piece)
        with pytest.raises(ReplyError, match="neither JSON nor a stream of events") as caught:
            one.finish()
        assert shown == caught.value.payload


def test_an_object_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LIMIT_BYTES", 10)
    one = decoder()
    one.feed(b'{"a": ')
    with pytest.raises(ReplyError, match="longer than 10 bytes"):
        one.feed(b'"xxxxxxxx')
    assert one.done
    with pytest.raises(ReplyError, match="longer than 10 bytes"):
        one.finish()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"a": 1', TruncatedReply),
        (b"", TruncatedReply),
        (b"{'a': 1}", ReplyError),
        (b"\xff", ReplyError),
        (b"[" * 100_000 + b"]" * 100_000, ReplyError),
    ],
)
def test_what_is_no_json_is_refused_with_its_beginning(data: bytes, kind: type[ReplyError]) -> None:
    with pytest.raises(ReplyError) as caught:
        parse(data)
    assert kind is type(caught.value)
    assert data[:500].decode(errors="replace") == caught.value.payload
