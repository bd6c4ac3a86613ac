"""A server's tools as it listed them: which are offered, and why the others are not."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from woollama.core.canonical.value import NOTHING, Value
from woollama.server.mcp.federation import trail_of

__all__ = ["Roster", "is_repeatable", "read_roster"]


class Roster(Value, frozen=True, kw_only=True):
    """The tools of one server.

    Attributes:
        tools: by the server's own names and in its order, each as the server described it.
        left_out: names that are not offered, and why.
    """

    tools: Mapping[str, Mapping[str, Any]] = NOTHING
    left_out: Mapping[str, str] = NOTHING


def read_roster(
    listed: Iterable[Any],
    *,
    instance_id: str,
    only: Collection[str] | None = None,
    unsendable: Collection[str] = (),
) -> Roster:
    """Sorts out what a server listed.

    One tool that is odd costs that tool, not the list.

    Args:
        listed: the items of ``tools/list``, all pages.
        instance_id: ours; a tool that came through us is not offered again.
        only: the names that ``mcp.json`` allows; None is all.
        unsendable: names whose ``x-mcp-header`` marks break the protocol's rules.
    """
    tools: dict[str, Mapping[str, Any]] = {}
    left_out: dict[str, str] = {}
    for item in listed:
        tool = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else NOTHING
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            left_out[""] = "it has no name"
        elif name in tools:
            left_out[name] = "it is listed twice; the first one is offered"
        elif only is not None and name not in only:
            left_out[name] = "it is not among the 'tools' of the entry in mcp.json"
        elif instance_id in trail_of(tool.get("_meta")):
            left_out[name] = "it is our own, coming back through another woollama"
        elif not isinstance(tool.get("inputSchema", NOTHING), Mapping):
            left_out[name] = "its inputSchema is no object"
        elif name in unsendable:
            left_out[name] = "its x-mcp-header marks are not valid"
        else:
            tools[name] = tool
    for name in only or ():
        if name not in tools and name not in left_out:
            left_out[name] = "the entry in mcp.json names it, and the server has no such tool"
    return Roster(tools=tools, left_out=left_out)


def is_repeatable(tool: Mapping[str, Any]) -> bool:
    """Whether a call that may have run can be made again: the tool says that it does no harm."""
    hints = tool.get("annotations")
    if not isinstance(hints, Mapping):
        return False
    said = cast("Mapping[str, Any]", hints)
    return said.get("readOnlyHint") is True or said.get("idempotentHint") is True
