"""The daemon's settings: ``woollama.toml`` and the variables and flags that stand above it (RU-3).

One value of each key wins: a flag, else a variable ``WOOLLAMA_SECTION__KEY``, else the file, else
the default. Everything that is wrong anywhere is told at once.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from woollama.core.canonical.value import NOTHING, Value
from woollama.core.config.files import Problem, config_dir, refuse
from woollama.core.retries import Retries
from woollama.core.transport import Timeouts
from woollama.server.address import is_address, parse_address
from woollama.server.environment import check_environment
from woollama.server.layers import Layers
from woollama.server.sections import (
    SECTIONS,
    DiscoverySettings,
    McpSettings,
    PluginKeys,
    PluginSettings,
    ReasoningSettings,
    RetrySettings,
    RunSettings,
    ServerSettings,
    TimeoutSettings,
    TopSettings,
)

__all__ = ["Settings", "check_settings", "load_settings"]

_PARTS = MappingProxyType({"server.host": "host", "server.port": "port"})
_HOST = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s,]+")


class Settings(Value, frozen=True, kw_only=True):
    """All settings of one daemon. Its ``repr`` shows neither the token nor a plugin's section.

    Attributes:
        server, reasoning, discovery, runs, mcp, plugins: their tables.
        timeouts: for requests to providers.
        retries: of requests to providers.
        default_model, instance_id: see ``TopSettings``.
        token: what clients must show, from ``WOOLLAMA_TOKEN``; None asks for nothing.
        config_dir: where the files are.
    """

    server: ServerSettings = ServerSettings()
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    reasoning: ReasoningSettings = ReasoningSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    runs: RunSettings = RunSettings()
    mcp: McpSettings = McpSettings()
    plugins: PluginSettings = PluginSettings()
    default_model: str | None = None
    instance_id: str | None = None
    token: str | None = None
    config_dir: Path

    def __repr__(self) -> str:
        """The directory and the address: the rest can hold secrets."""
        return f"Settings(config_dir={str(self.config_dir)!r}, address={self.server.address!r})"


def load_settings(environ: Mapping[str, str], flags: Mapping[str, Any] = NOTHING) -> Settings:
    """The settings, from everywhere.

    Args:
        environ: the environment; ``<config dir>/.env`` is read under it.
        flags: by ``section.key``, what the command line says; None is not said. ``server.port`` and
            ``server.host`` are flags only: they replace a part of the address.

    Raises:
        ConfigError: everything that is wrong, one line each, with file and place.
    """
    settings, problems = check_settings(environ, flags)
    if settings is None:
        raise refuse(problems)
    return settings


def check_settings(
    environ: Mapping[str, str], flags: Mapping[str, Any] = NOTHING
) -> tuple[Settings | None, list[Problem]]:
    """As ``load_settings``, with what is wrong returned; then there are no settings."""
    directory = config_dir(environ)
    environ, problems = check_environment(environ)
    layers = Layers(SECTIONS)
    layers.problems.extend(problems)
    layers.add_file(directory / "woollama.toml", environ)
    layers.add_environment(environ)
    layers.add_flags({key: value for key, value in flags.items() if key not in _PARTS})
    settings = _settings(layers, directory, _token(layers, environ), flags)
    return (None, layers.problems) if layers.problems else (settings, [])


def _settings(
    layers: Layers, directory: Path, token: str | None, flags: Mapping[str, Any]
) -> Settings:
    server = layers.value("server", ServerSettings)
    parts = {name: flags[key] for key, name in _PARTS.items() if flags.get(key) is not None}
    try:
        address = msgspec.structs.replace(server.listen, **parts)
    except ValueError as error:
        layers.wrong("server", "address", str(error))
    else:
        server = msgspec.structs.replace(server, address=str(address))
        _check_parts(layers, server)
    _check_names(layers, server)
    plugins = layers.value("plugins", PluginKeys)
    for name in sorted({name for name in plugins.enabled if plugins.enabled.count(name) > 1}):
        layers.wrong("plugins", "enabled", f"names {name!r} twice")
    top = layers.value("", TopSettings)
    return Settings(
        server=server,
        timeouts=layers.value("timeouts", TimeoutSettings).of_core(),
        retries=layers.value("retries", RetrySettings).of_core(),
        reasoning=layers.value("reasoning", ReasoningSettings),
        discovery=layers.value("discovery", DiscoverySettings),
        runs=layers.value("runs", RunSettings),
        mcp=layers.value("mcp", McpSettings),
        plugins=PluginSettings(enabled=plugins.enabled, tables=layers.plugins),
        default_model=top.default_model,
        instance_id=top.instance_id,
        token=token,
        config_dir=directory,
    )


def _check_parts(layers: Layers, server: ServerSettings) -> None:
    # A host or a port of the command line can break an address that was right.
    try:
        parse_address(server.address)
    except ValueError as error:
        layers.problems.append(Problem("command line", "server.address", str(error)))


def _check_names(layers: Layers, server: ServerSettings) -> None:
    for host in server.hosts:
        if _HOST.fullmatch(host) is None and not is_address(host):
            layers.wrong("server", "hosts", f"{host!r} is no host name or address without a port")
    for origin in server.origins:
        if origin not in {"*", "null"} and _ORIGIN.fullmatch(origin) is None:
            layers.wrong(
                "server", "origins", f"{origin!r} is no origin; write scheme://host[:port]"
            )


def _token(layers: Layers, environ: Mapping[str, str]) -> str | None:
    # A header's value has no space round it, so a token that had could never be shown.
    token = environ.get("WOOLLAMA_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):
        message = "must be of visible ASCII characters: others cannot be sent in a header"
        layers.problems.append(Problem("environment", "WOOLLAMA_TOKEN", message))
    return token or None
