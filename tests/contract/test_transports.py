"""One suite over every transport, against a real server on loopback."""

import gzip
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from tests.contract.certificates import write_certificate
from woollama.core.errors import TransportError
from woollama.core.testing.upstream import (
    Exchange,
    Upstream,
    chunked,
    gzipped,
    head,
    serve,
    whole,
)
from woollama.core.transport import NO_LIMITS, Timeouts, Transport
from woollama.core.transport.fast import FastTransport
from woollama.core.transport.http import HttpTransport
from woollama.core.wire import WireRequest

Case = tuple[str, Callable[[], Transport]]
CASES: tuple[Case, ...] = (
    ("asyncio", FastTransport),
    ("uvloop", FastTransport),
    ("asyncio", HttpTransport),
    ("trio", HttpTransport),
)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
SOON_S = 0.05
"""A limit that is meant to pass."""


@pytest.fixture(params=CASES, ids=lambda case: f"{case[1].__name__}-{case[0]}")
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def anyio_backend(case: Case) -> str | tuple[str, dict[str, Any]]:
    return ("asyncio", {"use_uvloop": True}) if case[0] == "uvloop" else case[0]


@pytest.fixture
async def transport(case: Case) -> AsyncGenerator[Transport]:
    transport = case[1]()
    yield transport
    await transport.aclose()


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *CERTIFICATES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def post(upstream: Upstream | str, body: bytes = b"{}", **headers: str) -> WireRequest:
    base = upstream if isinstance(upstream, str) else upstream.url
    return WireRequest(
        method="POST",
        url=f"{base}/chat/completions",
        headers={"content-type": "application/json", **headers},
        body=body,
    )


async def read(
    transport: Transport, request: WireRequest, timeouts: Timeouts = NO_LIMITS
) -> tuple[int, dict[str, str], bytes]:
    """Everything of one reply, within the time that a test may take."""
    with anyio.fail_after(5):
        async with transport.open(request, timeouts=timeouts) as response:
            chunks = [chunk async for chunk in response.chunks]
            assert b"" not in chunks
            return response.status, dict(response.headers), b"".join(chunks)


async def failure(
    transport: Transport, request: WireRequest, timeouts: Timeouts = NO_LIMITS
) -> TransportError:
    """What a request that cannot succeed raises."""
    with pytest.raises(TransportError) as caught:
        await read(transport, request, timeouts)
    return caught.value


