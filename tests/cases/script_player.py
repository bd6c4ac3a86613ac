"""A provider's server that plays a script: raw bytes, written when and how the script says.

Threads and bare sockets, because what it must be able to do wrong (half a chunk, a reset, silence)
is what servers and event loops keep one from doing.
"""

import json
import re
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

from tests.cases.comparison import MISSING, dig
from tests.cases.schema import Entry, Match, Part, UpstreamScript
from tests.cases.texts import bytes_of, parts_of

__all__ = ["Received", "ScriptPlayer"]

_TOOL = re.compile(rb"@TOOL:([^@]+)@")
_LENGTH = re.compile(rb"(?i)(Content-Length: )\d+")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_TICK_S = 0.02


@dataclass(kw_only=True)
class Received:
    """A request that came from the product.

    Attributes:
        head: its first line and headers, as they came.
        headers: by name in lower case.
        closed_at: when the product closed the connection before the reply was over.
        closed: set then.
    """

    method: str
    path: str
    head: str
    headers: dict[str, str]
    body: bytes
    closed_at: float | None = None
    closed: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        """Notes that the product has closed the connection."""
        self.closed_at = time.monotonic()
        self.closed.set()

    @property
    def json(self) -> Any:
        """The body as JSON, or ``MISSING``."""
        try:
            return json.loads(self.body)
        except ValueError:
            return MISSING

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The functions that were offered, in whichever dialect."""
        tools: list[dict[str, Any]] | None = dig(self.json, "tools") or None
        return [tool.get("function") or tool for tool in tools or ()]


class ScriptPlayer:
    """A listening server; a context manager, at whose end all its connections are closed.

    Attributes:
        requests: what was asked, without what ``defaults`` answered.
    """

    def __init__(self, script: UpstreamScript) -> None:
        self._script = script
        self._used: set[int] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.requests: list[Received] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        if self._script.refuse:
            self._listener.close()
        else:
            self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with self._lock:
            open_sockets = [self._listener, *self._connections]
        for one in open_sockets:
            _shut(one)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _start(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as reader:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while not self._stopping.is_set():
                    request = _read_request(reader)
                    if request is None or not self._reply(connection, request):
                        return
        except OSError:
            return
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _reply(self, connection: socket.socket, request: Received) -> bool:
        """Answers; whether the connection may bring another request."""
        entry = self._find(request)
        for part in parts_of(entry.send):
            if self._pause(connection, request, part.delay_ms) or not self._write(
                connection, request, part
            ):
                return False
        if self._pause(connection, request, entry.hold_ms):
            return False
        if entry.close == "rst":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        return entry.close == "keep"

    def _find(self, request: Received) -> Entry:
        with self._lock:
            for number, slot in enumerate(self._script.script):
                if number in self._used and not slot.repeat:
                    continue
                for entry in slot.alt or (slot,):
                    if _matches(request, entry.expect):
                        self._used.add(number)
                        self.requests.append(request)
                        return entry
            default = _default_answer(request) if self._script.defaults else None
            if default is not None:
                return default
            self.requests.append(request)
            return _json_entry(404, {"error": {"message": "unscripted request"}})

    def _write(self, connection: socket.socket, request: Received, part: Part) -> bool:
        data = _with_tool_names(bytes_of(part), request)
        size = part.split_every or len(data)
        try:
            for start in range(0, len(data), size or 1):
                connection.sendall(data[start : start + size])
        except OSError:
            request.close()
            return False
        return True

    def _pause(self, connection: socket.socket, request: Received, wait_ms: int) -> bool:
        """Waits; whether the product closed the connection meanwhile."""
        end = time.monotonic() + wait_ms / 1000
        while time.monotonic() < end and not self._stopping.is_set():
            readable, _, _ = select.select([connection], [], [], _TICK_S)
            if not readable:
                continue
            try:
                more = connection.recv(1, socket.MSG_PEEK)
            except OSError:
                more = b""
            if not more:
                request.close()
                return True
            self._stopping.wait(_TICK_S)
        return self._stopping.is_set()


def _shut(one: socket.socket) -> None:
    # Wakes the thread that waits on it, which `close` alone does not.
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _read_request(reader: BinaryIO) -> Received | None:
    lines: list[str] = []
    while (line := reader.readline()) not in {b"\r\n", b""}:
        lines.append(line.decode("latin-1").rstrip("\r\n"))
    if not lines or not line:
        return None
    method, target, _ = lines[0].split(" ")
    fields = [text.partition(":") for text in lines[1:]]
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    if "chunked" in headers.get("transfer-encoding", ""):
        body = _read_chunks(reader)
    else:
        body = reader.read(int(headers.get("content-length") or 0))
    return Received(
        method=method,
        path=target.partition("?")[0],
        head="\r\n".join(lines),
        headers=headers,
        body=body,
    )


def _read_chunks(reader: BinaryIO) -> bytes:
    body = b""
    while size := int(reader.readline().partition(b";")[0] or b"0", 16):
        body += reader.read(size)
        reader.readline()
    reader.readline()
    return body


def _matches(request: Received, match: Match) -> bool:
    if match.method not in {None, request.method} or match.path not in {None, request.path}:
        return False
    if match.body_contains not in request.body.decode("utf-8", "replace"):
        return False
    if match.stream is None:
        return True
    return (dig(request.json, "stream") is True) is match.stream


def _default_answer(request: Received) -> Entry | None:
    if request.path == "/api/show":
        return _json_entry(200, {"capabilities": ["completion", "tools", "vision"]})
    if request.path == "/api/version":
        return _json_entry(200, {"version": "0.12.0"})
    if request.method != "GET":
        return None
    if request.path == "/api/tags":
        return _json_entry(200, {"models": []})
    if request.path.endswith("/models"):
        return _json_entry(200, {"object": "list", "data": []})
    return _json_entry(404, {"error": {"message": "not found"}})


def _json_entry(status: int, body: dict[str, Any]) -> Entry:
    text = json.dumps(body)
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
    return Entry(send=f"{head}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}")


def _with_tool_names(data: bytes, request: Received) -> bytes:
    """``data`` with ``@TOOL:server.tool@`` as the request named that tool, its length set right."""
    if b"@TOOL:" not in data:
        return data
    data = _TOOL.sub(lambda found: _name_of_tool(request, found[1].decode()).encode(), data)
    head, end, body = data.partition(b"\r\n\r\n")
    if not (data.startswith(b"HTTP/1.1") and end):
        return data
    head = _LENGTH.sub(lambda found: found[1] + str(len(body)).encode(), head)
    return head + end + body


def _name_of_tool(request: Received, wanted: str) -> str:
    """The function name under which the product offered ``server.tool``, however it maps names."""
    server, _, tool = wanted.partition(".")
    names: list[str] = [function.get("name", "") for function in request.tools]
    described = f"test tool {tool};"
    for name, function in zip(names, request.tools, strict=True):
        same_server = _letters(name).startswith(_letters(server))
        if same_server and str(function.get("description") or "").startswith(described):
            return name
    return next((name for name in names if _letters(name).endswith(_letters(tool))), wanted)


def _letters(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", name)
