"""Names of plugins: which there can be, and which are ours."""

import re

__all__ = ["BUNDLED_DISTRIBUTION", "RESERVED_NAMES", "why_no_name"]

BUNDLED_DISTRIBUTION = "woollama-server"
"""Whose plugins may have reserved names and prefixes of their own (RU-50)."""

RESERVED_NAMES = frozenset(
    {
        # first segments of paths
        *("admin", "api", "docs", "healthz", "login", "mcp", "metrics", "pub", "readyz", "static"),
        *("ui", "v1", "w1", "x"),
        # commands
        *("ask", "check-config", "models", "patterns", "plugins", "serve", "tools"),
        # sections of files, and words that are used beside names of plugins
        *("config", "conversations", "discovery", "enabled", "inferencers", "none", "recipes"),
        *("reasoning", "retries", "server", "timeouts"),
        # sources of patterns and first parts of model names
        *("directory", "native", "recipe", "woollama"),
        # our own plugins, built and planned
        *("approvals", "claude-agent", "claude-code", "fabric", "health", "local", "logs", "usage"),
    }
)
"""Names that a plugin of another project cannot have; longer only with a new contract version."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


def why_no_name(name: str, *, bundled: bool) -> str | None:
    """What is wrong with the name of a plugin, and what to do; None when nothing is."""
    if _NAME.fullmatch(name) is None:
        return "is no name for a plugin: use up to 32 of a-z, 0-9 and '-', a letter first"
    if not bundled and name in RESERVED_NAMES:
        return f"is a reserved name: rename the plugin, for example to 'my-{name}'"
    return None
