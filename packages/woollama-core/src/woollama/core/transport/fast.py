"""The transport on aiohttp: flat in the number of connections; asyncio only."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Self

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError
from yarl import URL

from woollama.core.errors import TransportError
from woollama.core.transport.base import Timeouts, WireResponse
from woollama.core.transport.network import (
    AGENT_HEADERS,
    Routes,
    cut,
    garbled,
    no_address,
    other_loop,
    timed_out,
    unreachable,
    unsendable,
)
from woollama.core.wire.codec import WireRequest

__all__ = ["FastTransport"]

_KEEP_ALIVE_S = 30.0
_SENT_AT_ONCE = 64 * 1024
"""A body up to this size fits into the system's buffers: sending it does not wait for the peer."""
_NO_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class FastTransport:
    """One connection pool on one event loop, opened by its first request."""

    def __init__(self) -> None:
        """Opens nothing yet."""
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._routes = Routes()

    def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[WireResponse]:
        """See ``Transport.open``."""
        return _Opening(self, request, timeouts)

    async def send(self, request: WireRequest, watch: "_Watch") -> aiohttp.ClientResponse:
        """The reply, whose body is still to come; for ``open``."""
        try:
            return await self._attempt(request, watch)
        except _StaleConnection:
            # A pooled connection that the peer closed while it was idle never carried the request.
            pass
        try:
            return await self._attempt(request, watch)
        except _StaleConnection as again:
            raise cut(request.url, again) from again.__cause__

    async def _attempt(self, request: WireRequest, watch: "_Watch") -> aiohttp.ClientResponse:
        url, limits = request.url, watch.timeouts
        proxy = self._routes.proxy(url)
        secure: ssl.SSLContext | bool = _tls() if url.startswith("https:") else True
        seconds, what = watch.before_first_byte()
        large = len(request.body) > _SENT_AT_ONCE
        asking = self._opened().request(
            request.method,
            URL(url, encoded=True),
            data=io.BytesIO(request.body) if large else request.body or None,
            headers=request.headers,
            allow_redirects=False,
            proxy=proxy,
            ssl=secure,
            timeout=aiohttp.ClientTimeout(connect=limits.connect, sock_read=limits.first_byte),
        )
        try:
            if limits.whole is None and not large:
                return await asking
            async with asyncio.timeout(seconds):
                return await asking
        except aiohttp.ConnectionTimeoutError as error:
            limit = limits.connect
            raise timed_out(url, "did not accept a connection", limit, connecting=True) from error
        except TimeoutError as error:
            raise timed_out(url, what, seconds) from error
        except aiohttp.InvalidURL as error:
            raise no_address(url, error) from error
        except _StaleConnection:
            raise
        except aiohttp.ClientConnectorCertificateError as error:
            raise unreachable(url, error.certificate_error) from error
        except aiohttp.ClientConnectorError as error:
            raise unreachable(url, error.os_error) from error
        except aiohttp.ClientConnectionError as error:
            raise cut(url, error) from error
        except aiohttp.ClientResponseError as error:
            failure = _unanswered(url, error)
        except ValueError as error:
            raise unsendable(url, error) from error
        # Outside: the other's repr holds the request's headers, and so the key.
        raise failure

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=AGENT_HEADERS,
                skip_auto_headers=_NO_AUTOMATIC,
                response_class=_Reply,
                trust_env=False,
            )
            self._loop = loop
        elif self._loop is not loop:
            raise other_loop()
        return self._session

    async def aclose(self) -> None:
        """Close every connection; the next request opens anew."""
        session, self._session, self._loop = self._session, None, None
        if session is not None:
            await session.close()


class _Opening(AbstractAsyncContextManager[WireResponse]):
    def __init__(self, transport: FastTransport, request: WireRequest, timeouts: Timeouts) -> None:
        self._transport = transport
        self._request = request
        self._timeouts = timeouts

    async def __aenter__(self) -> WireResponse:
        self._watch = _Watch(self._request.url, self._timeouts)
        self._reply = await self._transport.send(self._request, self._watch)
        return _Response(self._reply, self._watch)

    async def __aexit__(self, *_error: object) -> None:
        self._watch.stop()
        # Closing an unread reply drops its connection: the peer sees that we left.
        self._reply.close()


def _tls() -> ssl.SSLContext:
    # httpx2 knows each system's trust store; it is loaded by the first https request only.
    from woollama.core.transport.http import tls_context

    return tls_context()


