"""A provider on a loopback port: real sockets, scripted to the byte, and no server library.

    async with serve(script) as upstream:
        text = await complete("openai/m", messages, base_url=upstream.url, api_key="k")

A script is a coroutine function that answers one request; a ``Fake`` is one too. What would be a
matter of time elsewhere is a matter of events here: a script waits for an event of the test's, and
``Exchange.gone`` tells when the client closed.
"""

import contextlib
import gzip
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.from_thread import start_blocking_portal
from anyio.streams.tls import TLSListener

from woollama.core.canonical import NOTHING
from woollama.core.scopes import open_tasks
from woollama.core.testing.fake import Fake, FakeReply, FakeRequest

__all__ = [
    "Connection",
    "Exchange",
    "Script",
    "Upstream",
    "chunked",
    "gzipped",
    "head",
    "serve",
    "serve_in_thread",
    "whole",
]

_STREAMED = ("text/event-stream", "application/x-ndjson")


def head(status: int = 200, headers: Mapping[str, str] = NOTHING) -> bytes:
    """A status line and headers, with the blank line behind them."""
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {text}" for name, text in headers.items())]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")


def whole(body: bytes, *, status: int = 200, headers: Mapping[str, str] = NOTHING) -> bytes:
    """A complete reply of a known length; JSON unless ``headers`` say otherwise."""
    named = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    return head(status, named) + body


def chunked(pieces: Iterable[bytes], *, end: bool = True) -> bytes:
    """Pieces of a body in chunked coding; without its end when ``end`` is false."""
    coded = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece]
    return b"".join([*coded, b"0\r\n\r\n"] if end else coded)


def gzipped(body: bytes) -> bytes:
    """A complete reply whose body is compressed."""
    return whole(gzip.compress(body), headers={"content-encoding": "gzip"})


class Connection:
    """One connection of a client.

    Attributes:
        number: how many came before it.
        requests: how many requests it has carried.
        gone: set once the client has closed its side, or the connection broke.
    """

    def __init__(self, stream: ByteStream, number: int) -> None:
        """Accepted, and nothing read yet."""
        self.number = number
        self.requests = 0
        self.gone: anyio.Event = anyio.Event()
        self.open: bool = True
        self._stream = stream
        self._received = bytearray()
        self._more = anyio.Event()

    async def read_on(self) -> None:
        """Takes in what the client sends until it closes."""
        try:
            while True:
                self._received += await self._stream.receive()
                self._more.set()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.gone.set()
            self._more.set()

    async def take_until(self, mark: bytes) -> bytes:
        """What comes up to and including ``mark``.

        Raises:
            EOFError: the client left before.
        """
        while (at := self._received.find(mark)) < 0:
            await self._wait()
        return self._take(at + len(mark))

    async def take(self, count: int) -> bytes:
        """The next ``count`` bytes.

        Raises:
            EOFError: the client left before.
        """
        while len(self._received) < count:
            await self._wait()
        return self._take(count)

    async def _wait(self) -> None:
        if self.gone.is_set() or not self.open:
            raise EOFError
        self._more = anyio.Event()
        await self._more.wait()

    def _take(self, count: int) -> bytes:
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    async def send(self, data: bytes) -> None:
        """Bytes as they are; a client that has left is no error."""
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.send(data)

    async def close(self) -> None:
        """Ends the connection in order (FIN)."""
        self.open = False
        self._more.set()
        await self._stream.aclose()

    async def reset(self) -> None:
        """Breaks the connection (RST)."""
        raw = self._stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.close()


