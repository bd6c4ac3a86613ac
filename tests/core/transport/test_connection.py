"""One connection of the fast transport, fed by hand: no socket, every cut of the bytes."""

import asyncio
from collections.abc import Iterable
from itertools import pairwise

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.testing.upstream import chunked, head, whole
from woollama.core.transport.connection import UNREAD_LIMIT_BYTES, Connection, NotHttp

REPLIES = {
    "length": (whole(b'{"a": 1}', headers={"X-A": "1"}), 200, b'{"a": 1}'),
    "chunked": (
        head(headers={"transfer-encoding": "chunked"}) + chunked([b"data: 1\n\n", b"data: 2\n\n"]),
        200,
        b"data: 1\n\ndata: 2\n\n",
    ),
    "trailers": (
        head(headers={"transfer-encoding": "chunked"})
        + chunked([b"one"], end=False)
        + b"0\r\nx-trailer: 1\r\n\r\n",
        200,
        b"one",
    ),
    "interim": (b"HTTP/1.1 100 Continue\r\nx: 1\r\n\r\n" + whole(b"{}", status=418), 418, b"{}"),
    "empty": (head(204), 204, b""),
}


class Wire(asyncio.Transport):
    """What an event loop would hand to a protocol; keeps what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.aborted = False
        self.reading = True
        self.waiting_bytes = 0

    def write(self, data: "bytes | bytearray | memoryview[int]") -> None:
        self.sent += bytes(data)

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def connected() -> tuple[Connection, Wire]:
    made, wire = Connection(asyncio.get_running_loop()), Wire()
    made.connection_made(wire)
    made.send(b"POST / HTTP/1.1\r\n\r\n", b"{}")
    return made, wire


def feed(made: Connection, pieces: Iterable[bytes]) -> bytes:
    """What a reader has of the body after these reads."""
    body = b""
    for piece in pieces:
        made.data_received(piece)
        if made.begun:
            body += made.take() or b""
    return body


def test_the_request_is_sent_as_given() -> None:
    async def ask() -> bytes:
        return connected()[1].sent

    assert b"POST / HTTP/1.1\r\n\r\n{}" == asyncio.run(ask())


@pytest.mark.parametrize("name", REPLIES)
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
def test_a_reply_may_be_cut_anywhere(name: str, cuts: list[int]) -> None:
    data, status, body = REPLIES[name]
    marks = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(marks) if a < b]

    async def ask() -> None:
        made, wire = connected()
        for _ in range(2):
            got = feed(made, pieces)
            assert (status, body, b"") == (made.status, got, made.take())
            assert b"x" not in dict(made.headers), "a header of an interim reply"
            assert made.finish(), "it carries the next request"
            made.send(b"", b"")
        assert not wire.aborted

    asyncio.run(ask())


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    made, _ = connected()
    assert b"all of it" == feed(made, [head(), b"all ", b"of it"])
    assert made.take() is None
    made.connection_lost(None)
    assert b"" == made.take()
    assert not made.finish()


@pytest.mark.parametrize("headers", [{"content-length": "9"}, {"transfer-encoding": "chunked"}])
async def test_a_framed_body_that_ends_too_early_is_cut(headers: dict[str, str]) -> None:
    made, _ = connected()
    made.data_received(head(headers=headers))
    made.connection_lost(None)
    with pytest.raises(ConnectionResetError):
        made.take()
    with pytest.raises(ConnectionResetError):
        await made.arrival()


async def test_who_waits_is_told_of_the_limit() -> None:
    made, _ = connected()
    made.give_up_at(made.loop.time())
    with anyio.fail_after(5), pytest.raises(TimeoutError):
        await made.arrival()


async def test_a_limit_that_was_put_off_does_not_pass() -> None:
    """A timer that rings too early looks at the limit that is set now."""
    made, _ = connected()
    now = made.loop.time()
    made.give_up_at(now)
    made.give_up_at(now + 60)
    passed = asyncio.Event()
    made.loop.call_at(now, passed.set)
    await passed.wait()
    made.data_received(whole(b"{}"))
    assert b"{}" == made.take()


async def test_a_limit_that_was_taken_back_does_not_pass() -> None:
    made, _ = connected()
    now = made.loop.time()
    made.give_up_at(now)
    made.give_up_at(None)
    passed = asyncio.Event()
    made.loop.call_at(now, passed.set)
    await passed.wait()
    made.data_received(whole(b"{}"))
    assert b"{}" == made.take()


async def test_a_limit_that_comes_nearer_passes_in_time() -> None:
    made, _ = connected()
    made.give_up_at(made.loop.time() + 60)
    made.give_up_at(made.loop.time())
    with anyio.fail_after(5), pytest.raises(TimeoutError):
        await made.arrival()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "Expected HTTP/"),
        (head(headers={"x": "v" * 70_000}), "its head is longer than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"v" * 70_000, "its head is longer than 65536 bytes"),
        (head(101, {"connection": "upgrade", "upgrade": "x"}), "changes the protocol"),
    ],
    ids=["no HTTP", "long head", "endless head", "another protocol"],
)
async def test_what_is_no_reply_is_told_so(data: bytes, words: str) -> None:
    made, wire = connected()
    made.data_received(data)
    with pytest.raises(NotHttp, match=words):
        await made.arrival()
    assert not made.finish()
    assert wire.aborted


@pytest.mark.parametrize("more", [whole(b"smuggled"), b"HTTP", b"?"])
async def test_what_comes_behind_a_reply_belongs_to_no_request(more: bytes) -> None:
    """It would else be taken for the reply to the next request."""
    made, wire = connected()
    assert b"{}" == feed(made, [whole(b"{}") + more])
    assert b"" == made.take()
    assert not made.finish()
    assert wire.aborted


async def test_a_connection_on_which_something_comes_unasked_is_ended() -> None:
    made, wire = connected()
    feed(made, [whole(b"{}")])
    assert made.finish()
    made.data_received(whole(b"unasked"))
    assert wire.aborted


async def test_a_reply_that_comes_before_the_request_is_out_ends_the_connection() -> None:
    """The server will not read the rest of a body that it has answered."""
    made, wire = connected()
    wire.waiting_bytes = 1000
    feed(made, [whole(b"{}")])
    assert not made.finish()


async def test_a_reader_who_leaves_early_ends_the_connection() -> None:
    made, wire = connected()
    feed(made, [head(headers={"content-length": "9"}) + b"part"])
    assert not made.finish()
    assert wire.aborted


async def test_reading_stops_while_nobody_takes_the_body() -> None:
    made, wire = connected()
    size = 3 * UNREAD_LIMIT_BYTES
    made.data_received(head(headers={"content-length": str(size)}))
    made.data_received(b"x" * (size - 1))
    assert not wire.reading
    assert size - 1 == len(made.take() or b"")
    assert wire.reading
    made.data_received(b"x")
    assert (b"x", b"") == (made.take(), made.take())


async def test_a_body_that_nobody_took_does_not_stop_the_next_reply() -> None:
    made, wire = connected()
    size = 3 * UNREAD_LIMIT_BYTES
    made.data_received(head(headers={"content-length": str(size)}) + b"x" * size)
    assert not wire.reading
    assert made.finish()
    assert wire.reading
    made.send(b"", b"")
    assert b"{}" == feed(made, [whole(b"{}")])


async def test_a_large_body_is_written_without_a_copy_of_it() -> None:
    made, wire = connected()
    feed(made, [whole(b"{}")])
    made.finish()
    wire.sent = b""
    made.send(b"head", b"x" * 100_000)
    assert b"head" + b"x" * 100_000 == wire.sent


async def test_a_request_on_a_connection_that_is_gone_fails_at_once() -> None:
    made, _ = connected()
    feed(made, [whole(b"{}")])
    made.finish()
    made.connection_lost(None)
    made.send(b"", b"")
    with pytest.raises(ConnectionResetError):
        await made.arrival()
    assert not made.answered


async def test_a_reset_keeps_its_reason() -> None:
    made, _ = connected()
    reason = ConnectionResetError(104, "Connection reset by peer")
    made.connection_lost(reason)
    with pytest.raises(ConnectionResetError) as caught:
        await made.arrival()
    assert caught.value is reason
    assert made.lost.done()