def always(data: bytes, *, close: bool = False) -> Callable[[Exchange], Any]:
    """A script of the same bytes for every request."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(data)
        if close:
            await exchange.close()

    return script


async def test_status_headers_and_body_come_as_sent(transport: Transport) -> None:
    reply = whole(b'{"a": 1}', status=418, headers={"X-Request-Id": "r-1"})
    async with serve(always(reply)) as upstream:
        status, headers, body = await read(transport, post(upstream))
    assert (418, "r-1", b'{"a": 1}') == (status, headers["x-request-id"], body)


async def test_the_request_goes_out_as_given(transport: Transport) -> None:
    async with serve(always(whole(b"{}"))) as upstream:
        await read(transport, post(upstream, b'{"x": "\xc3\xa9"}', authorization="Bearer k"))
        (got,) = upstream.requests
    assert ("POST", "/v1/chat/completions", b'{"x": "\xc3\xa9"}') == (
        got.method,
        got.path,
        got.body,
    )
    assert {
        "accept": "*/*",
        "accept-encoding": "identity",
        "authorization": "Bearer k",
        "content-length": "11",
        "content-type": "application/json",
        "host": f"127.0.0.1:{upstream.port}",
        "user-agent": "woollama",
    } == {name: text for name, text in got.headers.items() if name != "connection"}


async def test_a_get_has_no_body(transport: Transport) -> None:
    async with serve(always(whole(b"{}"))) as upstream:
        request = WireRequest(method="GET", url=f"{upstream.url}/models?limit=2")
        await read(transport, request)
        (exchange,) = upstream.exchanges
    assert ("GET", "/v1/models?limit=2", b"") == (
        exchange.request.method,
        exchange.target,
        exchange.request.body,
    )
    assert "content-type" not in exchange.request.headers


async def test_repeated_headers_are_joined(transport: Transport) -> None:
    reply = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\ncontent-length: 0\r\n\r\n"
    async with serve(always(reply)) as upstream:
        _, headers, _ = await read(transport, post(upstream))
    assert "1, 2" == headers["x-a"]


async def test_each_chunk_arrives_before_the_next_is_sent(transport: Transport) -> None:
    seen = [anyio.Event(), anyio.Event()]

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"transfer-encoding": "chunked"}))
        for n, event in enumerate(seen):
            await exchange.send(chunked([b"%d" % n], end=False))
            await event.wait()
        await exchange.send(chunked([]))

    with anyio.fail_after(5):
        async with (
            serve(script) as upstream,
            transport.open(post(upstream), timeouts=NO_LIMITS) as response,
        ):
            chunks = aiter(response.chunks)
            for n, event in enumerate(seen):
                assert b"%d" % n == await anext(chunks)
                event.set()
            with pytest.raises(StopAsyncIteration):
                await anext(chunks)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_chunked_coding_may_be_cut_anywhere(transport: Transport, size: int) -> None:
    body = b"data: {}\n\n" * 20
    coded = chunked([body[:33], body[33:34], body[34:]])
    pieces = [coded[at : at + size] for at in range(0, len(coded), size)]

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"transfer-encoding": "chunked"}))
        for piece in pieces:
            await exchange.send(piece)
            await anyio.lowlevel.checkpoint()

    async with serve(script) as upstream:
        assert body == (await read(transport, post(upstream)))[2]


async def test_a_body_without_length_ends_with_its_connection(transport: Transport) -> None:
    async with serve(always(head() + b"all of it", close=True)) as upstream:
        assert b"all of it" == (await read(transport, post(upstream)))[2]


async def test_a_compressed_body_is_decoded(transport: Transport) -> None:
    async with serve(always(gzipped(b'{"text": "long"}'))) as upstream:
        assert b'{"text": "long"}' == (await read(transport, post(upstream)))[2]


async def test_a_compression_that_nobody_knows_is_an_error(transport: Transport) -> None:
    reply = whole(b"text", headers={"content-encoding": "br"})
    async with serve(always(reply)) as upstream:
        error = await failure(transport, post(upstream))
    assert ("cut", 502) == (error.kind, error.status)


async def test_a_body_that_does_not_decompress_is_an_error(transport: Transport) -> None:
    broken = b"!" * 8 + gzip.compress(b"text")[8:]
    reply = whole(broken, headers={"content-encoding": "gzip"})
    async with serve(always(reply)) as upstream:
        error = await failure(transport, post(upstream))
    assert ("cut", 502) == (error.kind, error.status)
    assert "no HTTP reply" in error.message


async def test_a_redirect_is_not_followed(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        place = f"http://127.0.0.1:{upstream.port}/elsewhere"
        await exchange.send(whole(b"", status=307, headers={"location": place}))

    async with serve(script) as upstream:
        status, _, _ = await read(transport, post(upstream))
        assert (307, 1) == (status, len(upstream.requests))


async def test_cookies_are_not_kept(transport: Transport) -> None:
    async with serve(always(whole(b"{}", headers={"set-cookie": "a=b; Path=/"}))) as upstream:
        await read(transport, post(upstream))
        await read(transport, post(upstream))
        assert ["cookie" in request.headers for request in upstream.requests] == [False, False]


async def test_a_refused_connection_says_where_it_was_tried(transport: Transport) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        origin = f"http://127.0.0.1:{taken.getsockname()[1]}"
        error = await failure(transport, post(f"{origin}/v1"))
    assert ("connect", 502, True) == (error.kind, error.status, error.retryable)
    assert f"{origin} cannot be reached: connection refused." == error.message


async def test_an_unknown_host_cannot_be_reached(transport: Transport) -> None:
    error = await failure(transport, post("http://no-such-host.invalid/v1"))
    assert ("connect", 502) == (error.kind, error.status)
    assert error.message.startswith("http://no-such-host.invalid cannot be reached: ")
    assert "Errno" not in error.message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "/v1",
        "http://",
        "http:///v1",
        "http://[::1/v1",
        "http://h:99999/v1",
        "http://h:port/v1",
        "ftp://h/v1",
        "localhost:11434/v1",
    ],
)
async def test_what_is_no_address_is_told_so(transport: Transport, url: str) -> None:
    error = await failure(transport, post(url))
    assert ("connect", 502, False) == (error.kind, error.status, error.retryable)
    assert "is no address" in error.message
    assert error.hint is not None


@contextmanager
def full_backlog() -> Generator[int]:
    """A port whose queue of waiting connections is full: the system answers no further one."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        try:
            for filler in waiting:
                filler.setblocking(False)
                filler.connect_ex(listening.getsockname())
            yield listening.getsockname()[1]
        finally:
            for filler in waiting:
                filler.close()


