"""An MCP server over Streamable HTTP, of both eras, from the SDK, that does what a test wants.

Run as a script it serves until it is killed: `python http_server.py [PORT]` prints its port.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


class Site:
    """The server and what can be done to it.

    Attributes:
        tools: its tools; `grow` adds one and says so.
        headers: of the requests so far, newest last.
        token: what it demands as a bearer token.
        refuse: answers everything with this status.
        stamp: the instance id in the headers of its answers.
        listen: holds the subscriptions of the newer era.
        hang_up: how many tool calls are cut before they are answered.
    """

    def __init__(self, *, announces: bool = True) -> None:
        self.tools: list[dict[str, Any]] = [
            {"name": name, "inputSchema": OBJECT} for name in ("echo", "barrier", "hang", "grow")
        ]
        self.tools.append({"name": "steps", "inputSchema": OBJECT})
        self.tools.append({"name": "pid", "inputSchema": OBJECT})
        self.tools.append(
            {"name": "look", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}}
        )
        self.headers: list[dict[str, str]] = []
        self.methods: list[str] = []
        self.token: str | None = None
        self.refuse: int | None = None
        self.stamp: str | None = None
        self.hang_up = 0
        self.calls = 0
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._waiting = 0
        self._together = asyncio.Event()
        self._bus = InMemorySubscriptionBus()
        self._sessions: list[Any] = []
        self.listen = ListenHandler(self._bus) if announces else None
        self._server: Server[Any] = Server(
            "site",
            version="1",
            on_subscriptions_listen=self.listen,
            on_list_tools=_unused,
            get_tool_input_schema=lambda name: next(
                tool["inputSchema"] for tool in self.tools if tool["name"] == name
            ),
        )
        self._server.middleware.append(self._answer)
        self._manager = StreamableHTTPSessionManager(self._server)

    async def _answer(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Lists and calls, unsieved."""
        context = ctx
        self.methods.append(context.method)
        if context.method == "notifications/initialized":
            self._sessions.append(context.session)
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        if context.method == "tools/list":
            envelope = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            return {"tools": self.tools, **(envelope if modern else {})}
        if context.method == "tools/call":
            result = await self._call(context, dict(context.params))
            return {**result, **({"resultType": "complete"} if modern else {})}
        return await call_next(context)

    async def _call(self, context: Any, params: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        if self.hang_up:
            self.hang_up -= 1
            context.request.scope["state"]["cut"] = True
        match params["name"]:
            case "barrier":
                self._waiting += 1
                if self._waiting == 4:
                    self._together.set()
                await self._together.wait()
            case "hang":
                self.hanging.set()
                try:
                    await anyio.sleep_forever()
                finally:
                    self.cancelled.set()
            case "grow":
                self.tools.append({"name": "late", "inputSchema": OBJECT})
                await self._bus.publish(ToolsListChanged())
                for session in self._sessions:
                    await session.send_tool_list_changed()
            case "steps":
                await context.session.report_progress(1, 2, "half")
                await context.session.report_progress(2, 2, "whole")
            case _:
                pass
        seen = {"arguments": params.get("arguments"), "pid": os.getpid(), "novel": None}
        return {"content": [], "structuredContent": seen, "unknown": None}

    @property
    def app(self) -> ASGIApp:
        @contextlib.asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
            async with self._manager.run():
                yield

        inner = Starlette(
            routes=[Route("/mcp", endpoint=StreamableHTTPASGIApp(self._manager))],
            lifespan=lifespan,
        )

        async def door(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            scope["state"] = {}
            self.methods.append(scope["method"])
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers)
            status = self.refuse
            if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
                status = 401
            if status is not None:
                await send({"type": "http.response.start", "status": status, "headers": []})
                await send({"type": "http.response.body", "body": b"refused here"})
                return
            await inner(scope, receive, self._stamped(scope, send))

        return door

    def _stamped(self, scope: Scope, send: Send) -> Send:
        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start" and self.stamp is not None:
                stamp = (b"x-woollama-instance", self.stamp.encode())
                message = {**message, "headers": [*message["headers"], stamp]}
            if message["type"] == "http.response.body" and scope["state"].get("cut"):
                raise ConnectionAbortedError("as the test wants it")
            await send(message)

        return stamped


async def _unused(_context: Any, _params: Any) -> Any:
    """Its presence announces tools; the middleware answers."""
    raise AssertionError("the middleware answers")


@contextlib.asynccontextmanager
async def served(site: Site) -> AsyncGenerator[str]:
    """Serves on a free loopback port; gives the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            site.app, log_config=None, timeout_graceful_shutdown=1, lifespan="on", ws="none"
        )
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            with anyio.CancelScope(shield=True):
                await task


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listener = socket.create_server(("127.0.0.1", port))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()

    async def run() -> None:
        config = uvicorn.Config(Site().app, log_config=None, lifespan="on", ws="none")
        await uvicorn.Server(config).serve(sockets=[listener])

    asyncio.run(run())


if __name__ == "__main__":
    main()
