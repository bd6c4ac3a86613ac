"""The plugins as a set, checked before anything of them runs (P-61).

What they contribute is asked for with a context that can do nothing, so that a plugin which works
too early is found out here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import msgspec

from woollama.core.config.files import Problem
from woollama.core.errors import WoollamaError
from woollama.server.plugins.contract import (
    SUPPORTED_PLUGIN_API_VERSIONS,
    Plugin,
    PluginContext,
    SecretText,
)
from woollama.server.plugins.contributions import Contributions, contributions_of
from woollama.server.plugins.installed import FILE, Enabled
from woollama.server.plugins.names import why_no_name

__all__ = [
    "check_contributions",
    "check_declaration",
    "collect_contributions",
    "doubts_of",
    "secrets_of",
]

_METHOD = re.compile(r"[A-Z]+")


def check_declaration(
    name: str, plugin: Plugin, names: Sequence[str], *, bundled: bool
) -> list[Problem]:
    """What a plugin says of itself, against what is enabled.

    Args:
        name: of its entry point.
        plugin: imported, not run.
        names: everything that is enabled, in order.
        bundled: whether it is ours.
    """
    problems: list[Problem] = []

    def wrong(message: str) -> None:
        problems.append(Problem(FILE, "plugins.enabled", f"{name!r} {message}"))

    bad_name = why_no_name(name, bundled=bundled)
    if bad_name is not None:
        wrong(bad_name)
    own = getattr(plugin, "name", None)
    if own != name:
        wrong(f"calls itself {own!r}; its entry point and its name must be one word")
    known = ", ".join(map(str, sorted(SUPPORTED_PLUGIN_API_VERSIONS)))
    version = getattr(plugin, "api_version", None)
    if version is None:
        wrong(f"states no plugin API version: set api_version = {known}")
    elif version not in SUPPORTED_PLUGIN_API_VERSIONS:
        advice = f"this woollama has {known}; install a version of the plugin that fits"
        wrong(f"states the plugin API version {version!r}; {advice}")
    _check_requires(name, plugin, names, wrong)
    shape = cast("object", plugin.config_type)
    if shape is not None and not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
        wrong("has a config_type that is no msgspec.Struct")
    return problems


def _check_requires(
    name: str, plugin: Plugin, names: Sequence[str], wrong: Callable[[str], None]
) -> None:
    for other in plugin.requires:
        if other not in names:
            wrong(f"requires {other!r}: add it to enabled, before {name!r}")
        elif names.index(other) > names.index(name):
            order = [each for each in names if each != other]
            order.insert(order.index(name), other)
            listed = ", ".join(f'"{each}"' for each in order)
            wrong(f"requires {other!r} before it: write enabled = [{listed}]")


def secrets_of(
    plugin: Plugin, environ: Mapping[str, str], problems: list[Problem]
) -> dict[str, SecretText]:
    """The declared secrets that are set; a required one that is not is a problem."""
    found: dict[str, SecretText] = {}
    for key, secret in plugin.secrets.items():
        value = environ.get(secret.env, "")
        if value:
            found[key] = SecretText(value)
        elif secret.required:
            what = f" ({secret.help})" if secret.help else ""
            message = f"{plugin.name!r} needs the variable {secret.env}{what}: set it"
            problems.append(Problem("environment", secret.env, message))
    return found


def doubts_of(plugin: Plugin) -> list[str]:
    """What is perhaps a slip: public names that nothing calls and that look like ours."""
    ours = {name for name in vars(Plugin) if not name.startswith("_")}
    ours |= set(Plugin.__annotations__)
    own = {name for name in dir(type(plugin)) if not name.startswith("_")} - ours
    found: list[str] = []
    for name in sorted(own):
        near = get_close_matches(name, ours, n=1, cutoff=0.8)
        if near:
            found.append(f"{name!r} is not called by anything; did you mean {near[0]!r}?")
    return found


class _Idle:
    """Stands in the check for what does work: it may be kept, and does nothing."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"context.{self._what}.{name} is used before setup")


