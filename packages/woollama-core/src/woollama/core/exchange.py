"""One exchange: an authorized request goes out, and a reply whose status says yes comes back."""

import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from types import TracebackType
from typing import Any

import anyio
import msgspec

from woollama.core.errors import ConfigError, InferenceError, ProviderError, TransportError
from woollama.core.providers import Target
from woollama.core.transport.base import Timeouts, Transport, WireResponse
from woollama.core.wire import WireRequest

__all__ = ["name_provider", "open_reply", "read_body", "read_out"]

LIMIT_ERROR_BYTES = 1024 * 1024
"""The most of an error's body that is read."""

_SECRET_HEADER = re.compile("auth|cookie|key|secret|token")
_SHORTEST_SECRET = 6
_CONCEALED = "***"
_TEXTS = ("message", "native_type", "code", "param", "hint", "request_id")
_GRACE_S = 0.05


def open_reply(
    target: Target, wire: WireRequest, *, transport: Transport, timeouts: Timeouts
) -> AbstractAsyncContextManager[WireResponse]:
    """The reply to an authorized request, once its status says yes.

    An error on its way through says whose it is, and no key of the request: some servers repeat
    the key they refuse.

    Raises:
        ProviderError: its status says no, or points elsewhere.
        TransportError: there was none.
    """
    return _Exchange(target, wire.headers, transport.open(wire, timeouts=timeouts))


class _Exchange(AbstractAsyncContextManager[WireResponse]):
    # A class, as everywhere on this path: a generator costs more, and a loop that ends closes every
    # generator by itself, the inner ones under the outer ones' hands.

    def __init__(
        self,
        target: Target,
        headers: Mapping[str, str],
        connection: AbstractAsyncContextManager[WireResponse],
    ) -> None:
        self._target = target
        self._headers = headers
        self._connection = connection

    async def __aenter__(self) -> WireResponse:
        try:
            response = await self._connection.__aenter__()
            if response.status < 300:
                return response
            async with AsyncExitStack() as stack:
                stack.push_async_exit(self._connection)
                raise await _refusal(self._target, response)
        except InferenceError as error:
            self._tell(error)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if isinstance(error, InferenceError):
            self._tell(error)
        return await self._connection.__aexit__(kind, error, trace)

    def _tell(self, error: InferenceError) -> None:
        name_provider(error, self._target)
        _conceal(error, self._headers)


def name_provider(error: InferenceError, target: Target) -> None:
    """Says whose connection failed, for a transport knows addresses only, and hides the key."""
    if isinstance(error, TransportError) and not error.message.startswith("Provider "):
        error.message = f"Provider {target.provider.name!r}: {error.message}"
        error.args = (error.message, *error.args[1:])
    with suppress(ConfigError):
        _conceal(error, target.provider.headers())


def _conceal(error: InferenceError, headers: Mapping[str, str]) -> None:
    words = (value.split(" ")[-1] for name, value in headers.items() if _SECRET_HEADER.search(name))
    for secret in {word for word in words if len(word) >= _SHORTEST_SECRET}:
        for name in _TEXTS:
            text: str | None = getattr(error, name)
            if text is not None and secret in text:
                setattr(error, name, text.replace(secret, _CONCEALED))
        error.payload = _concealed(error.payload, secret)
        error.headers = _concealed(dict(error.headers), secret)
        if len(error.args) == 4:
            error.args = (*error.args[:3], error.payload)
        error.args = (error.message, *error.args[1:])


def _concealed(payload: Any, secret: str) -> Any:
    try:
        text = msgspec.json.encode(payload)
        hidden = text.replace(msgspec.json.encode(secret)[1:-1], _CONCEALED.encode())
        return payload if hidden == text else msgspec.json.decode(hidden)
    except RecursionError:
        return None


async def _refusal(target: Target, response: WireResponse) -> ProviderError:
    if response.status < 400:
        place = response.headers.get("location", "elsewhere")
        return ProviderError(
            f"Provider {target.provider.name!r} answers with a redirect to {place!r}. Keys follow "
            "no redirect: set base_url to the address that answers itself.",
            kind="redirect",
            peer_status=response.status,
        )
    pieces: list[bytes] = []
    # The status has said no already: a body that breaks off takes nothing of it back.
    with suppress(TransportError):
        async for chunk in response.chunks:
            pieces.append(chunk)
            if sum(map(len, pieces)) >= LIMIT_ERROR_BYTES:
                break
    body = b"".join(pieces)[:LIMIT_ERROR_BYTES]
    codec = target.dialect.codec
    return codec.decode_error(response.status, response.headers, body, now=time.time)


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


async def read_out(chunks: AsyncIterator[bytes]) -> None:
    """Reads on, for a moment, behind the end that a stream has told itself.

    Most servers end the body right then, and a connection whose body was read to its end serves
    the next request; the others are not waited for.
    """
    with anyio.move_on_after(_GRACE_S), suppress(TransportError):
        async for _ in chunks:
            pass
