"""An MCP server with three small tools: the time, arithmetic, the length of a text.

Run as ``python -m woollama.server.examples.clock``, it speaks MCP on its stdin and stdout. It reads
no file, opens no connection and changes nothing.
"""

import ast
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from woollama.core import __version__

__all__ = ["make_server"]

_HARMLESS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {
        ast.Add: lambda a, b: a + b,
        ast.Sub: lambda a, b: a - b,
        ast.Mult: lambda a, b: a * b,
        ast.Div: lambda a, b: a / b,
        ast.FloorDiv: lambda a, b: a // b,
        ast.Mod: lambda a, b: a % b,
    }
)
_EXPRESSION_CHARACTERS = 200


def current_time(
    timezone: Annotated[str, Field(description="an IANA name such as Europe/Berlin")] = "UTC",
) -> str:
    """The current date and time, as YYYY-MM-DD HH:MM:SS with the time zone and the weekday."""
    try:
        zone = UTC if timezone.upper() == "UTC" else ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolError(f"There is no time zone {timezone!r} here.") from error
    return datetime.now(zone).strftime("%Y-%m-%d %H:%M:%S %Z, %A")


def calculate(
    expression: Annotated[
        str, Field(description="such as (2 + 3) * 4; the operators + - * / // %")
    ],
) -> float:
    """The value of an arithmetic expression."""
    if len(expression) > _EXPRESSION_CHARACTERS:
        raise ToolError("That expression is too long.")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ToolError(f"{expression!r} is no arithmetic expression.") from error
    except (ZeroDivisionError, OverflowError) as error:
        raise ToolError(f"{expression!r} has no value: {error}.") from error


def count_words(text: str) -> dict[str, int]:
    """How many words, lines and characters a text has."""
    return {
        "words": len(text.split()),
        "lines": len(text.splitlines()),
        "characters": len(text),
    }


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
        case _:
            raise ValueError("not arithmetic")


def make_server() -> MCPServer:
    """The server, not running."""
    server = MCPServer("woollama-clock", version=__version__, log_level="WARNING")
    for function in (current_time, calculate, count_words):
        server.add_tool(function, annotations=_HARMLESS)
    return server


if __name__ == "__main__":
    make_server().run()