def collect_contributions(
    enabled: Sequence[Enabled], *, config_dir: Path, environ: Mapping[str, str]
) -> tuple[list[Contributions], list[Problem]]:
    """What plugins bring, told without running any; and those that cannot tell it.

    Args:
        enabled: those whose own declarations are right.
        config_dir: where the configuration is.
        environ: the environment.
    """
    found: list[Contributions] = []
    problems: list[Problem] = []
    for each in enabled:
        context = PluginContext(
            config=each.config,
            config_dir=config_dir,
            transport=cast("Any", _Idle("transport")),
            tasks=cast("Any", _Idle("tasks")),
            notice=_silent,
            secrets=secrets_of(each.plugin, environ, []),
            environ=environ,
        )
        try:
            found.append(contributions_of(each, context))
        except WoollamaError as error:
            problems.append(_problem(each.plugin.name, str(error)))
        except Exception as error:  # noqa: BLE001 - code of others may raise anything
            reason = f"{type(error).__name__}: {error}"
            message = f"cannot say what it contributes ({reason}); that does no work before setup"
            problems.append(_problem(each.plugin.name, message))
    return found, problems


def check_contributions(
    found: Sequence[Contributions], *, taken: Iterable[str] = (), servers: Iterable[str] = ()
) -> list[Problem]:
    """Collisions between what the plugins bring, and with what is there already.

    Args:
        found: what each brings.
        taken: names of providers that exist.
        servers: names of MCP servers, whose tools begin with them.
    """
    problems = [
        *_provider_collisions(found, taken),
        *_backend_collisions(found),
        *_tool_collisions(found, servers),
    ]
    for each in found:
        problems.extend(_route_problems(each))
    return problems


def _silent(_line: str) -> None:
    pass


def _problem(name: str, message: str) -> Problem:
    return Problem(FILE, f"plugins.{name}", message)


def _provider_collisions(
    everything: Sequence[Contributions], taken: Iterable[str]
) -> Iterable[Problem]:
    owners = dict.fromkeys(taken, "of inferencers.toml, or built in")
    for each in everything:
        for provided in each.providers:
            name = provided.provider.name
            if name in owners:
                message = f"its provider {name!r} is already there, {owners[name]}: rename one"
                yield _problem(each.name, message)
            else:
                owners[name] = f"of the plugin {each.name!r}"


def _backend_collisions(everything: Sequence[Contributions]) -> Iterable[Problem]:
    owners: dict[str, str] = {}
    for each in everything:
        for backend in each.pattern_backends:
            id = backend.id
            if id != each.name and not id.startswith(f"{each.name}-"):
                message = f"its pattern backend {id!r} must be called {each.name!r}, or begin so"
                yield _problem(each.name, f"{message} with a '-' behind")
            elif id in owners:
                message = f"its pattern backend {id!r} is already there, {owners[id]}: rename one"
                yield _problem(each.name, message)
            else:
                owners[id] = f"of the plugin {each.name!r}"


def _tool_collisions(
    everything: Sequence[Contributions], servers: Iterable[str]
) -> Iterable[Problem]:
    named = set(servers)
    for each in everything:
        if each.tool_providers and each.name in named:
            message = "its tools would be named as those of the MCP server of this name: rename it"
            yield _problem(each.name, f"{message} in mcp.json")


def _route_problems(each: Contributions) -> Iterable[Problem]:
    seen: set[tuple[str, str]] = set()
    for route in each.routes:
        path = route.path
        if not path.startswith("/") or "//" in path or ".." in path.split("/"):
            message = f"its route {path!r} must begin with one '/', and have no '..' in it"
            yield _problem(each.name, message)
        for method in route.methods:
            if _METHOD.fullmatch(method) is None:
                yield _problem(each.name, f"its route {path!r} has the method {method!r}: GET, …")
            if (method, path) in seen:
                yield _problem(each.name, f"its route {method} {path} is there twice")
            seen.add((method, path))
