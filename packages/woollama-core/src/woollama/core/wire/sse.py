"""Server-sent events: bytes cut anywhere to the data of each event (wire rules C-11, C-12)."""

from woollama.core.errors import ReplyError

__all__ = ["LIMIT_BYTES", "EventSplitter"]

LIMIT_BYTES = 16 * 1024 * 1024
"""The longest single event; a longer one is an error rather than memory without end."""


class EventSplitter:
    """Splits an event stream. Comments, ``event:``, ``id:`` and ``retry:`` lines are skipped.

    Line ends are CR, LF or CRLF; several data lines join with a newline; the text is not decoded,
    so a character cut between two reads survives.
    """

    def __init__(self) -> None:
        """Nothing has been read."""
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False
        self.foreign: bool = False
        """Whether a line came that no event stream has."""

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the events that ``data`` completes.

        Raises:
            ReplyError: one event is longer than ``LIMIT_BYTES``.
        """
        if self._after_cr or b"\r" in data:
            data = self._newlines(data)
        buffer = self._buffer
        if not buffer and data.endswith(b"\n\n"):
            return self._data_of(data[:-2].split(b"\n\n"))
        buffer += data
        end = buffer.rfind(b"\n\n", max(0, self._searched - 1))
        self._searched = len(buffer)
        if end < 0:
            if len(buffer) > LIMIT_BYTES:
                raise ReplyError(f"One event of the reply is longer than {LIMIT_BYTES} bytes.")
            return []
        blocks = bytes(buffer[:end]).split(b"\n\n")
        del buffer[: end + 2]
        self._searched = len(buffer)
        return self._data_of(blocks)

    def finish(self) -> list[bytes]:
        """The data of an event that the input ended in, without its blank line."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return self._data_of(rest.split(b"\n\n"))

    def _newlines(self, data: bytes) -> bytes:
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if data.endswith(b"\r"):
            self._after_cr = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _data_of(self, blocks: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                data = block[6:]
            else:
                data = b"\n".join(self._lines_of(block))
            if data:  # the standard dispatches no event without data
                found.append(data)
        return found

    def _lines_of(self, block: bytes) -> list[bytes]:
        lines: list[bytes] = []
        for line in block.split(b"\n"):
            name, colon, value = line.partition(b":")
            if name == b"data":
                lines.append(value.removeprefix(b" "))
            elif line and not (colon and name in {b"", b"event", b"id", b"retry"}):
                self.foreign = True
        return lines
