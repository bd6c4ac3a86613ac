"""Server-sent events: any cut of the bytes gives the same events (C-11, C-12)."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.wire.cutting import CUTS, fed, pieces_of, singles, slices_of
from woollama.core.errors import ReplyError
from woollama.core.wire import sse
from woollama.core.wire.sse import EventSplitter


def split(*pieces: bytes) -> list[bytes]:
    splitter = EventSplitter()
    return [*(data for piece in pieces for data in splitter.feed(piece)), *splitter.finish()]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\r", [b"a"]),
        (b"data: a\r\n\n", [b"a"]),
        (b"data: a\n\r\n", [b"a"]),
        (b"data: a", [b"a"]),
        (b"data: a\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\ndata\ndata: b\n\n", [b"a\n\nb"]),
        (b": comment\n\ndata: a\n\n", [b"a"]),
        (b": c\ndata: a\n: d\n\n", [b"a"]),
        (b"event: x\nid: 1\nretry: 3\ndata: a\n\n", [b"a"]),
        (b"event: ping\n\n", []),
        (b"data:\n\n", []),
        (b"data: \n\n", []),
        (b"data\n\n", []),
        (b"data: \n\ndata: a\n\n", [b"a"]),
        (b"\n\n\n\ndata: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\n\ndata: b\n\ndata: c", [b"a", b"b", b"c"]),
        (b"", []),
        (b"\n", []),
        ("data: ä€\U0001f600\n\n".encode(), ["ä€\U0001f600".encode()]),
    ],
)
def test_c_11_a_stream_is_split_into_the_data_of_its_events(
    stream: bytes, events: list[bytes]
) -> None:
    assert events == split(stream)
    assert events == split(*singles(stream))


def by_the_standard(stream: bytes) -> list[bytes]:
    """The events as the standard says, but for the last one, which needs no blank line (C-12)."""
    events: list[bytes] = []
    data: list[bytes] = []
    for line in [*re.split(rb"\r\n|\r|\n", stream), b""]:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif not line:
            joined = b"\n".join(data)
            events += [joined] if joined else []
            data = []
    return events


STREAMS = st.lists(
    st.sampled_from(
        [b"\n", b"\r", b"\r\n", b"data", b":", b" ", b"data: ", b"event: e", b"x", b"\xc3\xa9"]
    ),
    max_size=40,
).map(b"".join)


@given(STREAMS, CUTS)
@example(b"data: x\r\n\ndata: y\n\n", [8, 9, 10])
@example(b"\r\n\n", [1, 2])
def test_any_cut_gives_the_events_that_the_standard_gives(stream: bytes, cuts: list[int]) -> None:
    expected = by_the_standard(stream)
    assert expected == split(stream)
    assert expected == split(*pieces_of(stream, cuts))
    assert expected == split(*singles(stream))


@pytest.mark.parametrize(
    ("stream", "foreign"),
    [
        (b"data: a\n\n", False),
        (b": c\nid:1\nevent: x\nretry: 1\n\n", False),
        (b"<html>\n\n", True),
        (b"error: x\n\n", True),
        (b"no colon", True),
    ],
)
def test_a_line_that_no_event_stream_has_is_noticed(stream: bytes, *, foreign: bool) -> None:
    splitter = EventSplitter()
    splitter.feed(stream)
    splitter.finish()
    assert foreign is splitter.foreign


@pytest.mark.parametrize("size", [1, 7, 64])
def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(sse, "LIMIT_BYTES", 100)
    long = b"data: ok\n\ndata: " + b"x" * 200 + b"\n\ndata: more\n\n"
    splitter = EventSplitter()
    with pytest.raises(ReplyError, match="longer than 100 bytes"):
        fed(splitter.feed, slices_of(long, size))


def test_many_short_events_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LIMIT_BYTES", 20)
    assert [b"x"] * 50 == split(b"data: x\n\n" * 50)
