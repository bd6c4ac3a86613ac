"""The tables of ``woollama.toml``: their keys, defaults and bounds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from woollama.core.canonical.value import NOTHING, Value
from woollama.core.retries import Retries
from woollama.core.runs import RunLimits
from woollama.core.transport import Timeouts
from woollama.server.address import Address, parse_address

__all__ = [
    "SECTIONS",
    "DiscoverySettings",
    "McpSettings",
    "PluginKeys",
    "PluginSettings",
    "ReasoningSettings",
    "RetrySettings",
    "RunSettings",
    "ServerSettings",
    "TimeoutSettings",
    "TopSettings",
]

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Limit = Annotated[float, msgspec.Meta(ge=0)]
"""Seconds; 0 is without end, because TOML has no word for None."""


class ServerSettings(Value, frozen=True, kw_only=True):
    """``[server]``: where the daemon listens, whom it answers, what it logs.

    Attributes:
        address: ``host:port``, ``host`` or ``port``; port 0 takes a free one.
        uds: the Unix socket: true is ``$XDG_RUNTIME_DIR/woollama.sock``, false is none, a string
            is a path.
        hosts: further names and addresses that a ``Host`` header may have, without ports.
        origins: web origins whose pages may use the API, ``https://app.example``; ``*`` is all.
        body_limit_bytes: the longest request body.
        kind: the HTTP server that runs the application.
        log_format: a line for people, or a JSON object a line.
        log_level: from which level on lines are written; each request is one line of ``info``.
        log_bodies: whether request and reply bodies are logged, which hold all that users write.
        drain_timeout_s: how long requests may go on when the daemon is told to stop.
        header_timeout_s: how long a client may take to send a request's head.
        keep_alive_timeout_s: how long an idle connection is kept.
    """

    address: str = "127.0.0.1:9665"
    uds: bool | str = True
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    body_limit_bytes: Annotated[int, msgspec.Meta(ge=1)] = 32 * 1024 * 1024
    kind: Literal["hypercorn", "uvicorn"] = "hypercorn"
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_bodies: bool = False
    drain_timeout_s: Limit = 8.0
    header_timeout_s: Seconds = 20.0
    keep_alive_timeout_s: Seconds = 120.0

    @property
    def listen(self) -> Address:
        """``address``, read."""
        return parse_address(self.address)


class TimeoutSettings(Value, frozen=True, kw_only=True):
    """``[timeouts]``: how long to wait for a provider, in seconds; 0 is without end.

    Attributes:
        connect, first_byte, between, whole: as in ``woollama.core``'s ``Timeouts``.
    """

    connect: Limit | None = None
    first_byte: Limit | None = None
    between: Limit | None = None
    whole: Limit | None = None

    def of_core(self) -> Timeouts:
        """The core's value; what is not set here has the core's default."""
        given = {
            key: value for key, value in msgspec.structs.asdict(self).items() if value is not None
        }
        return Timeouts(**{key: value or None for key, value in given.items()})


class RetrySettings(Value, frozen=True, kw_only=True):
    """``[retries]``: whether a provider is asked again; ``attempts = 1`` asks once.

    Attributes:
        attempts, first_wait_s, longest_wait_s, longest_asked_s: as in ``woollama.core``'s
            ``Retries``.
    """

    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] | None = None
    first_wait_s: Limit | None = None
    longest_wait_s: Limit | None = None
    longest_asked_s: Limit | None = None

    def of_core(self) -> Retries:
        """The core's value; what is not set here has the core's default."""
        given = msgspec.structs.asdict(self).items()
        return Retries(**{key: value for key, value in given if value is not None})


class ReasoningSettings(Value, frozen=True, kw_only=True):
    """``[reasoning]``: how a model's reasoning is shown in translated replies (RU-16).

    Attributes:
        alias: the field of messages and deltas that holds it.
    """

    alias: Literal["reasoning_content", "reasoning"] = "reasoning_content"


class DiscoverySettings(Value, frozen=True, kw_only=True):
    """``[discovery]``: asking the providers for their models.

    Attributes:
        ttl_s: how long their answer is used; 0 asks each time.
    """

    ttl_s: Limit = 30.0


class RunSettings(Value, frozen=True, kw_only=True):
    """``[runs]``: how long a recipe may go on; 0 seconds is without end.

    Attributes:
        max_turns: requests to its model in all.
        tool_timeout_s: for one tool call; passing it is a failed result that the model is told.
        run_timeout_s: for everything together.
    """

    max_turns: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    tool_timeout_s: Limit = 180.0
    run_timeout_s: Limit = 0.0

    def of_core(self) -> RunLimits:
        """The core's value."""
        return RunLimits(
            max_turns=self.max_turns,
            tool_timeout_s=self.tool_timeout_s or None,
            run_timeout_s=self.run_timeout_s or None,
        )


class McpSettings(Value, frozen=True, kw_only=True):
    """``[mcp]``: limits of the MCP servers in ``mcp.json``; an entry there may have its own.

    Attributes:
        connect_timeout_s: from the start of a server to its list of tools.
        call_timeout_s: for one tool call, the wait for a connection included.
        patience_s: how long a call or a run waits for a server that is just coming.
        retry_limit_s: the longest wait between two tries to reach a server that is down.
    """

    connect_timeout_s: Seconds = 30.0
    call_timeout_s: Seconds = 120.0
    patience_s: Limit = 10.0
    retry_limit_s: Seconds = 60.0


class PluginKeys(Value, frozen=True, kw_only=True):
    """``[plugins]``: which are used, and in which order.

    Attributes:
        enabled: names of plugins; whose section is ``[plugins.<name>]``.
    """

    enabled: tuple[str, ...] = ("local",)


class PluginSettings(PluginKeys, frozen=True, kw_only=True):
    """What is enabled, and the sections as they stand in the file, for the plugins to check.

    Attributes:
        tables: by the plugin's name, what ``[plugins.<name>]`` holds.
    """

    tables: Mapping[str, Mapping[str, Any]] = NOTHING


class TopSettings(Value, frozen=True, kw_only=True):
    """The keys that stand before the first table.

    Attributes:
        default_model: what ``woollama ask`` uses when no model is named; None is the embedded one.
        instance_id: names this daemon to those behind it; None is a new one at each start.
    """

    default_model: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    instance_id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9._-]{1,64}$")] | None = None


SECTIONS: Mapping[str, type[Value]] = MappingProxyType(
    {
        "": TopSettings,
        "server": ServerSettings,
        "timeouts": TimeoutSettings,
        "retries": RetrySettings,
        "reasoning": ReasoningSettings,
        "discovery": DiscoverySettings,
        "runs": RunSettings,
        "mcp": McpSettings,
        "plugins": PluginKeys,
    }
)
"""The tables of ``woollama.toml`` with fixed keys; ``""`` is before the first table."""
