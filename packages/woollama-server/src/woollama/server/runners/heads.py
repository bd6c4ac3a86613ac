"""The head of an answer and the first of its body, in one system call."""

import asyncio

__all__ = ["HeadJoiner"]


class HeadJoiner:
    """Writes to a transport; a head waits for what follows it in the same step of a task.

    What does not follow at once is not waited for: the head leaves in the loop's next round.
    """

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing waits."""
        self._transport = transport
        self._loop = loop
        self._head = b""

    def hold(self, head: bytes) -> None:
        """Keeps the head back."""
        self._head = head
        self._loop.call_soon(self.flush)

    def write(self, data: bytes) -> None:
        """Writes ``data``, behind the head if one waits."""
        head, self._head = self._head, b""
        if head and data:
            self._transport.writelines((head, data))
        elif head or data:
            # Alone: asyncio from 3.12 on never gets done with a line that is empty.
            self._transport.write(head or data)

    def flush(self) -> None:
        """Writes a head that waits."""
        if self._head and not self._transport.is_closing():
            self.write(b"")
