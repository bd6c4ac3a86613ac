"""What is installed, enabled and contributed, for people; nothing of it is run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from woollama.core.canonical import NOTHING, Value
from woollama.core.config.files import Problem
from woollama.server.plugins.checks import collect_contributions, doubts_of
from woollama.server.plugins.contract import Plugin
from woollama.server.plugins.contributions import Contributions, kinds_of
from woollama.server.plugins.installed import Enabled, Installed, import_plugin
from woollama.server.plugins.loader import examine_plugin
from woollama.server.plugins.selection import OVERRIDE, select_plugins

__all__ = ["PluginView", "describe_plugin", "list_plugins"]


class PluginView(Value, frozen=True, kw_only=True):
    """One plugin as a list shows it.

    Attributes:
        name: of its entry point.
        enabled: whether it is to run.
        distribution: what it was installed with.
        place: ``module:factory``.
        summary, api_version, requires, contributes: its own words; None and empty where it was not
            imported. ``contributes`` are kinds of things.
        settings: by key of its section: ``required``, or ``default`` and the default as JSON.
        secrets: by variable: whether it is required, and whether it is set.
        details: what it contributes, by kind, each by its name.
        problems: what keeps it from running.
        doubts: what is perhaps a slip.
    """

    name: str
    enabled: bool = False
    distribution: str = ""
    place: str = ""
    summary: str = ""
    api_version: int | None = None
    requires: tuple[str, ...] = ()
    contributes: tuple[str, ...] = ()
    settings: Mapping[str, str] = NOTHING
    secrets: Mapping[str, str] = NOTHING
    details: Mapping[str, tuple[str, ...]] = NOTHING
    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def list_plugins(
    names: Sequence[str], installed: Mapping[str, Installed], problems: Sequence[Problem]
) -> list[PluginView]:
    """Every plugin: those that are enabled in their order, then the others by name.

    Only those that are enabled are imported.

    Args:
        names: what is enabled.
        installed: everything that is there.
        problems: of the whole set.
    """
    others = [name for name in sorted(installed) if name not in names]
    views: list[PluginView] = []
    for name in (*names, *others):
        enabled = name in names
        plugin = import_plugin(name, installed, []) if enabled else None
        views.append(_view(name, installed.get(name), plugin, enabled, problems))
    return views


def describe_plugin(
    name: str,
    installed: Mapping[str, Installed],
    *,
    enabled: bool,
    sections: Mapping[str, Any],
    fabric: Any,
    environ: Mapping[str, str],
    config_dir: Path,
) -> PluginView:
    """One plugin with everything that it declares; it is imported, enabled or not.

    Args:
        name: of its entry point.
        installed: everything that is there.
        enabled: whether it is to run.
        sections: the tables under ``[plugins]``.
        fabric: the section ``fabric`` of ``mcp.json``.
        environ: the environment.
        config_dir: where the configuration is.
    """
    found: list[Problem] = []
    plugin = import_plugin(name, installed, found)
    if plugin is None:
        return _view(name, installed.get(name), None, enabled, found)
    selection = select_plugins((name,), sections, fabric=fabric, environ=_without_override(environ))
    section = selection.sections.get(name)
    # What it requires counts as there: the whole set is judged elsewhere.
    names = (*plugin.requires, name)
    each, problems = examine_plugin(installed[name], plugin, names, section, environ)
    alone = [each] if each is not None else []
    view = _view(name, installed[name], plugin, enabled, problems)
    return msgspec.structs.replace(
        view,
        settings=_settings(plugin),
        secrets=_secrets(plugin, environ),
        details=_details(alone, config_dir, environ),
    )


def _without_override(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name != OVERRIDE}


def _view(
    name: str,
    entry: Installed | None,
    plugin: Plugin | None,
    enabled: bool,
    problems: Sequence[Problem],
) -> PluginView:
    mine = tuple(
        str(each)
        for each in problems
        if each.place.startswith(f"plugins.{name}")
        or f"{name!r}" in each.message.partition(" ")[0]
        or each.message.startswith(f"there is no plugin {name!r}")
        or (name == "fabric" and each.file == "mcp.json")
    )
    view = PluginView(
        name=name,
        enabled=enabled,
        distribution=entry.distribution if entry is not None else "",
        place=entry.place if entry is not None else "",
        problems=mine,
    )
    if plugin is None:
        return view
    version: Any = getattr(plugin, "api_version", None)
    return msgspec.structs.replace(
        view,
        summary=plugin.summary,
        api_version=version if isinstance(version, int) else None,
        requires=tuple(plugin.requires),
        contributes=tuple(kinds_of(plugin)),
        doubts=tuple(doubts_of(plugin)),
    )


def _settings(plugin: Plugin) -> dict[str, str]:
    shape = plugin.config_type
    if shape is None:
        return {}
    return {
        field.encode_name: "required" if field.required else f"default {_default(field)}"
        for field in msgspec.structs.fields(shape)
    }


def _default(field: msgspec.structs.FieldInfo) -> str:
    made: Any = (
        field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    )
    return msgspec.json.encode(made, enc_hook=_plain).decode()


def _plain(value: Any) -> Any:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else str(value)


def _secrets(plugin: Plugin, environ: Mapping[str, str]) -> dict[str, str]:
    return {
        secret.env: f"{'required' if secret.required else 'optional'}, "
        f"{'set' if environ.get(secret.env) else 'not set'}"
        for secret in plugin.secrets.values()
    }


def _details(
    enabled: Sequence[Enabled], config_dir: Path, environ: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    found, _ = collect_contributions(enabled, config_dir=config_dir, environ=environ)
    return _outline(found[0]) if found else {}


def _outline(found: Contributions) -> dict[str, tuple[str, ...]]:
    outline = {
        "providers": tuple(each.provider.name for each in found.providers),
        "pattern_backends": tuple(each.id for each in found.pattern_backends),
        "tool_providers": tuple(type(each).__name__ for each in found.tool_providers),
        "routes": tuple(
            f"{' '.join(each.methods) or 'ANY'} {found.prefix}{each.path}" for each in found.routes
        ),
        "health_checks": tuple(sorted(found.health_checks)),
    }
    return {kind: names for kind, names in outline.items() if names}
