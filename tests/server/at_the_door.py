"""A small application behind the door, served on real sockets in this process, and raw clients."""

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import msgspec
from anyio.abc import ByteStream
from starlette.types import ASGIApp, Receive, Scope, Send

from woollama.core.scopes import open_tasks
from woollama.server.address import Address
from woollama.server.binding import Binding
from woollama.server.door import behind_door
from woollama.server.runners import find_runner
from woollama.server.sections import ServerSettings
from woollama.server.settings import Settings

Kind = Literal["hypercorn", "uvicorn"]


class Reply:
    """What came back, read by hand: no client library stands between a test and the bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1]) if first else None
        pairs = [line.partition(":") for line in lines]
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}

    @property
    def answers(self) -> int:
        """How many responses there are in it."""
        return self.raw.count(b"HTTP/1.1 ")

    @property
    def error(self) -> dict[str, Any]:
        """OpenAI's error object."""
        assert "application/json" == self.headers["content-type"]
        return msgspec.json.decode(self.body)["error"]


class Door:
    """A served application: its sockets, and how to end it."""

    def __init__(self, binding: Binding, stop: anyio.Event, cancel: Callable[[], None]) -> None:
        self.cancel = cancel
        self.port = binding.address.port
        self.uds = binding.uds
        self.stop = stop
        self.ended = anyio.Event()

    async def connect(self, *, unix: bool = False) -> ByteStream:
        if unix:
            assert self.uds is not None
            return await anyio.connect_unix(self.uds)
        return await anyio.connect_tcp("127.0.0.1", self.port)

    def client(self) -> httpx2.AsyncClient:
        """A usual client, with a pool of connections."""
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.port}")

    async def raw(self, data: bytes, *, unix: bool = False) -> Reply:
        """Sends bytes and reads until the server closes the connection."""
        async with await self.connect(unix=unix) as stream:
            await stream.send(data)
            return Reply(await read_all(stream))

    async def ask(
        self,
        method: str = "GET",
        path: str = "/",
        *,
        unix: bool = False,
        body: bytes = b"",
        **headers: str,
    ) -> Reply:
        """One request on a connection of its own; ``_`` in names of headers is ``-``."""
        given = {"host": f"127.0.0.1:{self.port}", "connection": "close"}
        if body:
            given["content-length"] = str(len(body))
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in given.items() if v != "-")]
        return await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1") + body, unix=unix)


async def read_all(stream: ByteStream) -> bytes:
    """Everything until the end; a reset connection is an end, too."""
    data = b""
    with anyio.fail_after(10):
        try:
            while True:
                data += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return data


async def read_until(stream: ByteStream, mark: bytes) -> bytes:
    """Everything up to what holds ``mark``."""
    data = b""
    with anyio.fail_after(10):
        while mark not in data:
            data += await stream.receive()
    return data


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers ``METHOD path length`` when the whole body is there."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = f"{scope['method']} {scope['path']} {size}".encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def listen(host: str = "127.0.0.1") -> socket.socket:
    """A listening TCP socket on a free port."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind((host, 0))
    made.listen()
    made.setblocking(False)
    return made


@asynccontextmanager
async def served(
    app: ASGIApp = echo,
    *,
    kind: Kind = "hypercorn",
    token: str | None = None,
    pretend: str = "127.0.0.1",
    uds: Path | None = None,
    **server: Any,
) -> AsyncGenerator[Door]:
    """The application, served until the block is left.

    Args:
        app: what is behind the door.
        kind: which runner.
        token: as in the settings.
        pretend: the host of the address that the door believes to listen on.
        uds: where to listen, too.
        server: further keys of ``[server]``.
    """
    settings = Settings(config_dir=Path("/nowhere"), token=token, server=ServerSettings(**server))
    sockets = [listen()]
    if uds is not None:
        sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        sockets[1].bind(str(uds))
        sockets[1].listen()
        sockets[1].setblocking(False)
    port = sockets[0].getsockname()[1]
    binding = Binding(sockets=tuple(sockets), address=Address(host="127.0.0.1", port=port), uds=uds)
    guarded = behind_door(app, settings, Address(host=pretend, port=port))
    stop, ready = anyio.Event(), anyio.Event()
    scope = anyio.CancelScope()
    door = Door(binding, stop, scope.cancel)

    async def run() -> None:
        serve = find_runner(kind)
        with scope:
            await serve(guarded, binding, settings.server, on_ready=ready.set, stop=stop)
        door.ended.set()

    try:
        with anyio.fail_after(30):
            async with open_tasks() as tasks:
                tasks.start_soon(run)
                await ready.wait()
                yield door
                stop.set()
    finally:
        for each in sockets:
            each.close()
