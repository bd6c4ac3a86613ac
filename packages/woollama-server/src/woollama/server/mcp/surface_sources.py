"""What the MCP surface passes on, gathered from the daemon; needs no SDK (ruling RU-60)."""

from collections.abc import Awaitable, Callable, Iterable

from woollama.core.canonical.value import Value
from woollama.core.directory import Directory
from woollama.core.providers import Target
from woollama.core.runs.plan import Link
from woollama.core.tools.names import EXPORT_LIMIT
from woollama.server.mcp.exports import Exports
from woollama.server.mcp.tools import McpTools

__all__ = ["Sources", "same_name"]


def same_name(source_name: str) -> str:
    """The name that a tool is passed on by, before it is made fit: its own."""
    return source_name


class Sources(Value, frozen=True, kw_only=True):
    """Where the surface takes everything from.

    Attributes:
        directory: the models, recipes and patterns.
        tools: the servers in ``mcp.json``.
        exports: what of them is passed on.
        link: how a provider is reached.
        known: the names of models that are on offer, as far as that is known now.
        discover: asks the providers for theirs, and waits a moment.
        instance_id: ours.
        body_limit_bytes: the longest request.
        name_limit: the most characters of a name that a tool is passed on by (ruling RU-45).
        rename: turns ``server.tool`` into what the exported name is made of.
    """

    directory: Directory
    tools: McpTools
    exports: Exports = Exports()
    link: Callable[[Target], Link]
    known: Callable[[], Iterable[str]]
    discover: Callable[[], Awaitable[object]]
    instance_id: str
    body_limit_bytes: int
    name_limit: int = EXPORT_LIMIT
    rename: Callable[[str], str] = same_name
