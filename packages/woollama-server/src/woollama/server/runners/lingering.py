"""Ends that take their time: of a connection on which the client still sends, and of a task.

Closing such a connection at once would reset it, and with that take back what was answered.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from woollama.server.runners.heads import HeadJoiner

__all__ = ["CLEAN_UP_S", "LINGER_S", "LingeringTransport"]

LINGER_S = 1.0
"""How long what a client still sends is read and thrown away."""

CLEAN_UP_S = 5.0
"""How long a task that was cut may clean up behind itself."""

_CONTINUE = b"HTTP/1.1 100 "


class LingeringTransport:
    """A transport whose ``close`` ends our side first when the client may still be sending.

    Everything else is the transport's own. Whoever reads from it drops what comes when it
    ``is_closing``.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        is_unread: Callable[[], bool],
    ) -> None:
        """``is_unread`` is asked when it is to be closed."""
        self._transport = transport
        self._loop = loop
        self._is_unread = is_unread
        self._ended = False
        self._joiner = HeadJoiner(transport, loop)
        # Not by `__getattr__`: it is called for each chunk.
        self.write: Callable[[bytes], None] = transport.write

    def __getattr__(self, name: str) -> Any:
        """What the transport has."""
        return getattr(self._transport, name)

    def expect_head(self) -> None:
        """What is written next is a head, and leaves with what is written behind it."""
        self.write = self._write_head

    def _write_head(self, data: bytes) -> None:
        if data.startswith(_CONTINUE):
            self._transport.write(data)
            return
        self._joiner.hold(data)
        self.write = self._write_first

    def _write_first(self, data: bytes) -> None:
        self.write = self._transport.write
        self._joiner.write(data)

    def is_closing(self) -> bool:
        """Whether nothing is answered any more."""
        return self._ended or self._transport.is_closing()

    def close(self) -> None:
        """Ends our side, and the connection with the client's end, or a little later."""
        if self.is_closing():
            return
        self._joiner.flush()
        if not self._is_unread() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._ended = True
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(LINGER_S, self._transport.close)
