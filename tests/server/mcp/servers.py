"""What the tests of MCP servers share: scripted ones, all of them opened, a wait for a change."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from woollama.core.tools import ToolResult
from woollama.server.mcp.config import McpConfig
from woollama.server.mcp.entries import HttpServer, StdioServer
from woollama.server.mcp.health import ServerHealth
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.tools import McpTools, open_mcp_tools

SCRIPT = Path(__file__).with_name("scripted_server.py")

LIMITS = McpLimits(connect_timeout_s=30, patience_s=30, backoff_s=0.05, stop_timeout_s=2)

IDS = "me-0000"


def scripted(*flags: str, name: str = "t", **more: Any) -> StdioServer:
    return StdioServer(name=name, command=sys.executable, args=("-S", str(SCRIPT), *flags), **more)


class Watched:
    """The tools of some servers, with a way to wait for what comes about."""

    def __init__(self, tools: McpTools) -> None:
        self.tools = tools
        self.seen: list[str] = []
        self._news = anyio.Event()
        tools.on_change(self._hear)

    def _hear(self) -> None:
        self.seen.append(self.health().health)
        self._news.set()
        self._news = anyio.Event()

    def health(self, name: str | None = None) -> ServerHealth:
        servers = self.tools.servers()
        return next(server for server in servers if name is None or server.name == name)

    async def until(self, met: Callable[[], bool]) -> None:
        with anyio.fail_after(30):
            while not met():
                await self._news.wait()

    async def connected(self, name: str = "t") -> None:
        await self.until(lambda: self.tools.is_connected(name))

    async def call(self, tool: str, **args: Any) -> ToolResult:
        with anyio.fail_after(30):
            return await self.tools.dispatch(f"t.{tool}", args)

    async def value(self, tool: str, **args: Any) -> Any:
        """What a tool said, read as JSON."""
        result = await self.call(tool, **args)
        assert not result.is_error, result
        return json.loads(text_of(result))

    def names(self) -> list[str]:
        return [tool.source_name for tool in self.tools.offered()]


@asynccontextmanager
async def opened(
    *servers: StdioServer | HttpServer,
    environ: Mapping[str, str] | None = None,
    wait: bool = True,
    **limits: Any,
) -> AsyncGenerator[Watched]:
    config = McpConfig(servers=servers)
    async with open_mcp_tools(
        config,
        instance_id=IDS,
        environ=os.environ if environ is None else environ,
        limits=msgspec.structs.replace(LIMITS, **limits),
    ) as tools:
        watched = Watched(tools)
        if wait:
            await watched.connected(servers[0].name)
        yield watched


def text_of(result: ToolResult) -> str:
    (block,) = result.blocks
    return block["text"]


async def gone(pid: int) -> None:
    """Waits until there is no such process, by a handle of it: never for a fixed time."""
    with anyio.fail_after(10):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)
