"""What a plugin is (contract version 1): declarations first, work between setup and teardown.

This is the smallest form that serves providers with a transport of their own; further kinds of
contribution are further methods with a default that contributes nothing.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from anyio.abc import TaskGroup

from woollama.core.canonical import Value
from woollama.core.providers import Provider
from woollama.core.transport import Transport

__all__ = [
    "PLUGIN_API_VERSION",
    "SUPPORTED_PLUGIN_API_VERSIONS",
    "Plugin",
    "PluginContext",
    "ProvidedProvider",
]

PLUGIN_API_VERSION = 1
"""The version of this contract."""

SUPPORTED_PLUGIN_API_VERSIONS = frozenset({1})
"""The versions a plugin may state."""


class ProvidedProvider(Value, frozen=True, kw_only=True):
    """A provider and the transport that reaches it: the latter may start what it needs (RU-52)."""

    provider: Provider
    transport: Transport


class PluginContext(Value, frozen=True, kw_only=True):
    """What a plugin is given.

    Attributes:
        config: its checked section, an instance of its ``config_type``; None when it has none.
        config_dir: where the configuration is; relative paths in a section start there.
        transport: the daemon's own HTTP transport; closed by the daemon.
        tasks: a task group for what must live as long as the plugin; ended behind ``teardown``.
        notice: tells a person at the terminal what is going on, one short line; "" when it is over.
    """

    config: Any
    config_dir: Path
    transport: Transport
    tasks: TaskGroup
    notice: Callable[[str], None]


class Plugin:
    """The base of every plugin.

    A package names one in the entry-point group ``woollama.plugins``: the entry's name is the
    plugin's, its value ``module:factory`` where the factory takes no argument and returns the
    plugin, usually the class itself. Importing the module does no work.

    Attributes:
        name: ``^[a-z][a-z0-9-]{0,31}$``; the section of ``woollama.toml`` is ``plugins.<name>``.
        api_version: the version of this contract it was written for; must be stated.
        requires: names of plugins that must be enabled before it.
        summary: one line for people.
        config_type: the shape of its section; None has no section.
    """

    name: ClassVar[str]
    api_version: ClassVar[int]
    requires: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str] = ""
    config_type: ClassVar[type[msgspec.Struct] | None] = None

    def providers(self, context: PluginContext) -> Sequence[ProvidedProvider]:
        """Providers it brings. Called once, before ``setup`` of any plugin; does no work."""
        return ()

    async def setup(self, context: PluginContext) -> None:
        """Begins its work; raising stops the start of the daemon."""

    async def teardown(self, context: PluginContext) -> None:
        """Ends its work, in the reverse order of the setups."""
