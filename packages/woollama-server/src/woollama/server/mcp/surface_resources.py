"""The resources of all servers, each under a URI that says whose it is.

``woollama://<server>/<the server's own URI>``: taken apart at the first slash behind the server's
name, never parsed further, so that a template works the same way. Results of tools keep the URIs
that the servers wrote; one that exactly one server lists can be read as it is.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from woollama.core.scopes import open_tasks
from woollama.server.mcp.faults import Refused, ServerFault
from woollama.server.mcp.federation import add_trail, trail_of
from woollama.server.mcp.peer import Peer
from woollama.server.mcp.surface_results import fits, mapping_in
from woollama.server.mcp.surface_sources import Sources

__all__ = ["Resources"]

_PATIENCE_S = 10.0
"""How long a list waits for all servers; one that has not answered by then is left out."""

_NOT_FOUND = -32002
"""Resource not found, up to 2025-11-25; later revisions say that the parameters are invalid."""

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_Item = Mapping[str, Any]
_log = logging.getLogger(__name__)


class Resources:
    """What the servers have to read."""

    def __init__(self, sources: Sources) -> None:
        """Asks the servers with each question; they keep their lists until these change."""
        self._tools = sources.tools
        self._exports = sources.exports
        self._instance_id = sources.instance_id

    async def listed(self, version: str, trail: tuple[str, ...]) -> list[dict[str, Any]]:
        """The items of ``resources/list``, by server in the order of the file.

        Args:
            version: the client's revision; what it cannot read is left out.
            trail: the ids of the woollamas that ask.
        """
        found = await self._all(trail)
        items = [
            self._passed_on(peer, item, "uri")
            for peer, (resources, _) in found
            for item in resources
        ]
        return _readable("resources/list", "resources", items, version)

    async def templates(self, version: str, trail: tuple[str, ...]) -> list[dict[str, Any]]:
        """The items of ``resources/templates/list``; see ``listed``."""
        found = await self._all(trail)
        items = [
            self._passed_on(peer, item, "uriTemplate")
            for peer, (_, templates) in found
            for item in templates
        ]
        return _readable("resources/templates/list", "resourceTemplates", items, version)

    async def read(
        self, uri: str, *, meta: Mapping[str, Any], trail: tuple[str, ...]
    ) -> dict[str, Any]:
        """The result of ``resources/read``, as the server gave it but for the URIs in it.

        Raises:
            MCPError: nobody has it, or the server did not give it.
        """
        peer, own, prefix = await self._find(uri, trail)
        try:
            raw = await peer.read_resource(own, meta=meta, trail=trail)
        except Refused as fault:
            raise MCPError(fault.rpc_code, fault.message, fault.data) from fault
        except ServerFault as fault:
            raise MCPError(_NOT_FOUND, f"{uri!r} could not be read: {fault.message}.") from fault
        contents = raw.get("contents")
        items = cast("list[Any]", contents) if isinstance(contents, list) else []
        return {**raw, "contents": [_renamed(item, "uri", prefix) for item in items]}

    async def _find(self, uri: str, trail: tuple[str, ...]) -> tuple[Peer, str, str]:
        """Whose it is, the server's own URI of it, and what stands before that."""
        for peer in self._exported():
            prefix = _prefix(peer.name)
            if uri.startswith(prefix):
                return peer, uri.removeprefix(prefix), prefix
        owners = [
            peer
            for peer, (resources, templates) in await self._all(trail)
            if any(item.get("uri") == uri for item in resources)
            or any(_matches(item.get("uriTemplate"), uri) for item in templates)
        ]
        if len(owners) == 1:
            return owners[0], uri, ""
        reason = "several servers have it" if owners else "no server has it"
        raise MCPError(INVALID_PARAMS, f"Unknown resource: {uri!r}; {reason}.", {"uri": uri})

    def _exported(self) -> list[Peer]:
        return [peer for peer in self._tools.peers() if self._exports.has(peer.name)]

    async def _all(
        self, trail: tuple[str, ...]
    ) -> list[tuple[Peer, tuple[tuple[_Item, ...], tuple[_Item, ...]]]]:
        """Of each server that has answered in time its resources and templates."""
        found: dict[str, tuple[tuple[_Item, ...], tuple[_Item, ...]]] = {}

        async def ask(peer: Peer) -> None:
            try:
                found[peer.name] = await peer.resources(trail=trail)
            except ServerFault as fault:
                _log.info("MCP server %r gave no list of resources: %s", peer.name, fault.message)

        exported = self._exported()
        with anyio.move_on_after(_PATIENCE_S):
            async with open_tasks() as tasks:
                for peer in exported:
                    tasks.start_soon(ask, peer)
        return [(peer, found[peer.name]) for peer in exported if peer.name in found]

    def _passed_on(self, peer: Peer, item: _Item, key: str) -> dict[str, Any] | None:
        told = mapping_in(item.get("_meta"))
        trail = trail_of(told)
        if not isinstance(item.get(key), str) or self._instance_id in trail:
            return None
        named = {"name": item[key], **_renamed(item, key, _prefix(peer.name))}
        return {**named, "_meta": add_trail(told, (*trail, self._instance_id))}


def _matches(template: object, uri: str) -> bool:
    """Whether a URI can have come of a template, as far as that can be told without its values."""
    if not isinstance(template, str):
        return False
    parts = _EXPRESSION.split(template)
    return re.fullmatch(".*".join(map(re.escape, parts)), uri) is not None


def _prefix(server: str) -> str:
    return f"woollama://{quote(server, safe='')}/"


def _renamed(item: Any, key: str, prefix: str) -> Any:
    if not isinstance(item, Mapping):
        return item
    given = cast("Mapping[str, Any]", item)
    own = given.get(key)
    return {**given, key: prefix + own} if isinstance(own, str) else dict(given)


def _readable(
    method: str, key: str, items: list[dict[str, Any] | None], version: str
) -> list[dict[str, Any]]:
    return [item for item in items if item is not None and fits(method, version, {key: [item]})]