async def test_the_connect_limit_counts_until_the_connection_is_there(
    transport: Transport,
) -> None:
    with full_backlog() as port:
        limits = Timeouts(connect=SOON_S, first_byte=None, between=None)
        error = await failure(transport, post(f"http://127.0.0.1:{port}/v1"), limits)
    assert ("timeout", 504) == (error.kind, error.status)
    assert "did not accept a connection within 0.05 s" in error.message


async def _never(exchange: Exchange) -> None:
    await exchange.gone.wait()


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Timeouts(first_byte=SOON_S), "did not answer within 0.05 s"),
        (Timeouts(whole=SOON_S), "did not finish within"),
        (Timeouts(first_byte=None, whole=SOON_S), "did not finish within"),
    ],
)
async def test_a_peer_that_never_answers_runs_into_the_limit(
    transport: Transport, limits: Timeouts, words: str
) -> None:
    async with serve(_never) as upstream:
        error = await failure(transport, post(upstream), limits)
        with anyio.fail_after(5):
            await upstream.connections[0].gone.wait()
    assert ("timeout", 504) == (error.kind, error.status)
    assert words in error.message


async def test_a_peer_that_does_not_take_the_request_runs_into_the_limit(
    transport: Transport,
) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)  # the system accepts for it, and nobody reads
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        request = post(url, b"x" * 16 * 1024 * 1024)
        error = await failure(transport, request, Timeouts(first_byte=SOON_S))
    assert ("timeout", 504) == (error.kind, error.status)


async def test_an_early_answer_ends_the_limit_of_the_first_byte(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "2"}) + b"1")
        await anyio.sleep(SOON_S * 3)
        await exchange.send(b"2")

    async with serve(script) as upstream:
        for body in (b"{}", b"x" * 100_000):
            limits = Timeouts(first_byte=SOON_S, between=None)
            assert b"12" == (await read(transport, post(upstream, body), limits))[2]


async def test_the_limit_between_reads_does_not_count_before_the_first_byte(
    transport: Transport,
) -> None:
    async def script(exchange: Exchange) -> None:
        await anyio.sleep(SOON_S * 3)
        await exchange.send(whole(b"late"))

    async with serve(script) as upstream:
        limits = Timeouts(between=SOON_S)
        assert b"late" == (await read(transport, post(upstream), limits))[2]


async def test_silence_inside_a_body_runs_into_the_limit(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "9"}) + b"part")
        await exchange.gone.wait()

    async with serve(script) as upstream:
        error = await failure(transport, post(upstream), Timeouts(between=SOON_S))
        with anyio.fail_after(5):
            await upstream.connections[0].gone.wait()
    assert ("timeout", 504) == (error.kind, error.status)
    assert "sent nothing more within 0.05 s" in error.message


async def _heartbeats(exchange: Exchange) -> None:
    await exchange.send(head(headers={"transfer-encoding": "chunked"}))
    for _ in range(10):
        await exchange.send(chunked([b"\n"], end=False))
        await anyio.sleep(SOON_S)
    await exchange.send(chunked([b"{}"]))


