"""How long is waited for MCP servers, and how often they are tried."""

import msgspec

from woollama.core.canonical.value import Value
from woollama.server.mcp.entries import Server

__all__ = ["McpLimits"]

_MANY = 64


class McpLimits(Value, frozen=True, kw_only=True):
    """Limits of every server; a server's own entry may replace the first two. Seconds, or bytes.

    Attributes:
        connect_timeout_s: from the start of a process or the first request to the list of tools.
        call_timeout_s: for one tool call, the wait for a connection included.
        patience_s: how long a call or a run waits for a server that is just coming.
        backoff_s: the wait before the second try in a row; the first one is immediate, each
            further one waits twice as long.
        backoff_limit_s: the longest of these waits.
        calm_s: a connection that held for so long starts the count anew.
        ping_interval_s: how often a quiet connection is looked at. A server that does not announce
            changes is asked for its list each time.
        ping_timeout_s: how long the answer to that may take before the connection is given up.
        probe_timeout_s: how long the newer protocol's first request is waited for before the older
            handshake is tried.
        stop_timeout_s: between closing a child's stdin and killing it and its process group.
        log_limit_bytes: how much of the end of a child's stderr is kept.
        result_limit_bytes: the longest message of a child; one that is longer ends the connection.
    """

    connect_timeout_s: float = 30.0
    call_timeout_s: float = 120.0
    patience_s: float = 10.0
    backoff_s: float = 1.0
    backoff_limit_s: float = 60.0
    calm_s: float = 10.0
    ping_interval_s: float = 30.0
    ping_timeout_s: float = 10.0
    probe_timeout_s: float = 5.0
    stop_timeout_s: float = 4.0
    log_limit_bytes: int = 8192
    result_limit_bytes: int = 64 * 1024 * 1024

    def delay_s(self, falls: int) -> float:
        """The wait before the next try after ``falls`` failures in a row: none after the first."""
        if falls < 2:
            return 0.0
        return min(self.backoff_s * 2.0 ** min(falls - 2, _MANY), self.backoff_limit_s)

    def of(self, server: Server) -> "McpLimits":
        """Those of one server: what its entry says, in the place of these."""
        own = {
            "connect_timeout_s": server.connect_timeout_s,
            "call_timeout_s": server.call_timeout_s,
        }
        given = {key: value for key, value in own.items() if value is not None}
        return msgspec.structs.replace(self, **given)
