"""Requests to fabric: to where it is now, under its key, once more when it had to be restarted."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from woollama.core.errors import ReplyError, TransportError
from woollama.core.exchange import read_body
from woollama.core.transport import Timeouts, Transport, WireResponse
from woollama.core.wire.codec import WireRequest
from woollama.server.fabric.faults import reply_fault
from woollama.server.fabric.keys import with_key
from woollama.server.fabric.process import FabricServer

__all__ = ["QUICK", "SLOW", "FabricClient"]

QUICK = Timeouts(connect=2.0, first_byte=20.0, between=20.0, whole=20.0)
"""For what fabric answers from its own files. A pattern that fills itself for ever ends here."""

SLOW = Timeouts(connect=2.0, first_byte=90.0, between=30.0, whole=90.0)
"""For what it asks all its vendors."""

_LIMIT_BYTES = 64 * 1024 * 1024

Ask = Callable[[str], WireRequest]
"""Makes the request for the address where fabric is."""


class FabricClient:
    """Speaks to one fabric server."""

    def __init__(self, server: FabricServer, transport: Transport, key: str | None) -> None:
        """The transport is the daemon's."""
        self.server = server
        self._transport = transport
        self._key = key

    @asynccontextmanager
    async def open(self, ask: Ask, *, timeouts: Timeouts) -> AsyncGenerator[WireResponse]:
        """The reply, whatever its status.

        A request that got no answer is sent once more when fabric is there again.

        Raises:
            TransportError: there was none.
            ConfigError: fabric cannot be started.
        """
        async with AsyncExitStack() as stack:
            # A start that failed is no lost request: it is outside.
            request = await self._request(ask)
            try:
                response = await self._send(stack, request, timeouts)
            except TransportError as error:
                if not await self.server.recover(error):
                    raise
                request = await self._request(ask)
                response = await self._send(stack, request, timeouts)
            yield response

    async def _request(self, ask: Ask) -> WireRequest:
        return with_key(ask(await self.server.base_url()), self._key)

    async def _send(
        self, stack: AsyncExitStack, request: WireRequest, timeouts: Timeouts
    ) -> WireResponse:
        try:
            return await stack.enter_async_context(self._transport.open(request, timeouts=timeouts))
        except TransportError as error:
            raise _named(error) from error.__cause__

    async def broken(self, error: TransportError) -> TransportError:
        """The error of a reply that broke off; a fabric of ours that is stuck is ended."""
        if error.kind == "timeout":
            await self.server.recover(error)
        return _named(error)

    async def fetch(
        self, ask: Ask, *, pattern: str | None = None, timeouts: Timeouts = QUICK
    ) -> bytes:
        """The whole body of a reply that says yes.

        Args:
            ask: the request.
            pattern: whose it is, for errors.
            timeouts: how long to wait.

        Raises:
            RequestError: fabric misses a variable.
            ProviderError: fabric says no.
            ReplyError: the reply is too long.
            TransportError: there was none, or it was cut.
        """
        async with self.open(ask, timeouts=timeouts) as response:
            try:
                body = await read_body(response, limit_bytes=_LIMIT_BYTES)
            except TransportError as error:
                raise await self.broken(error) from error.__cause__
            if response.status != 200:
                raise reply_fault(pattern, response.status, body)
        if len(body) >= _LIMIT_BYTES:
            raise ReplyError(f"fabric's answer is longer than {_LIMIT_BYTES} bytes.")
        return body


def _named(error: TransportError) -> TransportError:
    """The error with fabric's name in front."""
    if not error.message.startswith("fabric"):
        error.message = f"fabric: {error.message}"
        error.args = (error.message, *error.args[1:])
    return error