async def test_oc_20_white_space_keeps_a_reply_alive(transport: Transport) -> None:
    async with serve(_heartbeats) as upstream:
        _, _, body = await read(transport, post(upstream), Timeouts(between=SOON_S * 4))
    assert b"{}" == body.strip()


async def test_the_whole_limit_counts_in_spite_of_signs_of_life(transport: Transport) -> None:
    async with serve(_heartbeats) as upstream:
        error = await failure(transport, post(upstream), Timeouts(whole=SOON_S * 3))
        with anyio.fail_after(5):
            await upstream.connections[0].gone.wait()
    assert ("timeout", 504) == (error.kind, error.status)
    assert "did not finish within 0.15 s" in error.message


async def test_a_slow_reader_is_not_taken_for_a_silent_peer(transport: Transport) -> None:
    read_first, sent_last = anyio.Event(), anyio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "2"}) + b"1")
        await read_first.wait()
        await exchange.send(b"2")
        sent_last.set()

    with anyio.fail_after(5):
        async with (
            serve(script) as upstream,
            transport.open(post(upstream), timeouts=Timeouts(between=SOON_S)) as response,
        ):
            chunks = aiter(response.chunks)
            assert b"1" == await anext(chunks)
            read_first.set()
            await sent_last.wait()
            await anyio.sleep(SOON_S * 3)
            assert b"2" == await anext(chunks)


async def test_the_whole_limit_does_not_cancel_what_the_reader_does(transport: Transport) -> None:
    """It ends the next read: a reader between two reads is never cancelled from behind."""
    with anyio.fail_after(5):
        async with serve(_heartbeats) as upstream:
            limits = Timeouts(whole=SOON_S)
            async with transport.open(post(upstream), timeouts=limits) as response:
                await anyio.sleep(SOON_S * 3)
                with pytest.raises(TransportError, match="did not finish"):
                    await anext(aiter(response.chunks))


@pytest.mark.parametrize(
    "data",
    [
        head(headers={"content-length": "9"}) + b"part",
        head(headers={"transfer-encoding": "chunked"}) + b"5\r\nwh",
        head(headers={"transfer-encoding": "chunked"}) + chunked([b"whole"], end=False),
    ],
)
@pytest.mark.parametrize("reset", [False, True])
async def test_a_body_that_breaks_off_is_cut(
    transport: Transport, data: bytes, *, reset: bool
) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(data)
        await (exchange.reset() if reset else exchange.close())

    async with serve(script) as upstream:
        error = await failure(transport, post(upstream))
    assert ("cut", 502) == (error.kind, error.status)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nx: "])
async def test_a_first_connection_that_breaks_is_cut_and_not_tried_again(
    transport: Transport, data: bytes, *, reset: bool
) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(data)
        await (exchange.reset() if reset else exchange.close())

    async with serve(script) as upstream:
        error = await failure(transport, post(upstream))
        assert 1 == len(upstream.requests)
    assert ("cut", 502) == (error.kind, error.status)
    assert "closed the connection before the reply was complete" in error.message


