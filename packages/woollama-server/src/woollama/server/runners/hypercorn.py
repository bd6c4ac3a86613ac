"""Hypercorn's protocols on sockets, timers and a drain of our own.

Of Hypercorn this takes what it is good at, HTTP/1.1 and HTTP/2 to ASGI, and not its server round
them (``hypercorn.asyncio.serve``): that one waits for the end of every open stream on Python 3.12
and later, whatever its limit; has one time limit for heads and idle connections; starts and stops a
task for each request to keep it; and hangs on a long body that the application does not read.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Literal, cast

import anyio
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.typing import AppWrapper, ConnectionState
from starlette.types import ASGIApp

from woollama.core.transport.alarm import Alarm
from woollama.server.auth import UNIX_STATE
from woollama.server.binding import BACKLOG, Binding
from woollama.server.runners.heads import HeadJoiner
from woollama.server.runners.hypercorn_protocol import (
    Head,
    HypercornConfig,
    HypercornProtocol,
    HypercornTasks,
)
from woollama.server.runners.lingering import CLEAN_UP_S, LINGER_S
from woollama.server.sections import ServerSettings
from woollama.server.tracebacks import describe_exception

__all__ = ["serve"]

_log = logging.getLogger(__name__)

_READS_LIMIT = 4
"""How many reads wait for the protocol before no more are made."""


async def serve(
    app: ASGIApp,
    binding: Binding,
    server: ServerSettings,
    *,
    on_ready: Callable[[], None],
    stop: anyio.Event,
) -> None:
    """Serves until ``stop``, then drains; see ``Serve``."""
    host = _Host(app, server)
    listeners = [
        await host.loop.create_server(
            partial(_Connection, host, "unix" if each is not binding.sockets[0] else "tcp"),
            sock=each,
            backlog=BACKLOG,
        )
        for each in binding.sockets
    ]
    try:
        on_ready()
        await stop.wait()
        for listener in listeners:
            listener.close()
        await host.drain(server.drain_timeout_s)
    finally:
        for listener in listeners:
            listener.close()
        await host.abort()


class _Host:
    """What the connections share."""

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self.app = app
        self.server = server
        self.loop = asyncio.get_running_loop()
        self.config = HypercornConfig()
        self.context = WorkerContext(max_requests=None)
        self.connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._empty = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that ends before ``serve`` does."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def left(self, connection: "_Connection") -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    async def drain(self, limit_s: float) -> None:
        """Closes what is idle at once and the rest as it ends, for so long."""
        await self.context.terminated.set()
        for connection in list(self.connections):
            connection.close_if_idle()
        if self.connections:
            self._empty.clear()
            with anyio.move_on_after(limit_s):
                await self._empty.wait()

    async def abort(self) -> None:
        """Cuts what is left, and waits for what cleans up behind it."""
        for connection in list(self.connections):
            connection.abort()
        with anyio.move_on_after(CLEAN_UP_S, shield=True):
            await asyncio.gather(*self._tasks, return_exceptions=True)


class _Connection(asyncio.Protocol):
    """One client's connection: bytes to Hypercorn's protocol and back, time limits, its end."""

    def __init__(self, host: _Host, kind: Literal["tcp", "unix"]) -> None:
        self._host = host
        self._kind = kind
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._out: HeadJoiner = cast("HeadJoiner", None)
        self._protocol: HypercornProtocol | None = None
        self._task: asyncio.Task[None] = cast("asyncio.Task[None]", None)
        self._incoming: list[bytes] = []
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        # The head of a request, an idle connection and a lingering one have a limit, in turn.
        self._alarm = Alarm(host.loop, self._expire)
        self._paused = False
        self._head_begun = True
        self._busy = False
        self._over = False
        self._lingering = False

    # From the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client is there; it has so long to send the head of its first request."""
        self._transport = cast("asyncio.Transport", transport)
        self._out = HeadJoiner(self._transport, self._host.loop)
        self._host.connections.add(self)
        self._alarm.set_in(self._host.server.header_timeout_s)
        self._task = self._host.start(self._run())

    def data_received(self, data: bytes) -> None:
        """Bytes for the protocol; once the end is decided they are thrown away."""
        if self._over:
            return
        self._incoming.append(data)
        self._arrived.set()
        if len(self._incoming) > _READS_LIMIT and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        if not self._head_begun:
            self._head_begun = True
            self._alarm.set_in(self._host.server.header_timeout_s)

    def eof_received(self) -> bool:
        """The client sends no more: it has left, as HTTP clients do. We close when we are done."""
        self._end()
        return not self._lingering

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._end()
        self._writable.set()
        self._alarm.close()
        self._host.left(self)

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._writable.set()

    # The host's

    def close_if_idle(self) -> None:
        """Closes it when no request is under way."""
        if not self._busy:
            self._transport.close()

    def abort(self) -> None:
        """Cuts it, and what is done for it."""
        self._transport.abort()
        self._task.cancel()

    # The task of the connection

    async def _run(self) -> None:
        unix = self._kind == "unix"
        state = {UNIX_STATE: True} if unix else {}
        try:
            async with asyncio.TaskGroup() as group:
                protocol = self._protocol = HypercornProtocol(
                    cast("AppWrapper", self._host.app),
                    self._host.config,
                    self._host.context,
                    HypercornTasks(group),
                    ConnectionState(state),
                    False,
                    None if unix else self._name("peername"),
                    None if unix else self._name("sockname"),
                    self._send,
                )
                await protocol.initiate()
                while not self._over:
                    await self._arrived.wait()
                    data = self._take()
                    if data:
                        await protocol.handle(RawData(data))
                await protocol.handle(Closed())
        except Exception as error:  # noqa: BLE001 - one connection's fault is not the others'
            _log.error("a connection failed unexpectedly:\n%s", describe_exception(error))
            self._transport.abort()
        finally:
            self._close()

    def _name(self, which: str) -> tuple[str, int] | None:
        found: tuple[Any, ...] | None = self._transport.get_extra_info(which)
        return (str(found[0]), int(found[1])) if found else None

    def _take(self) -> bytes:
        data = b"".join(self._incoming)
        self._incoming.clear()
        if not self._over:
            self._arrived.clear()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _send(self, event: Event) -> None:
        if isinstance(event, RawData):
            if self._transport.is_closing():
                return
            if isinstance(event, Head):
                self._out.hold(event.data)
            else:
                self._out.write(event.data)
                if not self._writable.is_set():
                    await self._writable.wait()
        elif isinstance(event, Updated):
            self._busy = not event.idle
            if self._busy:
                self._alarm.set(None)
            elif self._host.context.terminated.is_set():
                self._end()
            else:
                # HTTP/2 has no heads of its own to wait for: its connection carries other frames.
                self._head_begun = self._protocol is None or not self._protocol.is_h1
                self._alarm.set_in(self._host.server.keep_alive_timeout_s)
        elif isinstance(event, Closed):
            self._end()

    def _end(self) -> None:
        self._over = True
        self._arrived.set()

    def _close(self) -> None:
        if self._transport.is_closing():
            return
        self._alarm.set(None)
        self._out.flush()
        unread = self._protocol is not None and self._protocol.has_unread
        if unread and self._transport.can_write_eof():
            self._lingering = True
            self._incoming.clear()
            if self._paused:
                self._transport.resume_reading()
            self._transport.write_eof()
            self._alarm.set_in(LINGER_S)
        else:
            self._transport.close()

    def _expire(self) -> None:
        self._transport.close()
