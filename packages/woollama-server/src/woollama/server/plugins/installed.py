"""What is installed: entry points as names and places, imported only when somebody wants one."""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from woollama.core.config.files import Problem
from woollama.server.plugins.contract import Plugin
from woollama.server.plugins.names import BUNDLED_DISTRIBUTION

__all__ = ["FILE", "GROUP", "Enabled", "Installed", "find_installed", "import_plugin"]

GROUP = "woollama.plugins"
"""The entry-point group."""

FILE = "woollama.toml"
"""The file that enables plugins and holds their sections."""


class Installed(msgspec.Struct, frozen=True):
    """A plugin that could be enabled; nothing of it has been imported.

    Attributes:
        name: of its entry point.
        load: imports it and gives the factory, or the plugin itself.
        place: ``module:factory``, for messages.
        distribution: what it was installed with, ``acme-tools 1.2``; of several by the same name
            all of them.
        bundled: whether it is ours.
    """

    name: str
    load: Callable[[], Any]
    place: str = ""
    distribution: str = ""
    bundled: bool = False
    rivals: tuple[str, ...] = ()


class Enabled(msgspec.Struct, frozen=True):
    """A plugin that is to run, and its checked section."""

    plugin: Plugin
    config: msgspec.Struct | None
    bundled: bool = False


def find_installed() -> dict[str, Installed]:
    """Everything in the entry-point group, by name; imports nothing."""
    return gather(entry_points(group=GROUP))


def gather(entries: Iterable[EntryPoint]) -> dict[str, Installed]:
    """Entry points by name; one that several distributions have knows them all."""
    found: dict[str, Installed] = {}
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.value)):
        distribution = entry.dist
        title = f"{distribution.name} {distribution.version}" if distribution is not None else ""
        # The same distribution can be seen twice, by two entries of the path.
        first = found.get(entry.name)
        if first is not None:
            if title not in {first.distribution, *first.rivals}:
                rivals = (*first.rivals, title)
                found[entry.name] = msgspec.structs.replace(first, rivals=rivals)
            continue
        found[entry.name] = Installed(
            name=entry.name,
            load=entry.load,
            place=entry.value,
            distribution=title,
            bundled=distribution is not None and distribution.name == BUNDLED_DISTRIBUTION,
        )
    return found


def import_plugin(
    name: str, installed: Mapping[str, Installed], problems: list[Problem]
) -> Plugin | None:
    """The plugin of this name; None when there is none, and then a problem says why."""
    entry = installed.get(name)
    if entry is None:
        known = ", ".join(sorted(installed)) or "none"
        message = f"there is no plugin {name!r}: install it, or remove it; installed are {known}"
        problems.append(Problem(FILE, "plugins.enabled", message))
        return None
    if entry.rivals:
        several = " and ".join((entry.distribution, *entry.rivals))
        message = f"{name!r} is in several distributions, {several}: uninstall all but one"
        problems.append(Problem(FILE, "plugins.enabled", message))
        return None
    where = f"{name!r} ({_origin(entry)})"
    try:
        made = entry.load()
        plugin: object = made if isinstance(made, Plugin) else made()
    except Exception as error:  # noqa: BLE001 - code of others may raise anything when imported
        reason = f"{type(error).__name__}: {error}"
        message = f"{where} cannot be imported: {reason}; repair it, or remove it from enabled"
        problems.append(Problem(FILE, "plugins.enabled", message))
        return None
    if not isinstance(plugin, Plugin):
        message = f"{where} is no woollama plugin: its entry point must name a Plugin of "
        message += "woollama.server.plugins.contract; remove it from enabled"
        problems.append(Problem(FILE, "plugins.enabled", message))
        return None
    return plugin


def _origin(entry: Installed) -> str:
    return ", ".join(part for part in (entry.place, entry.distribution) if part) or "no place"
