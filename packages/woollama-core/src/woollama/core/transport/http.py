"""The transport on httpx2: asyncio and trio, no further dependency."""

import os
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpx2
from anyio.lowlevel import current_token

from woollama.core.errors import TransportError
from woollama.core.transport.base import Timeouts, WireResponse
from woollama.core.transport.network import (
    AGENT_HEADERS,
    Routes,
    cut,
    decompressor,
    garbled,
    no_address,
    other_loop,
    timed_out,
    unreachable,
    unsendable,
)
from woollama.core.wire.codec import WireRequest

__all__ = ["HttpTransport", "tls_context"]

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30.0)
_CLOSING_S = 5.0


def tls_context() -> ssl.SSLContext:
    """The TLS context for this process: the system's trust store, or what ``SSL_CERT_FILE`` names.

    Made on first use, once for each set of certificates (ruling RU-2): making one takes many
    milliseconds, and it is the same for every event loop.

    Raises:
        TransportError: the file or folder of ``SSL_CERT_FILE`` or ``SSL_CERT_DIR`` cannot be used.
    """
    return _context(os.environ.get("SSL_CERT_FILE") or "", os.environ.get("SSL_CERT_DIR") or "")


@lru_cache(maxsize=8)
def _context(file: str, folder: str) -> ssl.SSLContext:
    pairs = (("SSL_CERT_FILE", file), ("SSL_CERT_DIR", folder))
    named = " and ".join(f"{name}={value!r}" for name, value in pairs if value)
    try:
        return httpx2.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        raise TransportError(
            f"The certificates of {named or 'this system'} cannot be read: {error}.",
            kind="connect",
            retryable=False,
        ) from error


class HttpTransport:
    """A client for each proxy in use; TLS is loaded by the first ``https`` request."""

    def __init__(self) -> None:
        """Opens nothing yet."""
        self._clients: dict[tuple[bool, str | None], httpx2.AsyncClient] = {}
        self._loop: object = None
        self._routes = Routes()

    def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[WireResponse]:
        """See ``Transport.open``."""
        return _Opening(self, request, timeouts)

    async def send(self, request: WireRequest, limits: "_Limits") -> httpx2.Response:
        """The reply, whose body is still to come; for ``open``."""
        reply, fresh, error = await self._attempt(request, limits)
        while reply is None and not fresh:
            # A pooled connection that the peer closed while it was idle never carried the request,
            # and the others in the pool may be no better.
            reply, fresh, error = await self._attempt(request, limits)
        if reply is None:
            raise cut(request.url, error) from error
        return reply

    async def _attempt(
        self, request: WireRequest, limits: "_Limits"
    ) -> tuple[httpx2.Response | None, bool, Exception | None]:
        url = request.url
        steps: list[str] = []

        async def follow(step: str, _info: Mapping[str, Any]) -> None:
            steps.append(step)

        client = self._client(url)
        seconds, what = limits.before_first_byte()
        try:
            built = client.build_request(
                request.method,
                url,
                content=request.body or None,
                headers=dict(request.headers),
                extensions={"trace": follow, "timeout": limits.steps},
            )
            with anyio.move_on_after(seconds):
                reply = await client.send(built, stream=True)
                limits.reading()
                return reply, True, None
        except httpx2.ConnectTimeout as error:
            limit = limits.timeouts.connect
            raise timed_out(url, "did not accept a connection", limit, connecting=True) from error
        except (httpx2.ConnectError, httpx2.ProxyError) as error:
            raise unreachable(url, error) from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise no_address(url, error) from error
        except (httpx2.LocalProtocolError, ValueError) as error:
            raise unsendable(url, error) from error
        except httpx2.TransportError as error:
            return None, any(step.startswith("connection.connect") for step in steps), error
        raise timed_out(url, what, seconds)

    def _client(self, url: str) -> httpx2.AsyncClient:
        loop = current_token().native_token
        if self._clients and self._loop is not loop:
            raise other_loop()
        self._loop = loop
        secure, proxy = url.startswith("https:"), self._routes.proxy(url)
        client = self._clients.get((secure, proxy))
        if client is None:
            client = httpx2.AsyncClient(
                verify=tls_context() if secure else False,
                proxy=proxy,
                trust_env=False,
                limits=_LIMITS,
                timeout=None,
                headers=dict(AGENT_HEADERS),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
            self._clients[secure, proxy] = client
        return client

    async def aclose(self) -> None:
        """Close every connection; the next request opens anew."""
        clients = list(self._clients.values())
        self._clients.clear()
        self._loop = None
        for client in clients:
            await client.aclose()


class _Opening(AbstractAsyncContextManager[WireResponse]):
    def __init__(self, transport: HttpTransport, request: WireRequest, timeouts: Timeouts) -> None:
        self._transport = transport
        self._request = request
        self._timeouts = timeouts

    async def __aenter__(self) -> WireResponse:
        limits = _Limits(self._request.url, self._timeouts)
        self._response = _Response(await self._transport.send(self._request, limits), limits)
        return self._response

    async def __aexit__(self, *_error: object) -> None:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await self._response.aclose()


class _Limits:
    """The time limits of one request."""

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self.url = url
        self.timeouts = timeouts
        whole = timeouts.whole
        self._end = anyio.current_time() + whole if whole is not None else None
        # Looked at by httpx2 at each step: no limit on a read before the reply's head is here.
        self.steps: dict[str, float | None] = {
            "connect": timeouts.connect,
            "read": None,
            "write": None,
            "pool": None,
        }

    def before_first_byte(self) -> tuple[float, str]:
        """How long to wait for the reply's head, and what to say when it does not come."""
        first = self.timeouts.first_byte
        limit = first if first is not None else float("inf")
        left = self.left()
        return (left, "did not finish") if left < limit else (limit, "did not answer")

    def reading(self) -> None:
        """From now on the silence between two reads counts."""
        self.steps["read"] = self.timeouts.between

    def left(self) -> float:
        """Seconds until the end of everything."""
        return max(self._end - anyio.current_time(), 0.0) if self._end is not None else float("inf")


class _Response:
    """A ``WireResponse``, and the iterator of its own chunks."""

    def __init__(self, reply: httpx2.Response, limits: _Limits) -> None:
        self.status = reply.status_code
        self.headers: Mapping[str, str] = {name: reply.headers[name] for name in reply.headers}
        self._reply = reply
        self._limits = limits
        self._pieces = reply.aiter_raw()
        self._begun = False
        self._plain: Callable[[bytes], bytes] = bytes

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        url, timeouts = self._limits.url, self._limits.timeouts
        if not self._begun:
            self._plain = decompressor(url, self.headers.get("content-encoding", "")) or bytes
        left = self._limits.left()
        self._begun = True
        try:
            with anyio.move_on_after(left):
                while left:
                    chunk = self._plain(await anext(self._pieces))
                    if chunk:
                        return chunk
        except httpx2.TimeoutException as error:
            raise timed_out(url, "sent nothing more", timeouts.between) from error
        except httpx2.TransportError as error:
            raise cut(url, error) from error
        except zlib.error as error:
            raise garbled(url, error) from error
        raise timed_out(url, "did not finish", timeouts.whole)

    async def aclose(self) -> None:
        if self._begun and not self._reply.is_closed:
            # A chain of generators waits inside httpx2, and trio wants each of them ended: one
            # last read, cancelled at once, runs through all of them.
            with anyio.CancelScope() as last:
                last.cancel()
                with suppress(httpx2.TransportError, StopAsyncIteration):
                    while True:
                        await anext(self._pieces)
        await self._reply.aclose()
