"""The entries of ``mcp.json``: their shape, and the servers they describe."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import msgspec

from woollama.core.canonical.value import NOTHING, Value
from woollama.server.mcp.exports import Exports

__all__ = [
    "HttpServer",
    "McpEntry",
    "McpFile",
    "Protocol",
    "Server",
    "StdioServer",
    "server_of",
]

Protocol = Literal["auto", "legacy", "modern"]
Seconds = Annotated[float, msgspec.Meta(gt=0)]

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL", re.IGNORECASE)
_SECRET_CHARACTERS = 6
"""A shorter value is no secret worth hiding, and is in too many words."""


class McpEntry(Value, frozen=True, kw_only=True):
    """``mcpServers.<name>``: a program to start (``command``) or an address (``url``).

    Attributes:
        command: the program that speaks MCP on its stdin and stdout.
        args: its arguments; everybody on the machine can read them.
        env: variables it gets beside the few that every child gets.
        cwd: its working directory.
        url: the address of a server that speaks Streamable HTTP.
        headers: sent with each request to ``url``; the place for credentials.
        type: what other programs write; must fit ``command`` or ``url``.
        mode: ``auto`` asks for the protocol of 2026 and falls back to the older handshake;
            ``legacy`` and ``modern`` do only one of the two.
        tools: the tools that are offered, by the server's own names; None is all.
        disabled: the entry is kept and not used.
        description: for people.
        connect_timeout_s, call_timeout_s: in the place of the daemon's own limits.
    """

    command: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = NOTHING
    cwd: str | None = None
    url: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    headers: Mapping[str, str] = NOTHING
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    mode: Protocol = "auto"
    tools: tuple[str, ...] | None = None
    disabled: bool = False
    description: str = ""
    connect_timeout_s: Seconds | None = None
    call_timeout_s: Seconds | None = None


class McpFile(Value, frozen=True, kw_only=True, rename="camel"):
    """The file ``mcp.json``.

    Attributes:
        schema: for editors; not looked at.
        mcp_servers: the servers by their names.
        export: what of all this is passed on over MCP.
        fabric: the section of the fabric plugin, which reads it.
        conversation_store: where conversations are kept; read by what keeps them.
    """

    schema: str | None = msgspec.field(default=None, name="$schema")
    mcp_servers: Mapping[str, McpEntry] = NOTHING
    export: Exports = Exports()
    fabric: Any = None
    conversation_store: Any = None


class Server(Value, frozen=True, kw_only=True):
    """What is known of a server before anything is tried.

    Attributes:
        name: its name in the file; its tools are ``<name>.<tool>``.
        mode, tools, connect_timeout_s, call_timeout_s: see ``McpEntry``.
        secrets: texts that are not to be shown to anybody.
        on_demand: whether it is left alone until a recipe wants one of its tools.
    """

    name: str
    mode: Protocol = "auto"
    tools: tuple[str, ...] | None = None
    connect_timeout_s: float | None = None
    call_timeout_s: float | None = None
    secrets: tuple[str, ...] = ()
    on_demand: bool = False

    def __repr__(self) -> str:
        """Its name only: environment, headers and arguments can hold keys."""
        return f"{type(self).__name__}(name={self.name!r})"

    def redact(self, text: str) -> str:
        """``text`` without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


class StdioServer(Server, frozen=True, kw_only=True):
    """A server that is a child process; see ``McpEntry``."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = NOTHING
    cwd: str | None = None


class HttpServer(Server, frozen=True, kw_only=True):
    """A server at an address; see ``McpEntry``."""

    url: str
    headers: Mapping[str, str] = NOTHING


def server_of(name: str, raw: object, entry: McpEntry) -> StdioServer | HttpServer:
    """The server that an entry without faults describes.

    Args:
        name: its key in ``mcpServers``.
        raw: the entry as it stands in the file, to see what came from the environment.
        entry: the entry.
    """
    common: dict[str, Any] = {
        "name": name,
        "mode": entry.mode,
        "tools": entry.tools,
        "connect_timeout_s": entry.connect_timeout_s,
        "call_timeout_s": entry.call_timeout_s,
        "secrets": _secrets(raw, entry),
    }
    if entry.command is not None:
        return StdioServer(
            command=entry.command, args=entry.args, env=entry.env, cwd=entry.cwd, **common
        )
    return HttpServer(url=entry.url or "", headers=entry.headers, **common)


def _secrets(raw: object, entry: McpEntry) -> tuple[str, ...]:
    """Headers, what came from the environment, and variables with a telling name."""
    given = cast("Mapping[str, Any]", raw)
    found: set[str] = set()
    for value in entry.headers.values():
        found.update((value, value.rpartition(" ")[2]))
    written = cast("Mapping[str, Any]", given.get("env", {}))
    found.update(
        value
        for key, value in entry.env.items()
        if written.get(key) != value or _SECRET_NAME.search(key)
    )
    args = cast("list[Any]", given.get("args", []))
    found.update(new for old, new in zip(args, entry.args, strict=True) if old != new)
    if entry.url is not None and given.get("url") != entry.url:
        found.add(entry.url)
    # The longest first: a part of another is replaced with it.
    secrets = sorted((text for text in found if len(text) >= _SECRET_CHARACTERS), key=len)
    return tuple(reversed(secrets))
