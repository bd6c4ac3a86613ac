"""The MCP server that is there without an ``mcp.json``: three harmless tools for recipes."""

import sys

import msgspec

from woollama.server.mcp.config import McpConfig
from woollama.server.mcp.entries import StdioServer

__all__ = ["BUNDLED", "with_bundled"]

BUNDLED = (
    StdioServer(
        name="clock",
        command=sys.executable,
        # -P: otherwise a file in the working directory could stand in for a module.
        args=("-P", "-m", "woollama.server.examples.clock"),
        on_demand=True,
    ),
)
"""Started by the first recipe that names one of their tools, so that a start pays nothing."""


def with_bundled(config: McpConfig) -> McpConfig:
    """``config`` with the bundled servers behind its own.

    An entry of the same name stands in for a bundled one, a disabled entry too. They are for
    recipes only: over MCP nothing of them is passed on.
    """
    own = [server.name for server in config.servers]
    taken = {*own, *config.skipped, *config.disabled}
    exports = config.exports
    if exports.servers is None:
        exports = msgspec.structs.replace(exports, servers=tuple(own))
    further = tuple(server for server in BUNDLED if server.name not in taken)
    return msgspec.structs.replace(config, servers=(*config.servers, *further), exports=exports)
