"""``/mcp``: this woollama as an MCP server. The SDK is loaded by the first who asks (RU-60)."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from woollama.core.errors import RequestError
from woollama.core.scopes import open_tasks
from woollama.server.instance import INSTANCE_HEADER
from woollama.server.mcp.federation import header_trail
from woollama.server.mcp.sdk import load_sdk
from woollama.server.mcp.surface_sources import Sources
from woollama.server.offers import PATIENCE_S
from woollama.server.services import Services

if TYPE_CHECKING:
    from woollama.server.mcp.surface import Surface

__all__ = ["mcp_routes", "sources_of"]

_HEADER = INSTANCE_HEADER.encode()
Open = Callable[[Sources], AbstractAsyncContextManager["Surface"]]


def mcp_routes(services: Services, *, stop: anyio.Event | None = None) -> list[Route]:
    """The routes of this family: one endpoint, with and without a slash, and no redirect.

    Args:
        services: whose models, patterns and tools these are.
        stop: set when the daemon is told to stop; streams that only listen then end.
    """
    endpoint = _Endpoint(services, stop)
    return [Route("/mcp", endpoint), Route("/mcp/", endpoint)]


def sources_of(services: Services) -> Sources:
    """What the surface passes on of these services."""

    async def discover() -> None:
        await services.offers.list(patience_s=PATIENCE_S)

    return Sources(
        directory=services.directory,
        tools=services.tools,
        exports=services.exports,
        link=services.link,
        known=services.offers.names,
        discover=discover,
        instance_id=services.instance_id,
        body_limit_bytes=services.body_limit_bytes,
    )


class _Endpoint:
    """The ASGI application."""

    def __init__(self, services: Services, stop: anyio.Event | None) -> None:
        self._services = services
        self._stop = stop if stop is not None else anyio.Event()
        self._starting = anyio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        us = self._services.instance_id
        given: bytes = dict(scope["headers"]).get(_HEADER, b"")
        if us in header_trail(given.decode("latin-1")):
            raise RequestError(
                "This is the woollama that asks: an entry of mcp.json leads back to itself.",
                status=508,
                code="loop_detected",
                headers={INSTANCE_HEADER: us},
            )
        app = self._app if self._app is not None else await self._start()
        exchange = _Exchange(us, receive, send)
        if scope["method"] == "GET":
            await exchange.until(self._stop, app, scope)
        else:
            await app(scope, receive, exchange.send)

    async def _start(self) -> ASGIApp:
        async with self._starting:
            app = self._app
            if app is None:
                open_surface = await to_thread.run_sync(_load)
                app = self._app = await self._services.tasks.start(self._keep, open_surface)
            return app

    async def _keep(self, open_surface: Open, *, task_status: TaskStatus[ASGIApp]) -> None:
        """Holds everything open until the daemon ends."""
        async with open_surface(sources_of(self._services)) as surface, surface.open_http() as app:
            task_status.started(app)
            await self._stop.wait()
            surface.close()
            await anyio.sleep_forever()


class _Exchange:
    """One request: its answer says who we are, and an endless one ends when the daemon stops."""

    def __init__(self, instance_id: str, receive: Receive, send: Send) -> None:
        self._identity = (_HEADER, instance_id.encode())
        self._receive = receive
        self._send = send
        self._is_open = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), self._identity]}
        self._is_open = message.get("more_body", message["type"] == "http.response.start")
        await self._send(message)

    async def until(self, stop: anyio.Event, app: ASGIApp, scope: Scope) -> None:
        """Serves it as if the client left when ``stop`` is set; then the body ends properly."""

        async def receive() -> Message:
            return await _first(self._receive, stop)

        await app(scope, receive, self.send)
        if self._is_open and stop.is_set():
            await self._send({"type": "http.response.body", "body": b""})


async def _first(receive: Receive, stop: anyio.Event) -> Message:
    """The next message, or that the client has left when ``stop`` is set before it comes."""
    message: Message = {"type": "http.disconnect"}

    async def take() -> None:
        nonlocal message
        message = await receive()
        tasks.cancel_scope.cancel()

    async with open_tasks() as tasks:
        tasks.start_soon(take)
        await stop.wait()
        tasks.cancel_scope.cancel()
    return message


def _load() -> Open:
    load_sdk()
    from woollama.server.mcp.surface import open_surface

    return open_surface
