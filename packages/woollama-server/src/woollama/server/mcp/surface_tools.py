"""The tools of all servers under the names and descriptions by which they are passed on."""

import logging
from collections.abc import Mapping
from operator import is_
from typing import Any, cast

import msgspec

from woollama.core.tools import wire_names
from woollama.server.mcp.federation import add_trail, trail_of
from woollama.server.mcp.offered import OfferedTool
from woollama.server.mcp.surface_results import fits, mapping_in
from woollama.server.mcp.surface_sources import Sources

__all__ = ["ExportedTools"]

_LEFT_ALONE = frozenset({"execution"})
"""Tasks are not passed on, so nobody is to ask for one."""

_OPTIONAL = ("outputSchema", "annotations", "icons", "title")
_log = logging.getLogger(__name__)


class ExportedTools:
    """What ``tools/list`` has of the servers, in their order, and the way back from a name."""

    def __init__(self, sources: Sources, *, taken: tuple[str, ...]) -> None:
        """Looks at the servers with each question.

        Args:
            sources: whose tools.
            taken: names of our own tools, which none of theirs may get.
        """
        self._tools = sources.tools
        self._exports = sources.exports
        self._instance_id = sources.instance_id
        self._rename = sources.rename
        self._limit = sources.name_limit
        self._taken = taken
        self._offered: list[OfferedTool] = []
        self._by_name: dict[str, OfferedTool] = {}
        self._described: dict[str, list[dict[str, Any]]] = {}

    async def settle(self) -> None:
        """Waits a moment for servers that are just coming."""
        await self._tools.settle(self._exports.has)

    def find(self, name: str) -> OfferedTool | None:
        """The tool that is passed on by this name."""
        self._refresh()
        return self._by_name.get(name)

    def described(self, version: str) -> list[dict[str, Any]]:
        """All, as a client of this revision can read them; one that is too odd is left out."""
        self._refresh()
        found = self._described.get(version)
        if found is None:
            all_ = (self._describe(name, tool, version) for name, tool in self._by_name.items())
            found = self._described[version] = [tool for tool in all_ if tool is not None]
        return found

    def names(self) -> tuple[str, ...]:
        """The names, in their order."""
        self._refresh()
        return tuple(self._by_name)

    def state(self) -> object:
        """Something that is the same object exactly as long as the list is the same."""
        self._refresh()
        return self._by_name

    def _refresh(self) -> None:
        offered = [tool for tool in self._tools.offered() if self._exports.has(tool.server)]
        if len(offered) == len(self._offered) and all(map(is_, offered, self._offered)):
            return
        self._offered = offered
        sources = {self._rename(tool.source_name): tool for tool in offered}
        names = wire_names([*self._taken, *sources], limit=self._limit)
        by_name = {names[source]: tool for source, tool in sources.items()}
        if by_name != self._by_name or list(by_name) != list(self._by_name):
            self._by_name = by_name
            self._described = {}

    def _describe(self, name: str, tool: OfferedTool, version: str) -> dict[str, Any] | None:
        raw = {key: value for key, value in tool.raw.items() if key not in _LEFT_ALONE}
        told = mapping_in(tool.raw.get("_meta"))
        described = {
            **raw,
            "name": name,
            "description": tool.description
            or f"The tool {tool.tool!r} of the MCP server {tool.server!r}, which says no more.",
            "inputSchema": _object_schema(tool.raw.get("inputSchema")),
            "_meta": add_trail(told, (*trail_of(told), self._instance_id)),
        }
        if fits("tools/list", version, {"tools": [described]}):
            return described
        for key in _OPTIONAL:
            less = {each: value for each, value in described.items() if each != key}
            if key in described and fits("tools/list", version, {"tools": [less]}):
                _log.info("tool %r is passed on without its %s, which is odd", name, key)
                return less
        _log.warning("tool %r is not passed on: its description is too odd", name)
        return None


def _object_schema(schema: object) -> dict[str, Any]:
    """What strict clients insist on: an object at the root, and no marks for HTTP headers.

    The marks are between us and the server, and are obeyed there.
    """
    given = mapping_in(schema)
    if b'"x-mcp-header"' in msgspec.json.encode(given):
        given = cast("Mapping[str, Any]", _unmarked(given))
    # Arguments are always an object, so this changes nothing of what is accepted.
    return {**given, "type": "object"}


def _unmarked(node: Any, *, are_names: bool = False) -> Any:
    if isinstance(node, list):
        return [_unmarked(each) for each in cast("list[Any]", node)]
    if not isinstance(node, Mapping):
        return node
    given = cast("Mapping[str, Any]", node)
    return {
        key: _unmarked(value, are_names=key == "properties" and not are_names)
        for key, value in given.items()
        if are_names or key != "x-mcp-header"
    }
