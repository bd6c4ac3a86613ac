"""Uvicorn's protocols in this process, with our limits and our drain.

Its command line, its signal handlers, its log and its trust in proxy headers stay out.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from woollama.core.errors import RequestError
from woollama.core.transport.alarm import Alarm
from woollama.server.auth import UNIX_STATE
from woollama.server.binding import BACKLOG, Binding
from woollama.server.leaving import LEAVING, Leaving
from woollama.server.runners.lingering import CLEAN_UP_S, LingeringTransport
from woollama.server.sections import ServerSettings

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Base
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
else:
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as Base

__all__ = ["serve"]

HEAD_LIMIT_BYTES = 64 * 1024
_encoder = msgspec.json.Encoder()


async def serve(
    app: ASGIApp,
    binding: Binding,
    server: ServerSettings,
    *,
    on_ready: Callable[[], None],
    stop: anyio.Event,
) -> None:
    """Serves until ``stop``, then drains; see ``Serve``."""
    ended = asyncio.Event()
    config = uvicorn.Config(
        cast("Any", app),
        http=cast("Any", _protocol(server.header_timeout_s, ended)),
        ws="none",
        lifespan="off",
        interface="asgi3",
        # Said by us, in one line a request.
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        # Whoever asks over TCP is who the connection says, not who a header says.
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=cast("int", server.keep_alive_timeout_s),
    )
    host = _Server(config, server, on_ready=on_ready, stop=stop, ended=ended)
    try:
        await host.serve(list(binding.sockets))
    finally:
        await host.abort()


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        server: ServerSettings,
        *,
        on_ready: Callable[[], None],
        stop: anyio.Event,
        ended: asyncio.Event,
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._stop = stop
        self._ended = ended
        self._drain_timeout_s = server.drain_timeout_s

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self._on_ready()
        while not self._stop.is_set():
            with anyio.move_on_after(1.0):
                await self._stop.wait()
            # It writes the Date header anew.
            await self.on_tick(0)

    async def shutdown(self, sockets: Any = None) -> None:
        for listener in self.servers:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with anyio.move_on_after(self._drain_timeout_s):
            while self.server_state.connections:
                self._ended.clear()
                await self._ended.wait()
            if self.server_state.tasks:
                await asyncio.wait(self.server_state.tasks)

    async def abort(self) -> None:
        """Cuts what is left, and waits for what cleans up behind it."""
        for listener in getattr(self, "servers", ()):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        with anyio.move_on_after(CLEAN_UP_S, shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)


def _protocol(header_timeout_s: float, ended: asyncio.Event) -> type[asyncio.Protocol]:
    """Uvicorn's protocol with limits for the head of a request, which it has none for.

    Args:
        header_timeout_s: how long it may take to come.
        ended: set whenever a connection has ended.
    """

    class Limited(_Limited):
        _header_timeout_s = header_timeout_s
        _ended = ended

    return Limited


class _Limited(Base):
    _header_timeout_s: float
    _ended: asyncio.Event

    def connection_made(self, transport: Any) -> None:
        lingering = LingeringTransport(transport, self.loop, is_unread=self._is_unread)
        self._lingering = lingering
        super().connection_made(cast("asyncio.Transport", cast("object", lingering)))
        self._served: ASGIApp = self.app
        self.app = cast("Any", self._begin)
        self._leaving: Leaving | None = None
        self._lost = False
        self._refused = False
        self._head_bytes = 0
        # The head of a request and an idle connection have a limit, in turn.
        self._alarm = Alarm(self.loop, lingering.close)
        self._alarm.set_in(self._header_timeout_s)
        self.loop = cast("asyncio.AbstractEventLoop", cast("object", _Loop(self.loop, self._alarm)))
        if transport.get_extra_info("socket").family == socket.AF_UNIX:
            self.app_state = {UNIX_STATE: True}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._alarm.close()
        self._lost = True
        if self._leaving is not None:
            self._leaving.tell()
        self._ended.set()

    def _begin(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """The application, as a request's task calls it: one at a time, pipelined ones in turn."""
        leaving = self._leaving = Leaving()
        if self._lost:
            leaving.tell()
        scope["extensions"] = {LEAVING: leaving}
        self._lingering.expect_head()
        return self._served(scope, receive, send)

    def on_response_complete(self) -> None:
        self._leaving = None
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        cycle = self._cycle
        if cycle is not None and not cycle.response_complete:
            self._alarm.set(None)
            self._head_bytes = 0
            return
        # The head of a request is not complete, or the rest of an answered one is thrown away.
        if not self._alarm.is_set:
            self._alarm.set_in(self._header_timeout_s)
        if cycle is None or not cycle.more_body:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._refuse(431, "The head of the request is too long.")

    def on_headers_complete(self) -> None:
        """Httptools' parser calls it; it shows a path only, and the door wants the whole target."""
        parser: Any = super()
        parser.on_headers_complete()
        target: bytes = cast("Any", self).url
        if target[:1] != b"/":
            target = target.partition(b"?")[0]
            self.scope["raw_path"] = target
            self.scope["path"] = target.decode("ascii")

    def _is_unread(self) -> bool:
        return self._refused or (self._cycle is not None and self._cycle.more_body)

    @property
    def _cycle(self) -> "RequestResponseCycle | None":
        return cast("RequestResponseCycle | None", self.cycle)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "This is no HTTP request that can be understood.")

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        self._refused = True
        if self._cycle is None or self._cycle.response_complete:
            body = _encoder.encode(RequestError(message, status=status).to_openai())
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()


class _Loop:
    """The event loop as uvicorn's protocol sees it: its one limit, of an idle connection, is ours.

    It is its own timer, too, of which the protocol knows ``cancel`` only.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, alarm: Alarm) -> None:
        self._loop = loop
        self._alarm = alarm
        self.create_task = loop.create_task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay_s: float, _close: Callable[[], object]) -> "_Loop":
        self._alarm.set_in(delay_s)
        return self

    def cancel(self) -> None:
        self._alarm.set(None)
