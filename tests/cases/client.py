"""A client on a bare socket, so that a request may be as wrong as the case wants it."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping

from msgspec import UNSET

from tests.cases.comparison import MISSING
from tests.cases.replies import Reply
from tests.cases.schema import Http, Raw, Request
from tests.cases.texts import bytes_of, fill, parts_of, repeated

__all__ = ["ask"]

Wait = Callable[[float], object]
"""Waits so many seconds, or less when the run is over."""


class _LeftError(Exception):
    """The client has seen enough and goes."""


def ask(request: Request, port: int, words: Mapping[str, str], wait: Wait) -> Reply:
    """The product's reply to one request; trouble with the connection stands in ``error``."""
    reply = Reply()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reply.started_at = time.monotonic()
            if isinstance(request, Raw):
                _send(connection, _raw_parts(request, words, wait), reply)
                _read_all(connection, reply, request.read_ms)
            else:
                _send(connection, [_encoded(request, port, words)], reply)
                _ReplyReader(connection, reply, request).read()
    except OSError as error:
        reply.error = f"{type(error).__name__}: {error}"
    reply.ended_at = time.monotonic()
    return reply


def _send(connection: socket.socket, parts: Iterable[bytes], reply: Reply) -> None:
    # A server may answer and close before it has read all: its answer is read nevertheless.
    try:
        for part in parts:
            connection.settimeout(10)
            connection.sendall(part)
    except OSError as error:
        reply.error = f"while sending: {error}"


def _raw_parts(request: Raw, words: Mapping[str, str], wait: Wait) -> Iterable[bytes]:
    for part in parts_of(request.send):
        if part.delay_ms:
            wait(part.delay_ms / 1000)
        yield fill(bytes_of(part).decode("latin-1"), words).encode("latin-1")


def _encoded(request: Http, port: int, words: Mapping[str, str]) -> bytes:
    headers = {name.lower(): fill(value, words) for name, value in request.headers.items()}
    body = b""
    if request.body_raw is not None:
        body = b"".join(bytes_of(part) for part in parts_of(request.body_raw))
    elif request.body is not UNSET:
        text = json.dumps(repeated(request.body), ensure_ascii=False)
        body = fill(text, words).encode()
        headers.setdefault("content-type", "application/json")
    if body or request.method in {"POST", "PUT"}:
        headers.setdefault("content-length", str(len(body)))
    headers = {"host": f"127.0.0.1:{port}", "connection": "close"} | headers
    lines = [f"{request.method} {fill(request.path, words)} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _read_all(connection: socket.socket, reply: Reply, read_ms: int) -> None:
    end = time.monotonic() + read_ms / 1000
    try:
        while (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            data = connection.recv(65536)
            if not data:
                break
            reply.body += data
    except OSError:
        pass  # silence or a reset: what came until then is what is looked at
    found = re.match(rb"HTTP/1\.[01] (\d+)", reply.body)
    if found is not None:
        reply.status = int(found[1])
        reply.error = None


class _ReplyReader:
    """Reads one reply, and leaves when the request says so."""

    def __init__(self, connection: socket.socket, reply: Reply, request: Http) -> None:
        self._connection = connection
        self._reply = reply
        self._limit = request.disconnect_after_bytes
        self._deadline = reply.started_at + request.timeout_ms / 1000
        self._leave_at = (
            None
            if request.disconnect_after_ms is None
            else reply.started_at + request.disconnect_after_ms / 1000
        )
        self._buffer = bytearray()

    def read(self) -> None:
        reply = self._reply
        try:
            if not self._head():
                reply.error = reply.error or "connection closed before the headers"
                return
            if self._limit == 0:
                raise _LeftError
            reply.error = self._body()
        except _LeftError:
            reply.left_at = time.monotonic()
            reply.error = None
        except OSError as error:
            reply.error = f"{type(error).__name__}: {error}"

    def _more(self) -> bool:
        """Reads what has come; False at the end."""
        end = min(self._deadline, self._leave_at or self._deadline)
        left = end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError("no end of the reply in time")
            self._connection.settimeout(left)
            data = self._connection.recv(65536)
        except TimeoutError:
            if self._leave_at is not None and time.monotonic() >= self._leave_at:
                raise _LeftError from None
            raise
        self._buffer += data
        return bool(data)

    def _until(self, mark: bytes) -> bytes | None:
        while (end := self._buffer.find(mark)) < 0:
            if not self._more():
                return None
        return self._take(end + len(mark))[: -len(mark)]

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _got(self, data: bytes) -> None:
        self._reply.body += data
        if self._limit is not None and len(self._reply.body) >= self._limit:
            raise _LeftError

    def _head(self) -> bool:
        while True:
            head = self._until(b"\r\n\r\n")
            if head is None:
                return False
            first, *lines = head.decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            if status >= 200:
                break
        pairs = [line.partition(":") for line in lines]
        self._reply.status = status
        self._reply.headers = [(name.strip(), value.strip()) for name, _, value in pairs]
        return True

    def _body(self) -> str | None:
        """Reads it; what is wrong with its end."""
        length = self._reply.header("content-length")
        if "chunked" in str(self._reply.header("transfer-encoding")):
            return self._chunks()
        if self._reply.status in {204, 304}:
            return None
        if length is not MISSING:
            return self._exactly(int(length))
        self._got(self._take(len(self._buffer)))
        while self._more():
            self._got(self._take(len(self._buffer)))
        return None

    def _exactly(self, size: int) -> str | None:
        while len(self._reply.body) < size:
            if not self._buffer and not self._more():
                return "the body is shorter than its Content-Length"
            self._got(self._take(size - len(self._reply.body)))
        return None

    def _chunks(self) -> str | None:
        while (line := self._until(b"\r\n")) is not None:
            size = int(line.partition(b";")[0], 16)
            while len(self._buffer) < size + 2:
                if not self._more():
                    self._got(self._take(len(self._buffer)))
                    return "the chunked body has no end"
            data = self._take(size + 2)[:size]
            if not size:
                return None
            self._got(data)
        return "the chunked body has no end"
