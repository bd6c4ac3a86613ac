"""The transport on httpx2: asyncio and trio, no further dependency."""

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import anyio
import httpx2

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

__all__ = ["HttpTransport", "tls_context"]

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30.0)


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

    @asynccontextmanager
    async def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AsyncGenerator[WireResponse]:
        """See ``Transport.open``."""
        async with limited(timeouts.whole, request.url):
            reply = await self._send(request, timeouts)
            try:
                yield _Response(request.url, reply, timeouts)
            finally:
                with anyio.CancelScope(shield=True):
                    await reply.aclose()

    async def _send(self, request: WireRequest, timeouts: Timeouts) -> httpx2.Response:
        reply, fresh, error = await self._attempt(request, timeouts)
        if reply is None and not fresh:
            # A pooled connection that the peer closed while it was idle never carried the request.
            reply, fresh, error = await self._attempt(request, timeouts)
        if reply is None:
            raise cut(request.url, error or ConnectionError()) from error
        return reply

    async def _attempt(
        self, request: WireRequest, timeouts: Timeouts
    ) -> tuple[httpx2.Response | None, bool, Exception | None]:
        url = request.url
        steps: list[str] = []

        async def follow(step: str, _info: Mapping[str, Any]) -> None:
            steps.append(step)

        try:
            client = self._client(url)
            built = client.build_request(
                request.method,
                url,
                content=request.body or None,
                headers=dict(request.headers),
                timeout=httpx2.Timeout(timeouts.between, connect=timeouts.connect, pool=None),
                extensions={"trace": follow},
            )
            with anyio.move_on_after(timeouts.first_byte) as scope:
                return await client.send(built, stream=True), True, None
        except httpx2.ConnectTimeout as error:
            raise timed_out(url, "did not accept a connection", timeouts.connect) from error
        except httpx2.TimeoutException as error:
            raise timed_out(url, "did not answer", timeouts.between) from error
        except (httpx2.ConnectError, httpx2.ProxyError) as error:
            raise unreachable(url, error) from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise TransportError(f"{url!r} is no address: {error}.", kind="connect") from error
        except httpx2.TransportError as error:
            return None, any(step.startswith("connection.connect") for step in steps), error
        if scope.cancelled_caught:
            raise timed_out(url, "did not answer", timeouts.first_byte)
        raise AssertionError("the request neither answered nor failed")

    def _client(self, url: str) -> httpx2.AsyncClient:
        secure, proxy = url.startswith("https:"), proxy_for(url)
        client = self._clients.get((secure, proxy))
        if client is None:
            client = httpx2.AsyncClient(
                verify=tls_context() if secure else False,
                proxy=proxy,
                trust_env=False,
                limits=_LIMITS,
                timeout=None,
                headers={"accept-encoding": "identity"},
            )
            self._clients[secure, proxy] = client
        return client

    async def aclose(self) -> None:
        """Close every connection; the next request opens anew."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.aclose()


class _Response:
    def __init__(self, url: str, reply: httpx2.Response, timeouts: Timeouts) -> None:
        self.status = reply.status_code
        self._reply = reply
        self._url = url
        self._between = timeouts.between

    @property
    def headers(self) -> Mapping[str, str]:
        return {name: self._reply.headers[name] for name in self._reply.headers}

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._reply.aiter_bytes():
                if chunk:
                    yield chunk
        except httpx2.TimeoutException as error:
            raise timed_out(self._url, "sent nothing more", self._between) from error
        except httpx2.TransportError as error:
            raise cut(self._url, error) from error
        except httpx2.DecodingError as error:
            raise cut(self._url, error) from error
