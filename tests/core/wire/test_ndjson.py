"""JSON lines: any cut of the bytes gives the same lines (C-13)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.cutting import CUTS, fed, pieces_of, singles, slices_of
from woollama.core.errors import ReplyError
from woollama.core.wire import ndjson
from woollama.core.wire.ndjson import LineSplitter


def split(*pieces: bytes) -> list[bytes]:
    splitter = LineSplitter()
    return [*(line for piece in pieces for line in splitter.feed(piece)), *splitter.finish()]


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b'{"a": 1}\n{"b": 2}\n', [b'{"a": 1}', b'{"b": 2}']),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\n\n\r\n \nb", [b"a", b"b"]),
        (b"a", [b"a"]),
        (b"", []),
        ("ä\n€".encode(), ["ä".encode(), "€".encode()]),
    ],
)
def test_c_13_a_stream_is_split_at_line_feeds(stream: bytes, lines: list[bytes]) -> None:
    assert lines == split(stream)
    assert lines == split(*singles(stream))


@given(st.lists(st.sampled_from([b"\n", b"\r", b"a", b" ", b'{"b": 1}'])).map(b"".join), CUTS)
def test_any_cut_gives_the_same_lines(stream: bytes, cuts: list[int]) -> None:
    expected = [line.strip() for line in stream.split(b"\n") if line.strip()]
    assert expected == split(stream)
    assert expected == split(*pieces_of(stream, cuts))
    assert expected == split(*singles(stream))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(ndjson, "LIMIT_BYTES", 100)
    long = b"ok\n" + b"x" * 200 + b"\nmore\n"
    splitter = LineSplitter()
    with pytest.raises(ReplyError, match="longer than 100 bytes"):
        fed(splitter.feed, slices_of(long, size))


def test_many_short_lines_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "LIMIT_BYTES", 20)
    assert [b"x"] * 50 == split(b"x\n" * 50)
