"""One tool of one server: its names, as models are offered it, as people are shown it."""

from collections.abc import Mapping
from typing import Any, cast

from woollama.core.canonical.value import NOTHING, Value
from woollama.core.tools import ToolSpec

__all__ = ["OfferedTool", "tool_to_json"]

_KNOWN_KEYS = frozenset({"name", "description", "inputSchema", "outputSchema", "annotations"})


class OfferedTool(Value, frozen=True, kw_only=True):
    """One tool of one server.

    Attributes:
        source_name: ``<server>.<tool>``.
        wire_name: what models call it by.
        server, tool: the two halves of ``source_name``.
        raw: what the server said of it, untouched.
    """

    source_name: str
    wire_name: str
    server: str
    tool: str
    raw: Mapping[str, Any]

    @property
    def description(self) -> str:
        """What it is for, as its server says; empty when it says nothing."""
        return _description(self.raw)

    @property
    def spec(self) -> ToolSpec:
        """As it is offered to models: nothing of the schema is changed."""
        function = {
            "name": self.wire_name,
            "description": _description(self.raw),
            "parameters": self.raw.get("inputSchema", {}),
        }
        meta = {key: value for key, value in self.raw.items() if key not in _KNOWN_KEYS}
        return ToolSpec(
            self.wire_name,
            {"type": "function", "function": function},
            source_name=self.source_name,
            output_schema=_mapping(self.raw.get("outputSchema")),
            annotations=_mapping(self.raw.get("annotations")) or NOTHING,
            meta=meta or NOTHING,
        )


def tool_to_json(tool: OfferedTool) -> dict[str, Any]:
    """A tool for ``GET /w1/tools``."""
    entry: dict[str, Any] = {
        "object": "tool",
        "id": tool.source_name,
        "name": tool.wire_name,
        "server": tool.server,
        "tool": tool.tool,
        "description": _description(tool.raw),
        "input_schema": tool.raw.get("inputSchema", {}),
    }
    more = {"output_schema": "outputSchema", "annotations": "annotations"}
    entry.update({key: tool.raw[its] for key, its in more.items() if tool.raw.get(its) is not None})
    return entry


def _description(raw: Mapping[str, Any]) -> str:
    titled = _mapping(raw.get("annotations")) or NOTHING
    said = (raw.get("description"), raw.get("title"), titled.get("title"))
    return next((text for text in said if isinstance(text, str) and text), "")


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None