async def test_a_stale_connection_is_replaced_unseen(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.connection.requests > 1:
            await exchange.close()  # as a server that had closed while the connection was idle
            return
        await exchange.send(whole(b"%d" % exchange.connection.number))

    async with serve(script) as upstream:
        assert b"0" == (await read(transport, post(upstream)))[2]
        assert b"1" == (await read(transport, post(upstream)))[2]
        assert [0, 0, 1] == [exchange.connection.number for exchange in upstream.exchanges]


async def test_a_connection_closed_while_idle_is_not_used(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(whole(b"%d" % exchange.connection.number))
        await exchange.close()

    async with serve(script) as upstream:
        assert b"0" == (await read(transport, post(upstream)))[2]
        assert b"1" == (await read(transport, post(upstream)))[2]
        assert 2 == len(upstream.connections)


async def test_a_stale_connection_is_replaced_once_only(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        if len(upstream.exchanges) > 1:
            await exchange.close()
            return
        await exchange.send(whole(b"first"))

    async with serve(script) as upstream:
        await read(transport, post(upstream))
        error = await failure(transport, post(upstream))
        assert [0, 0, 1] == [exchange.connection.number for exchange in upstream.exchanges]
    assert "cut" == error.kind


async def test_a_reply_cut_on_a_used_connection_is_not_asked_again(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.connection.requests > 1:
            await exchange.send(head(headers={"content-length": "9"}) + b"part")
            await exchange.close()
            return
        await exchange.send(whole(b"first"))

    async with serve(script) as upstream:
        await read(transport, post(upstream))
        error = await failure(transport, post(upstream))
        assert 2 == len(upstream.requests)
    assert "cut" == error.kind


async def test_connections_are_used_again(transport: Transport) -> None:
    async with serve(always(whole(b"{}"))) as upstream:
        for _ in range(5):
            await read(transport, post(upstream))
        assert [5] == [connection.requests for connection in upstream.connections]


async def test_many_requests_run_at_once(transport: Transport) -> None:
    count, all_here = 24, anyio.Event()

    async def script(exchange: Exchange) -> None:
        if len(upstream.requests) == count:
            all_here.set()
        await all_here.wait()
        await exchange.send(whole(exchange.request.body))

    bodies: list[bytes] = []

    async def ask(n: int) -> None:
        bodies.append((await read(transport, post(upstream, b"%d" % n)))[2])

    async with serve(script) as upstream, anyio.create_task_group() as tasks:
        for n in range(count):
            tasks.start_soon(ask, n)
    assert sorted(b"%d" % n for n in range(count)) == sorted(bodies)


@pytest.mark.parametrize("begun", [False, True])
async def test_p_5_cancelling_closes_the_connection_at_once(
    transport: Transport, *, begun: bool
) -> None:
    reading = anyio.Event()

    async def script(exchange: Exchange) -> None:
        if begun:
            await exchange.send(head(headers={"content-length": "9"}) + b"part")
        else:
            reading.set()
        await exchange.gone.wait()

    async def ask() -> None:
        async with transport.open(post(upstream), timeouts=NO_LIMITS) as response:
            async for _ in response.chunks:
                reading.set()

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await reading.wait()
                tasks.cancel_scope.cancel()
            await upstream.connections[0].gone.wait()


async def test_leaving_early_closes_the_connection(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"transfer-encoding": "chunked"}))
        await exchange.send(chunked([b"1"], end=False))
        await exchange.gone.wait()

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with transport.open(post(upstream), timeouts=NO_LIMITS) as response:
                async for _ in response.chunks:
                    break
            await upstream.connections[0].gone.wait()


async def test_a_reply_that_is_not_read_is_closed(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "1000"}))
        await exchange.gone.wait()

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with transport.open(post(upstream), timeouts=NO_LIMITS):
                pass
            await upstream.connections[0].gone.wait()


async def test_interim_replies_are_passed_over(transport: Transport) -> None:
    """RFC 9110, 15.2: any number of them may come before the reply."""
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + b"HTTP/1.1 100 Continue\r\n\r\n"
    async with serve(always(interim + whole(b"{}"))) as upstream:
        for _ in range(2):
            status, headers, body = await read(transport, post(upstream))
            assert (200, b"{}") == (status, body)
            assert "link" not in headers
        assert 1 == len(upstream.connections)


@pytest.mark.parametrize(
    "reply",
    [
        whole(b"{}", headers={"connection": "close"}),
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ],
    ids=["connection: close", "HTTP/1.0"],
)
async def test_a_connection_that_is_to_end_is_not_used_again(
    transport: Transport, reply: bytes
) -> None:
    async with serve(always(reply)) as upstream:
        for _ in range(2):
            assert b"{}" == (await read(transport, post(upstream)))[2]
        assert [1, 1] == [connection.requests for connection in upstream.connections]


async def test_line_ends_without_carriage_return_are_read(transport: Transport) -> None:
    reply = b"HTTP/1.1 200 OK\nx-a: 1\ncontent-length: 2\n\n{}"
    async with serve(always(reply)) as upstream:
        status, headers, body = await read(transport, post(upstream))
    assert (200, "1", b"{}") == (status, headers["x-a"], body)


