"""``mcp.json``: which MCP servers there are and how each is reached.

A wrong entry is left out by its name and reported; any other fault in the file stops the start
(ruling RU-33). ``${VAR}`` is expanded entry by entry, so an unset variable costs one entry.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from woollama.core.canonical.value import NOTHING, Value
from woollama.core.config.files import Problem, config_dir, read_file, read_table, refuse
from woollama.core.config.variables import expand
from woollama.core.errors import ConfigError
from woollama.server.mcp.entries import HttpServer, McpEntry, McpFile, StdioServer, server_of
from woollama.server.mcp.entry_faults import doubts_of, faults_of
from woollama.server.mcp.exports import Exports, faults_of_exports

__all__ = ["McpConfig", "check_mcp", "load_mcp"]

_FILE = "mcp.json"
_NAMED = (
    ("mcpServers",),
    ("mcpServers", "*", "env"),
    ("mcpServers", "*", "headers"),
)


class McpConfig(Value, frozen=True, kw_only=True):
    """What ``mcp.json`` says.

    Attributes:
        path: the file, which need not exist.
        servers: those that can be tried, in the order of the file.
        skipped: entries that are wrong, by name: what and how to fix it.
        disabled: names of entries that are kept and not used.
        warnings: what works and is perhaps not meant.
        exports: what is passed on over MCP.
        fabric, conversation_store: these sections as they stand in the file, nothing expanded;
            None when they are not there.
    """

    path: Path | None = None
    servers: tuple[StdioServer | HttpServer, ...] = ()
    skipped: Mapping[str, str] = NOTHING
    disabled: tuple[str, ...] = ()
    warnings: tuple[Problem, ...] = ()
    exports: Exports = Exports()
    fabric: Any = None
    conversation_store: Any = None


def load_mcp(environ: Mapping[str, str], path: Path | None = None) -> McpConfig:
    """The servers of ``mcp.json``; none when there is no file.

    Args:
        environ: for ``${VAR}``, and to find the file.
        path: the file; None is the one in the configuration directory.

    Raises:
        ConfigError: the file is wrong beyond single entries.
    """
    config, entries, fatal = _check(path or config_dir(environ) / _FILE, environ)
    if fatal:
        raise refuse([*fatal, *entries])
    return config


def check_mcp(path: Path, environ: Mapping[str, str]) -> tuple[McpConfig, list[Problem]]:
    """As ``load_mcp``, with everything that is wrong, in entries and elsewhere, returned."""
    config, entries, fatal = _check(path, environ)
    return config, [*fatal, *entries]


def _check(
    path: Path, environ: Mapping[str, str]
) -> tuple[McpConfig, list[Problem], list[Problem]]:
    """The configuration, what is wrong in entries, what is wrong in the file."""
    empty = McpConfig(path=path)
    try:
        tree = read_file(path, None, named=_NAMED)
    except ConfigError as error:
        return empty, [], [Problem("", "", error.message)]
    file = str(path)
    shell = {key: value for key, value in tree.items() if key != "mcpServers"}
    top, fatal = read_table(shell, McpFile, file=file, place="")
    entries = tree.get("mcpServers", {})
    if not isinstance(entries, Mapping):
        fatal.append(Problem(file, "mcpServers", "must be an object of servers by their names"))
        entries = {}
    exports = top.export if top is not None else Exports()
    names = cast("Mapping[str, Any]", entries)
    fatal += [Problem(file, where, what) for where, what in faults_of_exports(exports, names)]
    reading = _Reading(file, environ)
    for name, raw in cast("Mapping[str, Any]", entries).items():
        reading.add(name, raw)
    config = McpConfig(
        path=path,
        servers=tuple(reading.servers),
        skipped=reading.skipped,
        disabled=tuple(reading.disabled),
        warnings=tuple(reading.warnings),
        exports=exports,
        fabric=tree.get("fabric"),
        conversation_store=tree.get("conversationStore"),
    )
    return config, reading.problems, fatal


class _Reading:
    """The entries of one file, read one after another."""

    def __init__(self, file: str, environ: Mapping[str, str]) -> None:
        self._file = file
        self._environ = environ
        self.servers: list[StdioServer | HttpServer] = []
        self.skipped: dict[str, str] = {}
        self.disabled: list[str] = []
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def add(self, name: str, raw: object) -> None:
        """One entry: a server, or why it is none."""
        place = f"mcpServers.{name}"
        entry, found = self._entry(name, raw, place)
        if entry is not None and not found:
            found = [Problem(self._file, where, what) for where, what in faults_of(entry, place)]
        if found:
            self.problems.extend(found)
            self.skipped[name] = "; ".join(_told(problem, place) for problem in found)
        elif entry is not None and entry.disabled:
            self.disabled.append(name)
        elif entry is not None:
            self.servers.append(server_of(name, raw, entry))
            for where, what in doubts_of(entry, place):
                self.warnings.append(Problem(self._file, where, what))

    def _entry(self, name: str, raw: object, place: str) -> tuple[McpEntry | None, list[Problem]]:
        if not name.strip():
            return None, [Problem(self._file, place, "needs a name")]
        if _mapping(raw).get("type") == "sse":
            advice = 'write the server\'s Streamable HTTP address, and "type": "http" or no type'
            return None, [Problem(self._file, f"{place}.type", f"'sse' is not spoken; {advice}")]
        texts = _no_texts(raw, place)
        if texts:
            return None, [Problem(self._file, where, what) for where, what in texts]
        tree, missing = expand({"mcpServers": {name: raw}}, self._environ, named=_NAMED)
        if missing:
            advice = "set each, or write ${NAME:-default}"
            text = f"unset variables: {', '.join(missing)}; {advice}"
            return None, [Problem(self._file, place, text)]
        return read_table(tree["mcpServers"][name], McpEntry, file=self._file, place=place)


def _no_texts(raw: object, place: str) -> list[tuple[str, str]]:
    """Numbers and booleans where the system has only texts: the commonest slip, told by its key."""
    faults: list[tuple[str, str]] = []
    for table in ("env", "headers"):
        for key, value in _mapping(_mapping(raw).get(table)).items():
            if not isinstance(value, str):
                written = msgspec.json.encode(value).decode()
                advice = f'write "{written}"' if isinstance(value, bool | int | float) else ""
                message = "; ".join(part for part in ("must be a text", advice) if part)
                faults.append((f"{place}.{table}.{key}", message))
    return faults


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else NOTHING


def _told(problem: Problem, place: str) -> str:
    key = problem.place.removeprefix(place).lstrip(".")
    return f"{key}: {problem.message}" if key else problem.message
