"""Read one HTTP/1.1 reply after another: a small, fast parser for the load client."""

from collections.abc import Sequence
from typing import Literal

_CONTENT = b'"content":'
_ENDS = (b'"finish_reason":"stop"', b'"finish_reason": "stop"')
_STAMP_BYTES = 19


class ReplyReader:
    """Bytes of a connection in, parts of a reply's body out.

    Attributes:
        status: The status of the reply, 0 before its head has come.
        closes: Whether the peer will close the connection after it.
        done: Whether the reply has ended.
    """

    def __init__(self) -> None:
        """Nothing read yet."""
        self._kept = b""
        self._left_bytes = 0
        self._state: Literal["head", "length", "chunked", "eof"] = "head"
        self.status = 0
        self.closes = False
        self.done = False

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection ends this reply."""
        return self._state == "eof"

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Take what was read; return the parts of the body in it, which may be none."""
        read = self._kept + data if self._kept else data
        self._kept = b""
        if self._state == "head":
            end = read.find(b"\r\n\r\n")
            if end < 0:
                self._kept = read
                return ()
            self._take_head(read[:end].lower())
            read = read[end + 4 :]
        if self._state == "chunked":
            return self._take_chunks(read)
        if self._state == "length":
            self._left_bytes -= len(read)
            self.done = self._left_bytes <= 0
        return (read,) if read else ()

    def _take_head(self, head: bytes) -> None:
        self.status = int(head[9:12])
        self.closes = b"\r\nconnection: close" in head
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            stop = head.find(b"\r\n", at + 17)
            self._left_bytes = int(head[at + 17 : stop if stop > 0 else len(head)])
            self._state = "length"
        elif b"\r\ntransfer-encoding: chunked" in head:
            self._state = "chunked"
        else:
            self._state = "eof"

    def _take_chunks(self, read: bytes) -> Sequence[bytes]:
        parts, at, size = list[bytes](), 0, len(read)
        while True:
            eol = read.find(b"\r\n", at)
            if eol < 0:
                break
            length = int(read[at:eol].partition(b";")[0], 16)
            end = eol + 2 + length
            if size < end + 2:
                break
            if not length:
                self.done = True
                return parts
            parts.append(read[eol + 2 : end])
            at = end + 2
        self._kept = read[at:]
        return parts


class StampReader:
    """Finds the mock's time stamps in a stream of events, whole or cut anywhere.

    Attributes:
        lateness_ns: For each text seen, how long it was on its way.
        first_ns: When the first text was read; 0 before.
        finished: Whether the event that ends a good answer was seen.
    """

    def __init__(self) -> None:
        """Nothing seen yet."""
        self._line = b""
        self.lateness_ns: list[int] = []
        self.first_ns = 0
        self.finished = False

    def feed(self, data: bytes, *, at_ns: int) -> None:
        """Look through one part of the body, read at ``at_ns`` of CLOCK_MONOTONIC."""
        text = self._line + data if self._line else data
        cut = text.rfind(b"\n") + 1
        self._line = text[cut:]
        at = text.find(_CONTENT, 0, cut)
        while at >= 0:
            at += 12 if text[at + 10] == 32 else 11  # json.dumps puts a space after the colon
            stamp = text[at : at + _STAMP_BYTES]
            if stamp.isdigit():
                self.first_ns = self.first_ns or at_ns
                self.lateness_ns.append(at_ns - int(stamp))
            at = text.find(_CONTENT, at, cut)
        if not self.finished:
            self.finished = any(text.find(end, 0, cut) >= 0 for end in _ENDS)