async def test_a_reply_without_a_body_is_whole(transport: Transport) -> None:
    async with serve(always(head(204))) as upstream:
        for _ in range(2):
            status, _, body = await read(transport, post(upstream))
            assert (204, b"") == (status, body)


async def test_every_connection_that_went_stale_is_replaced(transport: Transport) -> None:
    """A provider that was started anew has closed all of them."""
    count, all_here, again = 3, anyio.Event(), anyio.Event()

    async def script(exchange: Exchange) -> None:
        if exchange.connection.requests > 1:
            await exchange.reset()
            return
        if len(upstream.requests) == count:
            all_here.set()
        if not again.is_set():
            await all_here.wait()
        await exchange.send(whole(b"{}"))

    async with serve(script) as upstream:
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(read, transport, post(upstream))
        again.set()
        assert b"{}" == (await read(transport, post(upstream)))[2]


async def test_a_name_and_password_in_the_address_are_sent(transport: Transport) -> None:
    async with serve(always(whole(b"{}"))) as upstream:
        url = f"http://user:s3cr%65t@127.0.0.1:{upstream.port}/v1"
        await read(transport, post(url))
        (got,) = upstream.requests
    assert "Basic dXNlcjpzM2NyZXQ=" == got.headers["authorization"]
    assert f"127.0.0.1:{upstream.port}" == got.headers["host"]


async def test_an_address_is_sent_as_a_target_can_hold_it(transport: Transport) -> None:
    async with serve(always(whole(b"{}"))) as upstream:
        request = WireRequest(method="GET", url=f"{upstream.url}/a b/%C3%A4/\u00f6?q=x y&z=%20")
        await read(transport, request)
        (exchange,) = upstream.exchanges
    assert "/v1/a%20b/%C3%A4/%C3%B6?q=x%20y&z=%20" == exchange.target


async def test_a_slow_reader_holds_the_server_back(transport: Transport) -> None:
    size, piece = 64 * 1024 * 1024, b"x" * 1024 * 1024
    sent = 0

    async def script(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.send(head(headers={"content-length": str(size)}))
        while sent < size and not exchange.gone.is_set():
            await exchange.send(piece)
            sent += len(piece)

    with anyio.fail_after(20):
        async with (
            serve(script) as upstream,
            transport.open(post(upstream), timeouts=NO_LIMITS) as response,
        ):
            chunks = aiter(response.chunks)
            got = len(await anext(chunks))
            # Everything that can happen without a reader has happened once the buffers are full.
            await anyio.wait_all_tasks_blocked()
            assert sent < size / 2
            async for chunk in chunks:
                got += len(chunk)
    assert size == got


async def test_closing_ends_every_connection_and_the_next_request_opens_anew(
    transport: Transport,
) -> None:
    with anyio.fail_after(5):
        async with serve(always(whole(b"{}"))) as upstream:
            await read(transport, post(upstream))
            await transport.aclose()
            await upstream.connections[0].gone.wait()
            await read(transport, post(upstream))
            assert 2 == len(upstream.connections)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        head(headers={f"x-{n}": "v" * 400 for n in range(1000)}) + b"never",
        head(headers={"x": "v" * 200_000}),
        head(headers={"content-length": "-1"}) + b"x",
        head(headers={"transfer-encoding": "chunked"}) + b"zz\r\nx\r\n",
    ],
    ids=["no HTTP", "many headers", "a long header", "a bad length", "a bad chunk"],
)
async def test_bytes_that_are_no_http_are_an_error(transport: Transport, data: bytes) -> None:
    async with serve(always(data, close=True)) as upstream:
        error = await failure(transport, post(upstream, authorization="Bearer sk-secret"))
    assert ("cut", 502) == (error.kind, error.status)
    assert "sk-secret" not in "".join(_everything(error))


def _everything(error: BaseException | None) -> Iterable[str]:
    """All that a log or a debugger may print of an error and of those behind it."""
    while error is not None:
        yield repr(error)
        yield str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("value", ["a\nb", "a\r\nx-other: 1"])
