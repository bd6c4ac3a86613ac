"""The transport on aiohttp: flat in the number of connections; asyncio only."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from woollama.core.errors import TransportError
from woollama.core.transport.base import Timeouts, WireResponse
from woollama.core.transport.network import (
    cut,
    limited,
    proxy_for,
    timed_out,
    unreachable,
)
from woollama.core.wire.codec import WireRequest

__all__ = ["FastTransport"]

_KEEP_ALIVE_S = 30.0
_NO_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class FastTransport:
    """One connection pool on one event loop, opened by its first request."""

    def __init__(self) -> None:
        """Opens nothing yet."""
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AsyncGenerator[WireResponse]:
        """See ``Transport.open``."""
        async with limited(timeouts.whole, request.url):
            reply = await self._send(request, timeouts)
            watch = _Watch(reply, timeouts.between)
            try:
                yield _Response(request.url, reply, watch)
            finally:
                watch.stop()
                # Closing an unread reply drops its connection: the peer sees that we left.
                reply.close()

    async def _send(self, request: WireRequest, timeouts: Timeouts) -> aiohttp.ClientResponse:
        connection = SimpleNamespace(reused=False)
        try:
            return await self._attempt(request, timeouts, connection)
        except aiohttp.ClientConnectionError as error:
            # A pooled connection that the peer closed while it was idle never carried the request.
            stale = connection.reused and not isinstance(error, aiohttp.ClientConnectorError)
            if not stale:
                raise self._failure(request.url, error) from error
        try:
            return await self._attempt(request, timeouts, connection)
        except aiohttp.ClientConnectionError as error:
            raise self._failure(request.url, error) from error

    async def _attempt(
        self, request: WireRequest, timeouts: Timeouts, connection: SimpleNamespace
    ) -> aiohttp.ClientResponse:
        url = request.url
        connection.reused = False
        secure = url.startswith("https:")
        limits = aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect)
        try:
            async with asyncio.timeout(timeouts.first_byte):
                return await self._opened().request(
                    request.method,
                    URL(url, encoded=True),
                    data=request.body or None,
                    headers=request.headers,
                    allow_redirects=False,
                    proxy=proxy_for(url),
                    ssl=_tls() if secure else True,
                    timeout=limits,
                    trace_request_ctx=connection,
                )
        except aiohttp.ConnectionTimeoutError as error:
            raise timed_out(url, "did not accept a connection", timeouts.connect) from error
        except TimeoutError as error:
            raise timed_out(url, "did not answer", timeouts.first_byte) from error
        except (aiohttp.InvalidURL, ValueError) as error:
            raise TransportError(f"{url!r} is no address: {error}.", kind="connect") from error
        except aiohttp.ClientConnectionError:
            raise
        except aiohttp.ClientError as error:
            raise cut(url, error) from error

    def _failure(self, url: str, error: aiohttp.ClientConnectionError) -> TransportError:
        if isinstance(error, aiohttp.ClientConnectorError):
            return unreachable(url, error.os_error)
        return cut(url, error)

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed:
            traces = aiohttp.TraceConfig()
            traces.on_connection_reuseconn.append(_reused)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=_NO_AUTOMATIC,
                trace_configs=[traces],
                trust_env=False,
            )
            self._loop = loop
        elif self._loop is not loop:
            raise TransportError(
                "This transport belongs to another event loop: make one for each loop, or pass "
                "none.",
                kind="connect",
            )
        return self._session

    async def aclose(self) -> None:
        """Close every connection; the next request opens anew."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _reused(_session: object, context: Any, _params: object) -> None:
    request: SimpleNamespace = context.trace_request_ctx
    request.reused = True


def _tls() -> ssl.SSLContext:
    # httpx2 knows each system's trust store; it is loaded by the first https request only.
    from woollama.core.transport.http import tls_context

    return tls_context()


class _Watch:
    """Ends a reply that stays silent: one timer a reply, not one a read."""

    def __init__(self, reply: aiohttp.ClientResponse, seconds: float | None) -> None:
        self._reply = reply
        self.seconds = seconds
        self._loop = asyncio.get_running_loop()
        self.seen = self._loop.time()
        self.expired = False
        self._timer: asyncio.TimerHandle | None = None
        if seconds is not None:
            self._timer = self._loop.call_later(seconds, self._check, seconds)

    def touch(self) -> None:
        self.seen = self._loop.time()

    def _check(self, seconds: float) -> None:
        left = self.seen + seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check, seconds)
            return
        self.expired = True
        self._reply.content.set_exception(TimeoutError())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _Response:
    def __init__(self, url: str, reply: aiohttp.ClientResponse, watch: _Watch) -> None:
        self.status = reply.status
        self._reply = reply
        self._url = url
        self._watch = watch

    @property
    def headers(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name, value in self._reply.headers.items():
            key = name.lower()
            found[key] = f"{found[key]}, {value}" if key in found else value
        return found

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        content, watch = self._reply.content, self._watch
        try:
            while chunk := await content.readany():
                watch.touch()
                yield chunk
        except TimeoutError as error:
            raise timed_out(self._url, "sent nothing more", watch.seconds) from error
        except (aiohttp.ClientError, OSError) as error:
            raise cut(self._url, error) from error
