"""The network as two narrow interfaces: open a request, read the reply's bytes."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from woollama.core.canonical import Value
from woollama.core.wire.codec import WireRequest

__all__ = ["NO_LIMITS", "Timeouts", "Transport", "WireResponse"]


class Timeouts(Value, frozen=True, kw_only=True):
    """How long to wait, in seconds; None is without end.

    Attributes:
        connect: for a connection, its TLS handshake included.
        first_byte: from the request being sent to the reply's status line.
        between: between two reads of the body; it starts again with each byte (OC-20).
        whole: for everything together.
    """

    connect: float | None = 10.0
    first_byte: float | None = 600.0
    between: float | None = 300.0
    whole: float | None = None


NO_LIMITS = Timeouts(connect=None, first_byte=None, between=None, whole=None)


class WireResponse(Protocol):
    """A reply whose status and headers are here and whose body is still to come."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header names in lower case; of a repeated one the values joined with a comma."""
        ...

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The decompressed body as it comes, one element a read, none of them empty.

        Raises:
            TransportError: the connection was cut, or a time limit passed.
        """
        ...


class Transport(Protocol):
    """Sends one request; several may be open at once. Knows no dialect and follows no redirect."""

    def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[WireResponse]:
        """The reply of the server; leaving the context closes it, read or not.

        Raises:
            TransportError: kind ``connect`` (502), ``timeout`` (504) or ``cut`` (502).
        """
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
