"""From names to plugins that are ready to run, checked as a set.

Installed is not enabled: an entry point of another project is imported only when ``[plugins]
enabled`` names it. Everything that is wrong is reported at once, before anything starts (P-61).
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from woollama.core.canonical import NOTHING
from woollama.core.config.files import Problem, read_table, refuse
from woollama.server.plugins.checks import (
    check_contributions,
    check_declaration,
    collect_contributions,
    doubts_of,
    secrets_of,
)
from woollama.server.plugins.contract import Plugin
from woollama.server.plugins.installed import (
    FILE,
    Enabled,
    Installed,
    find_installed,
    import_plugin,
)
from woollama.server.plugins.running import RunningPlugins, open_plugins
from woollama.server.plugins.selection import Section, select_plugins

__all__ = [
    "Enabled",
    "RunningPlugins",
    "check_plugins",
    "examine_plugin",
    "load_plugins",
    "open_plugins",
]

_log = logging.getLogger(__name__)


def load_plugins(
    enabled: Iterable[str],
    sections: Mapping[str, Any],
    *,
    fabric: Any = None,
    found: Mapping[str, Installed] | None = None,
    environ: Mapping[str, str] = NOTHING,
    config_dir: Path | None = None,
    taken: Iterable[str] = (),
    servers: Iterable[str] = (),
) -> tuple[Enabled, ...]:
    """The plugins to run, checked as a set. Only those are imported.

    Args:
        enabled: ``[plugins] enabled``, in the order of loading.
        sections: the tables under ``[plugins]``.
        fabric: the section ``fabric`` of ``mcp.json`` as it stands there; it enables that plugin.
        found: what is installed; None looks it up.
        environ: the environment; ``WOOLLAMA_PLUGINS`` in it stands for ``enabled``.
        config_dir: where the configuration is.
        taken: names of providers that exist already.
        servers: names of MCP servers.

    Raises:
        ConfigError: everything that is wrong with the set, by name and with the fix.
    """
    loaded, problems = check_plugins(
        enabled,
        sections,
        fabric=fabric,
        found=found,
        environ=environ,
        config_dir=config_dir,
        taken=taken,
        servers=servers,
    )
    if problems:
        raise refuse(problems)
    for each in loaded:
        for doubt in doubts_of(each.plugin):
            _log.warning("plugin %s: %s", each.plugin.name, doubt)
    return loaded


def check_plugins(
    enabled: Iterable[str],
    sections: Mapping[str, Any],
    *,
    fabric: Any = None,
    found: Mapping[str, Installed] | None = None,
    environ: Mapping[str, str] = NOTHING,
    config_dir: Path | None = None,
    taken: Iterable[str] = (),
    servers: Iterable[str] = (),
) -> tuple[tuple[Enabled, ...], list[Problem]]:
    """As ``load_plugins``, with what is wrong returned beside the plugins that are right."""
    installed = find_installed() if found is None else found
    selection = select_plugins(enabled, sections, fabric=fabric, environ=environ)
    problems = list(selection.problems)
    loaded: list[Enabled] = []
    for name in selection.names:
        plugin = import_plugin(name, installed, problems)
        if plugin is None:
            continue
        entry = installed[name]
        each, faults = examine_plugin(
            entry, plugin, selection.names, selection.sections.get(name), environ
        )
        problems.extend(faults)
        if each is not None:
            loaded.append(each)
    folder = config_dir if config_dir is not None else Path()
    found_there, silent = collect_contributions(loaded, config_dir=folder, environ=environ)
    collisions = check_contributions(found_there, taken=taken, servers=servers)
    return tuple(loaded), [*problems, *silent, *collisions]


def examine_plugin(
    entry: Installed,
    plugin: Plugin,
    names: Sequence[str],
    section: Section | None,
    environ: Mapping[str, str],
) -> tuple[Enabled | None, list[Problem]]:
    """One plugin by itself: ready to run, or what is wrong with it.

    Args:
        entry: where it was found.
        plugin: imported.
        names: everything that is enabled, in order.
        section: what is written for it.
        environ: the environment.
    """
    problems = check_declaration(entry.name, plugin, names, bundled=entry.bundled)
    if problems:
        return None, problems
    secrets_of(plugin, environ, problems)
    config = _config(plugin, section, problems)
    return (None if problems else Enabled(plugin, config, entry.bundled)), problems


def _config(
    plugin: Plugin, section: Section | None, problems: list[Problem]
) -> msgspec.Struct | None:
    shape = plugin.config_type
    if section is None:
        section = Section(raw={}, file=FILE, place=f"plugins.{plugin.name}")
        if shape is None:
            return None
    if shape is None:
        message = "this plugin has no settings: delete the section"
        problems.append(Problem(section.file, section.place, message))
        return None
    config, found = read_table(section.raw, shape, file=section.file, place=section.place)
    problems.extend(found)
    return config
