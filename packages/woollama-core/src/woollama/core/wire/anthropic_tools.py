"""Tools and the choice of one, as Anthropic Messages writes them, both ways."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from woollama.core.canonical import (
    FunctionTool,
    NamedTool,
    OtherChoice,
    OtherTool,
    Tool,
    ToolChoice,
)
from woollama.core.errors import RequestError
from woollama.core.wire.anthropic_blocks import BlockWriter, rest_of

__all__ = ["choice_from_wire", "encode_choice", "encode_tools", "is_own", "tools_from_wire"]

_TOOL_KEYS = frozenset(
    {
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "eager_input_streaming",
        "input_examples",
    }
)
_DATED = re.compile(r"_\d{8}$")


def is_own(tool: Tool) -> bool:
    """Whether the API has words for ``tool``: functions, and its own tools, which bear a date."""
    return isinstance(tool, FunctionTool) or _DATED.search(tool.type) is not None


def encode_tools(
    tools: Iterable[Tool], writer: BlockWriter, *, others: bool
) -> list[dict[str, Any]]:
    """``tools``.

    Args:
        tools: what the request offers.
        writer: checks the keys beside those that every function has.
        others: False leaves out what is not a function.

    Raises:
        CannotEncode: a function has a key that the API does not have.
    """
    return [
        _function(tool, f"tools[{i}].function", writer)
        if isinstance(tool, FunctionTool)
        else dict(tool.raw)
        for i, tool in enumerate(tools)
        if others or isinstance(tool, FunctionTool)
    ]


def _function(tool: FunctionTool, where: str, writer: BlockWriter) -> dict[str, Any]:
    schema = dict(tool.parameters or {"properties": {}})
    named = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema if "type" in schema else {"type": "object", **schema},
        "strict": tool.strict,
    }
    body = {key: value for key, value in named.items() if value is not None}
    return {**body, **writer.keys(tool.extra, _TOOL_KEYS, where)}


def encode_choice(
    choice: ToolChoice | None, *, offered: bool, parallel: bool
) -> dict[str, Any] | None:
    """``tool_choice``; None where there is nothing to choose.

    Args:
        choice: what was asked for.
        offered: whether the request offers any tool.
        parallel: False allows at most one call a turn.
    """
    body: dict[str, Any]
    match choice:
        case NamedTool(name=name):
            body = {"type": "tool", "name": name}
        case "required":
            body = {"type": "any"}
        case _ if not offered:
            return None
        case "none":
            return {"type": "none"}
        case "auto":
            body = {"type": "auto"}
        case _ if parallel:
            return None
        case _:
            body = {"type": "auto"}
    return body if parallel else {**body, "disable_parallel_tool_use": True}


def tools_from_wire(value: object) -> tuple[Tool, ...]:
    """What a client sent as ``tools``.

    Raises:
        RequestError: no list of tools; ``param`` names the place.
    """
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RequestError("'tools' must be a list of tools.", param="tools")
    items = cast("Sequence[object]", value)
    return tuple(_tool(item, f"tools[{i}]") for i, item in enumerate(items))


def _tool(value: object, where: str) -> Tool:
    match value:
        case {"type": str(kind)} if kind != "custom":
            return OtherTool(type=kind, raw=cast("Mapping[str, Any]", value))
        case {"name": str(name), "input_schema": Mapping()}:
            raw = cast("Mapping[str, Any]", value)
        case _:
            raise RequestError(
                f"{where} must be an object with 'name' and 'input_schema'.", param=where
            )
    description, strict = raw.get("description"), raw.get("strict")
    return FunctionTool(
        name=name,
        description=description if isinstance(description, str) else None,
        parameters=raw["input_schema"],
        strict=strict if isinstance(strict, bool) else None,
        extra=rest_of(raw, "name", "description", "input_schema", "strict"),
    )


def choice_from_wire(value: object) -> tuple[ToolChoice | None, bool | None]:
    """What a client sent as ``tool_choice``, and whether calls may be parallel (None: not said).

    Raises:
        RequestError: no object with a type.
    """
    if value is None:
        return None, None
    if not isinstance(value, Mapping):
        raise RequestError("'tool_choice' must be an object with a 'type'.", param="tool_choice")
    raw = cast("Mapping[str, Any]", value)
    parallel = False if raw.get("disable_parallel_tool_use") is True else None
    match raw:
        case {"type": "auto" | "none" as same}:
            return same, parallel
        case {"type": "any"}:
            return "required", parallel
        case {"type": "tool", "name": str(name)}:
            return NamedTool(name=name), parallel
        case _:
            return OtherChoice(raw=raw), parallel