class Exchange:
    """One request, and the means to answer it.

    Attributes:
        request: what was asked; ``path`` is without the query.
        target: the request target as it stood in the first line; absolute towards a proxy.
        connection: what it came on.
    """

    def __init__(self, request: FakeRequest, target: str, connection: Connection) -> None:
        """Read, and not yet answered."""
        self.request = request
        self.target = target
        self.connection = connection

    @property
    def gone(self) -> anyio.Event:
        """Set once the client has closed its side."""
        return self.connection.gone

    async def send(self, data: bytes) -> None:
        """Bytes as they are."""
        await self.connection.send(data)

    async def reply(self, reply: FakeReply) -> None:
        """A fake's reply: streams and replies in pieces chunk by chunk, others at once."""
        kind = reply.headers.get("content-type", "")
        if len(reply.chunks) < 2 and not kind.startswith(_STREAMED):
            body = b"".join(reply.chunks)
            await self.send(whole(body, status=reply.status, headers=reply.headers))
            return
        await self.send(head(reply.status, {**reply.headers, "transfer-encoding": "chunked"}))
        for piece in reply.chunks:
            await self.send(chunked([piece], end=False))
        await self.send(chunked([]))

    async def close(self) -> None:
        """Ends the connection in order."""
        await self.connection.close()

    async def reset(self) -> None:
        """Breaks the connection."""
        await self.connection.reset()


Script = Callable[[Exchange], Awaitable[None]]
"""Answers one request. When it returns with the connection open, the next request may come."""


class Upstream:
    """A server that is running.

    Attributes:
        port: where it listens on ``127.0.0.1``.
        requests: every request that came whole, in order.
        exchanges: the same with their connections.
        connections: every connection that was accepted, in order.
    """

    def __init__(self, script: Script, port: int, *, secure: bool) -> None:
        """Listens on ``port`` and answers by ``script``."""
        self.port = port
        self.exchanges: list[Exchange] = []
        self.connections: list[Connection] = []
        self._script = script
        self._scheme = "https" if secure else "http"
        self._came = anyio.Event()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = "localhost" if self._scheme == "https" else "127.0.0.1"
        return f"{self._scheme}://{host}:{self.port}"

    @property
    def url(self) -> str:
        """A base URL, ending in ``/v1``."""
        return f"{self.origin}/v1"

    @property
    def requests(self) -> list[FakeRequest]:
        """What was asked, in order."""
        return [exchange.request for exchange in self.exchanges]

    async def wait_for(self, count: int) -> None:
        """Until so many requests have come in all."""
        while len(self.exchanges) < count:
            await self._came.wait()

    async def serve_connection(self, stream: ByteStream) -> None:
        """Answers the requests of one connection until either side closes it."""
        connection = Connection(stream, len(self.connections))
        self.connections.append(connection)
        async with stream, open_tasks() as tasks:
            tasks.start_soon(connection.read_on)
            with contextlib.suppress(EOFError):
                while connection.open:
                    exchange = await _read_request(connection)
                    connection.requests += 1
                    self.exchanges.append(exchange)
                    self._came.set()
                    self._came = anyio.Event()
                    await self._script(exchange)
            tasks.cancel_scope.cancel()


async def _read_request(connection: Connection) -> Exchange:
    first, *lines = (await connection.take_until(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await connection.take(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    request = FakeRequest(method=method, path=parts.path, headers=headers, body=body)
    return Exchange(request, target, connection)


def _script_of(fake: Fake) -> Script:
    async def script(exchange: Exchange) -> None:
        await exchange.reply(fake.answer(exchange.request))

    return script


@asynccontextmanager
async def serve(
    script: Script | Fake, *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Upstream]:
    """A server on a free loopback port; it and its connections end with the context.

    Args:
        script: answers each request.
        tls: serve ``https`` with this context; the address is ``https://localhost``.
    """
    answer = _script_of(script) if isinstance(script, Fake) else script
    # Named by number: an event loop that asks a resolver for `localhost` waits for a thread.
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    upstream = Upstream(answer, port, secure=tls is not None)
    serving = listener if tls is None else TLSListener(listener, tls, standard_compatible=False)
    async with listener, open_tasks() as tasks:
        tasks.start_soon(serving.serve, upstream.serve_connection)
        yield upstream
        tasks.cancel_scope.cancel()


@contextmanager
def serve_in_thread(script: Script | Fake) -> Generator[Upstream]:
    """As ``serve``, on an event loop in a thread of its own: for programs that have none."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve(script)) as upstream,
    ):
        yield upstream
