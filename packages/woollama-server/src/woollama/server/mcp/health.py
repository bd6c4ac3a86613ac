"""How an MCP server is doing, as people and programs are told."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from woollama.core.canonical.value import NOTHING, Value

__all__ = ["ChildLog", "Health", "OnProgress", "ServerHealth", "health_to_json"]

Health = Literal["idle", "connecting", "connected", "retrying", "failed"]
"""``idle``: nobody has needed it yet. ``failed`` is for good: nothing is tried until the
configuration changes."""

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Gets ``progress``, ``total`` and ``message`` of each notice of a call that is under way."""


class ServerHealth(Value, frozen=True, kw_only=True):
    """One server at one moment.

    Attributes:
        name: its name in ``mcp.json``.
        transport: ``stdio`` or ``http``; None for an entry that is neither.
        health: see ``Health``.
        reason: why it is not connected, one sentence.
        attempts: tries since the last connection, the current one included.
        tools: how many it offers, as far as known.
        left_out: tools that are not offered, and why.
        protocol: the revision that is spoken.
        last_error: the last thing that went wrong, also when all is well again.
        stderr: the end of what its process wrote to stderr.
    """

    name: str
    transport: Literal["stdio", "http"] | None
    health: Health
    reason: str | None = None
    attempts: int = 0
    tools: int = 0
    left_out: Mapping[str, str] = NOTHING
    protocol: str | None = None
    last_error: str | None = None
    stderr: str | None = None


class ChildLog:
    """What a server's processes wrote beside messages, its end; and how the last of them ended.

    Attributes:
        ending: a clause, ``it ended with exit code 1``; None: it runs, or nobody knows.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Empty."""
        self._limit_bytes = limit_bytes
        self._bytes = bytearray()
        self._is_cut = False
        self.ending: str | None = None

    def write(self, data: bytes) -> None:
        """Keep the end of ``data``."""
        self._bytes += data
        if len(self._bytes) > self._limit_bytes:
            del self._bytes[: -self._limit_bytes]
            self._is_cut = True

    @property
    def text(self) -> str:
        """What is kept, whole lines if there are any; bytes that are no UTF-8 are replaced."""
        _, found, rest = self._bytes.partition(b"\n")
        # Half a line may begin with half a secret, which nobody would recognise.
        kept = rest if self._is_cut and found and rest else self._bytes
        return kept.decode("utf-8", "replace")

    def __bool__(self) -> bool:
        """Whether anything was written."""
        return bool(self._bytes)


def health_to_json(health: ServerHealth) -> dict[str, Any]:
    """A server for ``GET /w1/tools``: keys without a value are left out, but for the counts."""
    entry: dict[str, Any] = {
        "name": health.name,
        "transport": health.transport,
        "health": health.health,
        "tools": health.tools,
        "attempts": health.attempts,
    }
    optional = {
        "reason": health.reason,
        "last_error": health.last_error,
        "protocol": health.protocol,
        "left_out": dict(health.left_out) or None,
        "stderr": health.stderr,
    }
    entry.update({key: value for key, value in optional.items() if value is not None})
    return entry
