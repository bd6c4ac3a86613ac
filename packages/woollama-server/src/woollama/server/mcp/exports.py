"""What of this woollama is passed on over MCP: ``export`` in ``mcp.json``. Needs no SDK."""

from collections.abc import Container, Iterator

from woollama.core.canonical.value import Value

__all__ = ["Exports", "faults_of_exports"]


class Exports(Value, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """``export``: the allow-list of the surface ``/mcp`` and of ``woollama mcp``.

    Attributes:
        servers: whose tools and resources are passed on, by the names in ``mcpServers``; None is
            all of them.
        recipes_only: nothing of the servers is passed on, and ``chat`` runs recipes and patterns
            on their own models only.
    """

    servers: tuple[str, ...] | None = None
    recipes_only: bool = False

    def has(self, server: str) -> bool:
        """Whether what this server has is passed on."""
        if self.recipes_only:
            return False
        return self.servers is None or server in self.servers


def faults_of_exports(exports: Exports, servers: Container[str]) -> Iterator[tuple[str, str]]:
    """What is wrong beside its shape: place and fix, one pair each.

    Args:
        exports: as it was read.
        servers: every name in ``mcpServers``, of wrong entries too.
    """
    for name in exports.servers or ():
        if name not in servers:
            yield "export.servers", f"names {name!r}, which mcpServers has not"
    if exports.recipes_only and exports.servers:
        yield "export.servers", "says nothing beside 'recipesOnly'; keep one of the two"