def _unanswered(url: str, error: aiohttp.ClientResponseError) -> TransportError:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return unreachable(url, f"the proxy answers {error.status} {error.message}")
    return garbled(url, error.message)


class _StaleConnection(aiohttp.ClientConnectionError):
    """A connection from the pool failed before a byte of the reply."""


class _Reply(aiohttp.ClientResponse):
    """A reply that knows whether its connection had carried another one before."""

    async def start(self, connection: aiohttp.connector.Connection) -> Self:
        history = vars(connection.protocol)
        reused = history.setdefault("woollama_reused", False)
        history["woollama_reused"] = True
        try:
            await super().start(connection)
        except (aiohttp.ClientConnectionError, ConnectionError) as error:
            if not reused or isinstance(error, TimeoutError):
                raise
            raise _StaleConnection(str(error)) from error
        if connection.protocol is not None:
            # Up to here the limit was that of the first byte; what follows is watched by us.
            connection.protocol.read_timeout = None
            connection.protocol.start_timeout()
        return self


class _Watch:
    """The time limits of one request: one timer a reply, not one a read.

    The silence of the peer counts only while something is waited for: a slow reader's own pauses
    are not the peer's.
    """

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self.url = url
        self.timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        whole = timeouts.whole
        self._end = self._loop.time() + whole if whole is not None else None
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._content: aiohttp.StreamReader | None = None

    def before_first_byte(self) -> tuple[float | None, str]:
        """How long to wait for the reply's head, and what to say when it does not come."""
        first = self.timeouts.first_byte
        left = self._end - self._loop.time() if self._end is not None else None
        if left is not None and (first is None or left < first):
            return max(left, 0.0), "did not finish"
        return first, "did not answer"

    def wait(self, content: aiohttp.StreamReader) -> None:
        """From now on a byte is waited for.

        Raises:
            TimeoutError: the end of everything has passed.
        """
        now = self._since = self._loop.time()
        if self._end is not None and self._end <= now:
            raise TimeoutError
        if self._timer is None:
            due = self._due(now)
            if due is not None:
                self._content = content
                self._timer = self._loop.call_at(due, self._check)

    def rest(self) -> None:
        """It has come."""
        self._since = None

    def _due(self, since: float) -> float | None:
        between = self.timeouts.between
        due = since + between if between is not None else None
        if self._end is not None and (due is None or self._end < due):
            return self._end
        return due

    def _check(self) -> None:
        self._timer = None
        due = self._due(self._since) if self._since is not None else None
        if due is None or self._content is None:
            return
        if due > self._loop.time():
            self._timer = self._loop.call_at(due, self._check)
            return
        self._content.set_exception(TimeoutError())

    def failure(self) -> TransportError:
        """The error of the limit that passed."""
        if self._end is not None and self._loop.time() >= self._end:
            return timed_out(self.url, "did not finish", self.timeouts.whole)
        return timed_out(self.url, "sent nothing more", self.timeouts.between)

    def stop(self) -> None:
        """Nothing is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()


class _Response:
    """A ``WireResponse``, and the iterator of its own chunks."""

    def __init__(self, reply: aiohttp.ClientResponse, watch: _Watch) -> None:
        self.status = reply.status
        self._reply = reply
        self._watch = watch
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            found: dict[str, str] = {}
            for name, value in self._reply.headers.items():
                key = name.lower()
                found[key] = f"{found[key]}, {value}" if key in found else value
            self._headers = found
        return self._headers

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        # No generator: nothing is left to be finalized when a reader leaves early.
        content, watch = self._reply.content, self._watch
        try:
            if not content.is_eof():
                watch.wait(content)
            chunk = await content.readany()
        except TimeoutError as error:
            raise watch.failure() from error
        except (aiohttp.ClientError, OSError) as error:
            failure = _broken(watch.url, error)
        else:
            watch.rest()
            if chunk:
                return chunk
            raise StopAsyncIteration
        raise failure


def _broken(url: str, error: aiohttp.ClientError | OSError) -> TransportError:
    if isinstance(error, aiohttp.ClientResponseError):
        return garbled(url, error.message)
    inner = error.__cause__
    if isinstance(inner, ContentEncodingError):
        return garbled(url, inner.message)
    return cut(url, inner.message if isinstance(inner, HttpProcessingError) else error)
