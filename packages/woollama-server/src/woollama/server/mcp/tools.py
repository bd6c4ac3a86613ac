"""The tools of all MCP servers as one ``ToolProvider``, and what is told of the servers."""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from operator import is_
from typing import Any, cast

import anyio

from woollama.core.canonical.value import NOTHING
from woollama.core.errors import UnknownTool
from woollama.core.scopes import open_tasks
from woollama.core.tools import ToolResult, ToolSpec, wire_names
from woollama.server.mcp.config import McpConfig
from woollama.server.mcp.faults import ServerFault
from woollama.server.mcp.federation import LINEAGE_VARIABLE, child_lineage, is_descendant
from woollama.server.mcp.health import OnProgress, ServerHealth, health_to_json
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.offered import OfferedTool, tool_to_json
from woollama.server.mcp.peer import Peer
from woollama.server.mcp.questions import NOBODY, Direct
from woollama.server.mcp.roster import Roster

__all__ = ["McpTools", "open_mcp_tools"]

_LOOP = (
    "this woollama was started as an MCP server by a woollama with the same configuration: a loop"
)
_log = logging.getLogger(__name__)

_IDLE = "it starts when a recipe wants one of its tools"

_LEAVING_S = 3.0
"""Beside the time that a child has to end: to say goodbye to servers over HTTP."""


class McpTools:
    """The tools of all servers of ``mcp.json``; a ``ToolProvider``.

    Tools of a server that is away for the moment are still offered: a call waits for it a little.
    """

    def __init__(
        self,
        peers: Iterable[Peer] = (),
        *,
        skipped: Mapping[str, str] = NOTHING,
        patience_s: float = 0.0,
        start: Callable[[Peer], None] | None = None,
    ) -> None:
        """Made by ``open_mcp_tools``.

        Args:
            peers: the servers, in the order of the file.
            skipped: entries that are not tried, and why.
            patience_s: the longest that ``prepare`` waits.
            start: starts a server that is run on demand.
        """
        self._peers = {peer.name: peer for peer in peers}
        self._skipped = skipped
        self._patience_s = patience_s
        self._start = start
        self._idle = {peer.name for peer in self._peers.values() if peer.server.on_demand}
        self._listeners: list[Callable[[], None]] = []
        self._resource_listeners: list[Callable[[], None]] = []
        self._rosters: list[Roster] = []
        self._offered: dict[str, OfferedTool] = {}
        self._by_wire: dict[str, OfferedTool] = {}

    def tools_for(self, allow: Iterable[str], /) -> list[ToolSpec]:
        """See ``ToolProvider``; by ``server.tool`` or by the name that models use."""
        wanted = set(allow)
        return [
            tool.spec
            for tool in self.offered()
            if tool.source_name in wanted or tool.wire_name in wanted
        ]

    async def prepare(self, allow: Iterable[str]) -> None:
        """Waits a moment for servers of these tools that are being connected for the first time.

        Those that are run on demand are started. To be called before ``tools_for``, which cannot
        wait: else the first request after a start would find no tools.
        """
        wanted = tuple(allow)

        def concerns(server: str) -> bool:
            return any(name.startswith(f"{server}.") for name in wanted)

        for server in [name for name in self._idle if concerns(name)]:
            self._idle.discard(server)
            if self._start is not None:
                self._start(self._peers[server])
        await self.settle(concerns)

    async def settle(self, concerns: Callable[[str], bool]) -> None:
        """Waits a moment for servers that are being connected for the first time.

        Args:
            concerns: says by the name of a server whether to wait for it.
        """
        coming = [peer for peer in self.started() if peer.settling and concerns(peer.name)]
        with anyio.move_on_after(self._patience_s):
            for peer in coming:
                await peer.settled()

    async def dispatch(self, name: str, args: dict[str, Any], /) -> ToolResult:
        """See ``ToolProvider``; what goes wrong on the way is a result with ``is_error``.

        Raises:
            UnknownTool: nobody has a tool of this name now.
        """
        try:
            return _result(await self.call(name, args))
        except ServerFault as fault:
            return ToolResult(fault.message, is_error=True)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        meta: Mapping[str, Any] | None = None,
        trail: Iterable[str] = (),
        on_progress: OnProgress | None = None,
        direct: Direct = NOBODY,
    ) -> dict[str, Any]:
        """Runs a tool; the server's result as it sent it.

        Args:
            name: ``server.tool``, or the name that models use.
            arguments: passed as they are.
            meta: the caller's ``_meta``.
            trail: the ids of the woollamas that the call came through.
            on_progress: called for each progress notice.
            direct: what goes with a client's own call.

        Raises:
            UnknownTool: nobody has a tool of this name now.
            ServerFault: there is no result.
        """
        tool = self._find(name)
        if tool is None:
            await self.prepare([name])
            tool = self._find(name)
        if tool is None:
            raise UnknownTool(self.explain(name))
        return await self._peers[tool.server].call(
            tool.tool,
            arguments,
            meta=meta,
            trail=trail,
            on_progress=on_progress,
            direct=direct,
        )

    def _find(self, name: str) -> OfferedTool | None:
        self._refresh()
        return self._offered.get(name) or self._by_wire.get(name)

    def offered(self) -> list[OfferedTool]:
        """All tools, in the order of the file and of each server."""
        self._refresh()
        return list(self._offered.values())

    def is_connected(self, server: str) -> bool:
        """Whether this server is there now."""
        peer = self._peers.get(server)
        return peer is not None and peer.connected

    def _refresh(self) -> None:
        """Names all tools anew when one server's have changed: a name depends on the others."""
        rosters = [peer.roster for peer in self._peers.values()]
        if len(rosters) == len(self._rosters) and all(map(is_, rosters, self._rosters)):
            return
        self._rosters = rosters
        found: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
        for peer in self._peers.values():
            for name, raw in peer.roster.tools.items():
                found.setdefault(f"{peer.name}.{name}", (peer.name, name, raw))
        names = wire_names(found)
        self._offered = {
            source: OfferedTool(
                source_name=source, wire_name=names[source], server=server, tool=name, raw=raw
            )
            for source, (server, name, raw) in found.items()
        }
        self._by_wire = {tool.wire_name: tool for tool in self._offered.values()}

    def servers(self) -> list[ServerHealth]:
        """All servers, those of wrong entries last."""
        skipped = [
            ServerHealth(name=name, transport=None, health="failed", reason=reason)
            for name, reason in self._skipped.items()
        ]
        return [*(self._health(peer) for peer in self._peers.values()), *skipped]

    def _health(self, peer: Peer) -> ServerHealth:
        if peer.name in self._idle:
            return ServerHealth(name=peer.name, transport="stdio", health="idle", reason=_IDLE)
        return peer.health

    def started(self) -> list[Peer]:
        """Those that are not idle, in the order of the file."""
        return [peer for name, peer in self._peers.items() if name not in self._idle]

    def explain(self, name: str) -> str:
        """Why there is no tool of this name, for a person."""
        for server in sorted(self.servers(), key=lambda server: -len(server.name)):
            if not name.startswith(f"{server.name}."):
                continue
            tool = name.removeprefix(f"{server.name}.")
            why = server.left_out.get(tool)
            if why is not None:
                return f"The tool {name!r} is not offered: {why}."
            if server.health != "connected" and not server.tools:
                return f"MCP server {server.name!r} is {server.health}: {server.reason}."
            return f"MCP server {server.name!r} has no tool {tool!r}."
        return f"There is no tool {name!r}: no server in mcp.json has such a name."

    def listing(self) -> dict[str, Any]:
        """The body of ``GET /w1/tools``."""
        offered = self.offered()
        return {
            "object": "list",
            "data": [tool_to_json(tool) for tool in offered],
            "tools": [tool.source_name for tool in offered],
            "servers": [health_to_json(server) for server in self.servers()],
        }

    def peers(self) -> list[Peer]:
        """The servers themselves, in the order of the file."""
        return list(self._peers.values())

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls ``listener`` when tools or servers come or go, until what it returns is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def changed(self) -> None:
        """Tells the listeners."""
        for listener in tuple(self._listeners):
            listener()

    def on_resources(self, listener: Callable[[], None]) -> Callable[[], None]:
        """As ``on_change``, for resources that may have come or gone."""
        self._resource_listeners.append(listener)
        return lambda: self._resource_listeners.remove(listener)

    def resources_changed(self) -> None:
        """Tells those listeners."""
        for listener in tuple(self._resource_listeners):
            listener()


