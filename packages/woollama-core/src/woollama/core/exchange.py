"""One exchange: an authorized request goes out, and a reply whose status says yes comes back."""

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

from woollama.core.errors import InferenceError, ProviderError, TransportError
from woollama.core.providers import Target
from woollama.core.transport.base import Timeouts, Transport, WireResponse
from woollama.core.wire import WireRequest

__all__ = ["name_provider", "open_reply", "read_body"]

LIMIT_ERROR_BYTES = 1024 * 1024
"""The most of an error's body that is read."""

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})
_SHORTEST_SECRET = 6


@asynccontextmanager
async def open_reply(
    target: Target, wire: WireRequest, *, transport: Transport, timeouts: Timeouts
) -> AsyncGenerator[WireResponse]:
    """The reply to an authorized request, once its status says yes.

    Raises:
        ProviderError: its status says no, or points elsewhere.
        TransportError: there was none.
    """
    try:
        async with transport.open(wire, timeouts=timeouts) as response:
            if response.status >= 300:
                raise await _refusal(target, wire, response)
            yield response
    except TransportError as error:
        name_provider(error, target)
        raise


def name_provider(error: InferenceError, target: Target) -> None:
    """Says whose connection failed: a transport knows addresses only."""
    if isinstance(error, TransportError) and not error.message.startswith("Provider "):
        error.message = f"Provider {target.provider.name!r}: {error.message}"
        error.args = (error.message, *error.args[1:])


async def _refusal(target: Target, wire: WireRequest, response: WireResponse) -> ProviderError:
    if response.status < 400:
        place = response.headers.get("location", "elsewhere")
        return ProviderError(
            f"Provider {target.provider.name!r} answers with a redirect to {place!r}. Keys follow "
            "no redirect: set base_url to the address that answers itself.",
            kind="redirect",
            peer_status=response.status,
        )
    body = await read_body(response, limit_bytes=LIMIT_ERROR_BYTES)
    for secret in _secrets(wire):
        # Some servers repeat the key they refuse; it goes no further.
        body = body.replace(secret, b"***")
    codec = target.dialect.codec
    return codec.decode_error(response.status, response.headers, body, now=time.time)


def _secrets(wire: WireRequest) -> Iterator[bytes]:
    for name, value in wire.headers.items():
        secret = value.removeprefix("Bearer ").encode()
        if name in _SECRET_HEADERS and len(secret) >= _SHORTEST_SECRET:
            yield secret


async def read_body(response: WireResponse, *, limit_bytes: int) -> bytes:
    """The body, or as much of it as the limit allows."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in response.chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size >= limit_bytes:
            break
    return b"".join(pieces)[:limit_bytes]