async def test_a_header_with_a_line_break_is_not_sent(transport: Transport, value: str) -> None:
    async with serve(always(whole(b"{}"))) as upstream:
        request = post(upstream)
        request = msgspec.structs.replace(request, headers={"x-title": value})
        error = await failure(transport, request)
        assert [] == upstream.requests
    assert ("connect", False) == (error.kind, error.retryable)
    assert "cannot be sent" in error.message


async def test_a_dead_proxy_does_not_stand_before_loopback(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serve(always(whole(b"direct"))) as upstream:
        assert b"direct" == (await read(transport, post(upstream)))[2]


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_is_used_for_another_host(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    async with serve(always(whole(b"by proxy"))) as proxy:
        monkeypatch.setenv(variable, f"http://user:s3cr%65t@127.0.0.1:{proxy.port}")
        assert b"by proxy" == (await read(transport, post("http://models.invalid/v1")))[2]
        (exchange,) = proxy.exchanges
    assert "http://models.invalid/v1/chat/completions" == exchange.target
    assert exchange.request.headers["proxy-authorization"].startswith("Basic ")


async def test_a_proxy_may_be_named_without_a_scheme(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(always(whole(b"by proxy"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{proxy.port}")
        assert b"by proxy" == (await read(transport, post("http://models.invalid/v1")))[2]


async def test_no_proxy_is_obeyed(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(always(whole(b"by proxy"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "other.test,.invalid")
        error = await failure(transport, post("http://models.invalid/v1"))
        assert [] == proxy.requests
    assert "connect" == error.kind


async def test_a_dead_proxy_is_an_error_without_its_password(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:s3cret@127.0.0.1:1")
    error = await failure(transport, post("http://models.invalid/v1"))
    assert "connect" == error.kind
    assert "s3cret" not in "".join(_everything(error))


async def test_a_proxy_that_refuses_a_tunnel_is_an_error(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(always(whole(b"", status=407), close=True)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:s3cret@127.0.0.1:{proxy.port}")
        request = post("https://models.invalid/v1", authorization="Bearer sk-secret")
        error = await failure(transport, request)
    assert ("connect", 502) == (error.kind, error.status)
    assert "407" in error.message
    assert "s3cret" not in "".join(_everything(error))
    assert "sk-secret" not in "".join(_everything(error))


async def test_a_proxy_of_another_kind_is_told_so(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://user:s3cret@127.0.0.1:1080")
    error = await failure(transport, post("https://models.invalid/v1"))
    assert ("connect", False) == (error.kind, error.retryable)
    assert "a socks5 proxy" in error.message
    assert "NO_PROXY" in str(error)
    assert "s3cret" not in "".join(_everything(error))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for ``localhost``, its key beside it."""
    return write_certificate(tmp_path_factory.mktemp("tls"))


def tls_of(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


async def test_ssl_cert_file_names_whom_to_trust(
    transport: Transport, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with serve(always(whole(b"safe")), tls=tls_of(certificate)) as upstream:
        assert b"safe" == (await read(transport, post(upstream)))[2]


async def test_a_certificate_of_nobody_we_trust_is_refused(
    transport: Transport, certificate: Path
) -> None:
    async with serve(always(whole(b"safe")), tls=tls_of(certificate)) as upstream:
        error = await failure(transport, post(upstream))
        assert [] == upstream.requests
    assert "connect" == error.kind
    assert "certificate verify failed" in error.message.lower()


async def test_a_missing_ssl_cert_file_is_named_and_harms_https_only(
    transport: Transport, certificate: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = tmp_path / "no-such.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(missing))
    async with serve(always(whole(b"plain"))) as upstream:
        assert b"plain" == (await read(transport, post(upstream)))[2]
    async with serve(always(whole(b"safe")), tls=tls_of(certificate)) as upstream:
        error = await failure(transport, post(upstream))
    assert ("connect", False) == (error.kind, error.retryable)
    assert f"SSL_CERT_FILE={str(missing)!r}" in error.message
