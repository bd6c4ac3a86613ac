"""What a plugin contributes, as one value."""

from collections.abc import Mapping, Sequence

from woollama.core.canonical import NOTHING, Value
from woollama.core.patterns import PatternBackend
from woollama.core.tools import ToolProvider
from woollama.server.plugins.contract import (
    HealthCheck,
    Plugin,
    PluginContext,
    PluginRoute,
    ProvidedProvider,
)
from woollama.server.plugins.installed import Enabled

__all__ = ["KINDS", "Contributions", "contributions_of", "kinds_of", "needed_for_models"]

KINDS = ("providers", "pattern_backends", "tool_providers", "routes", "health_checks")
"""The methods of ``Plugin`` that contribute something."""


class Contributions(Value, frozen=True, kw_only=True):
    """Everything one plugin brings.

    Attributes:
        name: the plugin's.
        prefix: what stands before the paths of its routes.
        providers, pattern_backends, tool_providers, routes, health_checks: see ``Plugin``.
    """

    name: str
    prefix: str
    providers: tuple[ProvidedProvider, ...] = ()
    pattern_backends: tuple[PatternBackend, ...] = ()
    tool_providers: tuple[ToolProvider, ...] = ()
    routes: tuple[PluginRoute, ...] = ()
    health_checks: Mapping[str, HealthCheck] = NOTHING


def contributions_of(enabled: Enabled, context: PluginContext) -> Contributions:
    """Asks a plugin what it brings."""
    plugin = enabled.plugin
    return Contributions(
        name=plugin.name,
        # Ours have the prefixes that their clients expect (RU-50).
        prefix=f"/{plugin.name}" if enabled.bundled else f"/x/{plugin.name}",
        providers=tuple(plugin.providers(context)),
        pattern_backends=tuple(plugin.pattern_backends(context)),
        tool_providers=tuple(plugin.tool_providers(context)),
        routes=tuple(plugin.routes(context)),
        health_checks=dict(plugin.health_checks(context)),
    )


def kinds_of(plugin: Plugin) -> list[str]:
    """The kinds of things a plugin contributes, told without asking it."""
    return [kind for kind in KINDS if getattr(type(plugin), kind) is not getattr(Plugin, kind)]


def needed_for_models(enabled: Sequence[Enabled]) -> tuple[Enabled, ...]:
    """Those that a request to a model can need: they bring providers, or others require them.

    One that contributes nothing stays too: its whole work is in its setup.
    """
    wanted: set[str] = set()
    kept: list[Enabled] = []
    # What a plugin requires stands before it.
    for each in reversed(enabled):
        kinds = kinds_of(each.plugin)
        if each.plugin.name in wanted or not kinds or "providers" in kinds:
            wanted.update(each.plugin.requires)
            kept.append(each)
    return tuple(reversed(kept))
