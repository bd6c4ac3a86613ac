"""JSON lines: bytes cut anywhere to lines (wire rule C-13)."""

from woollama.core.errors import ReplyError

__all__ = ["LIMIT_BYTES", "LineSplitter"]

LIMIT_BYTES = 8 * 1024 * 1024
"""The longest single line."""


class LineSplitter:
    """Splits at LF, drops a CR before it, skips blank lines; takes a last line without its LF."""

    def __init__(self) -> None:
        """Nothing has been read."""
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes.

        Raises:
            ReplyError: one line is longer than ``LIMIT_BYTES``.
        """
        buffer = self._buffer
        buffer += data
        end = buffer.rfind(b"\n", self._searched)
        self._searched = len(buffer)
        if end < 0:
            if len(buffer) > LIMIT_BYTES:
                raise ReplyError(f"One line of the reply is longer than {LIMIT_BYTES} bytes.")
            return []
        lines = bytes(buffer[:end]).split(b"\n")
        del buffer[: end + 1]
        self._searched = len(buffer)
        return [line for line in map(bytes.strip, lines) if line]

    def finish(self) -> list[bytes]:
        """The line that the input ended in."""
        line = bytes(self._buffer).strip()
        self._buffer.clear()
        return [line] if line else []
