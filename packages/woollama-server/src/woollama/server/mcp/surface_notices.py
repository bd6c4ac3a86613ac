"""Tells clients that a list has changed, each in the way of its revision."""

from collections.abc import Callable, Coroutine
from typing import Any
from weakref import WeakSet

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

from woollama.core.scopes import open_tasks
from woollama.server.mcp.surface_results import Context, is_modern
from woollama.server.mcp.surface_voice import connection_of
from woollama.server.mcp.tools import McpTools

__all__ = ["Notices"]

LOOK_S = 3.0
"""How often the patterns are looked at: their files say nothing when they change."""

_TELL_S = 5.0


class Notices:
    """Who listens, and what has changed since they were told.

    Attributes:
        listen: the handler of ``subscriptions/listen``.
    """

    def __init__(
        self,
        tools: McpTools,
        *,
        tools_state: Callable[[], object],
        prompts_state: Callable[[], object],
    ) -> None:
        """Nobody listens yet.

        Args:
            tools: says when something about the servers has changed.
            tools_state: the same object as long as the list of tools is the same.
            prompts_state: equal as long as the list of prompts is the same.
        """
        self._tools = tools
        self._tools_state = tools_state
        self._prompts_state = prompts_state
        self._bus = _Bus()
        self._connections: WeakSet[Connection] = WeakSet()
        self._tools_news = anyio.Event()
        self._resources_news = anyio.Event()
        self.listen = ListenHandler(self._bus)

    def greeted(self, ctx: Context) -> None:
        """A client of the older protocol has finished its handshake: it is told from now on."""
        if not is_modern(ctx.protocol_version):
            self._connections.add(connection_of(ctx))

    async def run(self) -> None:
        """Tells, until it is cancelled."""
        forget = (
            self._tools.on_change(lambda: self._tools_news.set()),
            self._tools.on_resources(lambda: self._resources_news.set()),
        )
        try:
            async with open_tasks() as tasks:
                tasks.start_soon(self._watch_tools)
                tasks.start_soon(self._watch_resources)
                tasks.start_soon(self._watch_prompts)
        finally:
            for each in forget:
                each()

    async def _watch_tools(self) -> None:
        before = self._tools_state()
        while True:
            await self._tools_news.wait()
            self._tools_news = anyio.Event()
            now = self._tools_state()
            if now is not before:
                before = now
                await self._tell(ToolsListChanged(), Connection.send_tool_list_changed)

    async def _watch_resources(self) -> None:
        while True:
            await self._resources_news.wait()
            self._resources_news = anyio.Event()
            await self._tell(ResourcesListChanged(), Connection.send_resource_list_changed)

    async def _watch_prompts(self) -> None:
        before = self._prompts()
        while True:
            await anyio.sleep(LOOK_S)
            if not (self._connections or self._bus.listeners):
                continue
            now = self._prompts()
            if now != before:
                before = now
                await self._tell(PromptsListChanged(), Connection.send_prompt_list_changed)

    def _prompts(self) -> object:
        try:
            return self._prompts_state()
        except Exception as error:  # noqa: BLE001 - backends are the code of others; a client that asks is told
            return type(error)

    async def _tell(
        self, event: ServerEvent, send: Callable[[Connection], Coroutine[Any, Any, None]]
    ) -> None:
        await self._bus.publish(event)
        # One that does not read what it is sent keeps the others waiting only so long.
        with anyio.move_on_after(_TELL_S):
            async with open_tasks() as tasks:
                for connection in list(self._connections):
                    tasks.start_soon(send, connection)


class _Bus(InMemorySubscriptionBus):
    """The SDK's, which also knows how many listen."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners = 0

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        forget = super().subscribe(listener)
        self.listeners += 1

        def unsubscribe() -> None:
            forget()
            self.listeners -= 1

        return unsubscribe
