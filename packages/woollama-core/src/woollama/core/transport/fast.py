"""The transport of our own for HTTP/1.1: flat in the number of connections; asyncio only.

A router asks a server it knows, over a connection that stands: that path is short here. What is
rare is left to others: names and addresses to aiohappyeyeballs (RFC 8305), TLS to the event loop,
proxies to the transport on httpx2.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from aiohappyeyeballs import (
    start_connection,  # pyright: ignore[reportUnknownVariableType] - an address may hold anything
)

from woollama.core.errors import TransportError
from woollama.core.transport.address import Address, Place, address_of
from woollama.core.transport.base import Timeouts, Transport, WireResponse
from woollama.core.transport.clock import Clock
from woollama.core.transport.connection import Connection, NotHttp
from woollama.core.transport.network import (
    Routes,
    cut,
    decompressor,
    garbled,
    other_loop,
    unreachable,
)
from woollama.core.wire.codec import WireRequest

__all__ = ["FastTransport"]

_KEEP_ALIVE_S = 30.0
_NEXT_ADDRESS_S = 0.25
_CLOSING_S = 1.0
_MOST_ADDRESSES = 1000


class FastTransport:
    """One pool of connections on one event loop, opened by its first request."""

    def __init__(self) -> None:
        """Opens nothing yet."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._routes = Routes()
        self._addresses: dict[str, Address] = {}
        self._idle: dict[Place, list[tuple[float, Connection]]] = {}
        self._connections: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._by_proxy: Transport | None = None

    def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[WireResponse]:
        """See ``Transport.open``."""
        return _Exchange(self, request, timeouts)

    def enter(self) -> asyncio.AbstractEventLoop:
        """The running loop, for an exchange that begins.

        Raises:
            TransportError: it is another than before.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                raise other_loop()
            self._loop = loop
        return loop

    def address(self, url: str) -> Address:
        """What ``url`` says, read once for each; for an exchange.

        Raises:
            TransportError: it is no address.
        """
        found = self._addresses.get(url)
        if found is None:
            if len(self._addresses) >= _MOST_ADDRESSES:
                self._addresses.clear()
            found = self._addresses[url] = address_of(url)
        return found

    def detour(self, url: str) -> Transport | None:
        """The transport that reaches ``url`` when that takes a proxy; for an exchange.

        Raises:
            TransportError: no address, or a proxy of a kind that is not spoken.
        """
        if self._routes.proxy(url) is None:
            return None
        if self._by_proxy is None:
            from woollama.core.transport.http import HttpTransport

            self._by_proxy = HttpTransport()
        return self._by_proxy

    def pooled(self, place: Place) -> Connection | None:
        """A connection that stands and is free, the one used last; for an exchange."""
        idle = self._idle.get(place)
        while idle:
            since, connection = idle.pop()
            if connection.is_closing():
                continue
            if since + _KEEP_ALIVE_S > connection.loop.time():
                return connection
            connection.abort()
        return None

    async def connect(self, place: Place) -> Connection:
        """A new connection; for an exchange.

        Raises:
            OSError: it cannot be made.
            TransportError: the certificates to trust cannot be read.
        """
        secure, host, port = place
        loop = asyncio.get_running_loop()
        tls = _tls() if secure else None
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        sock = await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_S)
        try:
            _, connection = await loop.create_connection(
                lambda: Connection(loop), sock=sock, ssl=tls, server_hostname=host if tls else None
            )
        except BaseException:
            # Cancelled, too: the connection that would close it was not made.
            sock.close()
            raise
        self._connections.add(connection)
        connection.lost.add_done_callback(lambda _: self._connections.discard(connection))
        return connection

    def leave(self, place: Place, connection: Connection) -> None:
        """Takes a connection back when its exchange is over."""
        if not connection.finish():
            return
        self._idle.setdefault(place, []).append((connection.loop.time(), connection))
        if self._sweeper is None:
            self._sweeper = connection.loop.call_later(_KEEP_ALIVE_S, self._sweep)

    def _sweep(self) -> None:
        """Ends what nobody has used for so long, and looks again later."""
        self._sweeper = None
        loop = asyncio.get_running_loop()
        stale = loop.time() - _KEEP_ALIVE_S
        for place, idle in list(self._idle.items()):
            kept = [each for each in idle if each[0] > stale and not each[1].is_closing()]
            for since, connection in idle:
                if since <= stale:
                    connection.abort()
            if kept:
                self._idle[place] = kept
            else:
                del self._idle[place]
        if self._idle:
            self._sweeper = loop.call_later(_KEEP_ALIVE_S, self._sweep)

    async def aclose(self) -> None:
        """Close every connection; the next request opens anew."""
        by_proxy, self._by_proxy = self._by_proxy, None
        connections = list(self._connections)
        self._idle.clear()
        self._loop = None
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in connections:
            connection.abort()
        if connections:
            await asyncio.wait([each.lost for each in connections], timeout=_CLOSING_S)
        if by_proxy is not None:
            await by_proxy.aclose()


def _tls() -> ssl.SSLContext:
    # httpx2 knows each system's trust store; it is loaded by the first https request only.
    from woollama.core.transport.http import tls_context

    return tls_context()


class _Exchange(AbstractAsyncContextManager[WireResponse]):
    """One request and its reply: the context, the ``WireResponse`` and its iterator in one.

    It is made for each request, and each chunk passes through it.
    """

    status: int
    headers: Mapping[str, str]

    def __init__(self, transport: FastTransport, request: WireRequest, timeouts: Timeouts) -> None:
        self._transport = transport
        self._request = request
        self._timeouts = timeouts
        self._detour: AbstractAsyncContextManager[WireResponse] | None = None
        self._left = False

    async def __aenter__(self) -> WireResponse:
        transport, request = self._transport, self._request
        loop = transport.enter()
        detour = transport.detour(request.url)
        if detour is not None:
            self._detour = detour.open(request, timeouts=self._timeouts)
            return await self._detour.__aenter__()
        address = transport.address(request.url)
        head = address.head(request)
        self._place = address.place
        self._clock = Clock(loop, self._timeouts)
        connection = transport.pooled(self._place)
        # A pooled connection that the server closed while it was idle never carried the request.
        if connection is None or not await self._ask(connection, head):
            await self._ask(await self._connect(), head)
        self._read_head()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self._detour is not None:
            return await self._detour.__aexit__(kind, error, trace)
        self._left = True
        self._transport.leave(self._place, self._connection)
        return None

    async def _connect(self) -> Connection:
        url = self._request.url
        try:
            async with asyncio.timeout(self._clock.for_connecting()):
                return await self._transport.connect(self._place)
        except (OSError, RuntimeError) as error:
            # uvloop has RuntimeError for some failures of a socket.
            if _is_limit(error):
                raise self._clock.failure(url) from error
            raise unreachable(url, error) from error

    async def _ask(self, connection: Connection, head: bytes) -> bool:
        """Sends the request and waits for the head of the reply.

        Returns:
            False: the connection was used before and broke before a byte of the reply.
        """
        self._connection = connection
        fresh = not connection.exchanges
        try:
            self._clock.for_answer(connection)
            connection.send(head, self._request.body)
            while not connection.begun:
                await connection.arrival()
            self._clock.rest()
        except (OSError, NotHttp) as error:
            self._transport.leave(self._place, connection)
            if fresh or connection.answered or _is_limit(error):
                raise self._failure(error) from error
            return False
        except BaseException:
            # Cancelled, above all: the server shall see at once that nobody waits any more.
            self._transport.leave(self._place, connection)
            raise
        return True

    def _read_head(self) -> None:
        self.status = self._connection.status
        headers: dict[str, str] = {}
        for name, value in self._connection.headers:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        self.headers = headers
        self._plain: Callable[[bytes], bytes] | None = None
        self._coding = headers.get("content-encoding")

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        # No generator: nothing is left to be finalized when a reader leaves early.
        data = await self._next()
        if self._coding is not None:
            plain = self._decoded(data)
            while data and not plain:
                data = await self._next()
                plain = self._decoded(data)
            data = plain
        if data:
            return data
        raise StopAsyncIteration

    async def _next(self) -> bytes:
        connection, clock = self._connection, self._clock
        if self._left:
            # What comes on this connection now is another request's.
            raise RuntimeError("this reply was left: read its chunks inside its context")
        try:
            data = connection.take()
            if data is None:
                clock.for_more(connection)
                while data is None:
                    await connection.arrival()
                    data = connection.take()
            clock.rest()
        except (OSError, NotHttp) as error:
            raise self._failure(error) from error
        return data

    def _decoded(self, data: bytes) -> bytes:
        url = self._request.url
        if self._plain is None:
            self._plain = decompressor(url, self._coding or "") or bytes
        try:
            return self._plain(data)
        except zlib.error as error:
            raise garbled(url, error) from error

    def _failure(self, error: OSError | NotHttp) -> TransportError:
        url = self._request.url
        if _is_limit(error):
            return self._clock.failure(url)
        if isinstance(error, NotHttp):
            return garbled(url, str(error))
        return cut(url, error if error.args else None)


def _is_limit(error: BaseException) -> bool:
    """Whether a limit of ours passed; the system's own has a number."""
    return isinstance(error, TimeoutError) and error.errno is None