@asynccontextmanager
async def open_mcp_tools(
    config: McpConfig,
    *,
    instance_id: str,
    environ: Mapping[str, str] | None = None,
    limits: McpLimits = McpLimits(),  # noqa: B008 - an immutable value
) -> AsyncGenerator[McpTools]:
    """The tools of the servers in ``config``, which are all tried at once and not waited for.

    Those that are run on demand wait for the first recipe that names one of their tools.
    Leaving ends every child in order, within a few seconds.

    Args:
        config: from ``load_mcp``.
        instance_id: who we are.
        environ: the environment, of which children get little; None is the process's own.
        limits: from the settings.
    """
    environ = os.environ if environ is None else environ
    for name, reason in config.skipped.items():
        _log.warning("mcp.json: server %r is left out: %s", name, reason)
    for warning in config.warnings:
        _log.warning("%s", warning)
    if config.servers and is_descendant(environ, instance_id):
        _log.error("no MCP server is used: %s", _LOOP)
        skipped = dict.fromkeys((server.name for server in config.servers), _LOOP)
        yield McpTools((), skipped={**skipped, **config.skipped})
        return
    lineage = {LINEAGE_VARIABLE: child_lineage(environ, instance_id, config.path)}
    peers = [
        Peer(
            server,
            instance_id=instance_id,
            environ=environ,
            lineage=lineage,
            limits=limits,
            on_change=lambda: tools.changed(),
            on_resources=lambda: tools.resources_changed(),
        )
        for server in config.servers
    ]
    async with open_tasks() as tasks:

        def start(peer: Peer) -> None:
            tasks.start_soon(peer.run, name=f"MCP server {peer.name}")

        tools = McpTools(peers, skipped=config.skipped, patience_s=limits.patience_s, start=start)
        for peer in tools.started():
            start(peer)
        try:
            yield tools
        finally:
            await _stop(tools.started(), limits.stop_timeout_s + _LEAVING_S)
            tasks.cancel_scope.cancel()


async def _stop(peers: list[Peer], seconds: float) -> None:
    for peer in peers:
        peer.stop()
    with anyio.move_on_after(seconds, shield=True):
        for peer in peers:
            await peer.done.wait()


def _result(raw: Mapping[str, Any]) -> ToolResult:
    if raw.get("resultType") == "input_required":
        return ToolResult(
            "The tool asks for something from a person before it goes on, and nobody is there to "
            "answer.",
            is_error=True,
        )
    content = raw.get("content")
    return ToolResult(
        tuple(cast("list[Any]", content)) if isinstance(content, list) else (),
        structured=raw.get("structuredContent"),
        is_error=raw.get("isError") is True,
        meta=_mapping(raw.get("_meta")) or NOTHING,
    )


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None
