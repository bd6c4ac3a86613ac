"""Everything that is wrong in the configuration, from all files at once; connects to nothing.

Each file is checked by those who read it. Here is what only all of them together show, and what
one fault would hide: a file with an unset variable is read on with a stand-in for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from woollama.core.canonical import Value
from woollama.core.config.files import Problem, config_dir, read_file
from woollama.core.config.variables import expand
from woollama.core.directory import OWN_NAMESPACE
from woollama.core.errors import ConfigError
from woollama.core.providers import Provider
from woollama.core.providers.configured import NAMED_TABLES, check_inferencers
from woollama.core.recipes import check_recipes
from woollama.server.bundled.servers import BUNDLED
from woollama.server.cli.loose_ends import LooseEnds
from woollama.server.environment import check_environment
from woollama.server.layers import Layers
from woollama.server.mcp.config import McpConfig, check_mcp
from woollama.server.plugins.checks import collect_contributions
from woollama.server.plugins.loader import check_plugins
from woollama.server.sections import SECTIONS, PluginKeys, TopSettings
from woollama.server.settings import check_settings

__all__ = ["FILES", "Findings", "check_all"]

FILES = ("woollama.toml", "inferencers.toml", "recipes.toml", "mcp.json", ".env")

_STAND_IN = "http://unset.invalid"
_SETTINGS, _INFERENCERS, _RECIPES, _MCP = FILES[:4]


class Findings(Value, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        folder: where the files are.
        problems: what is wrong, file by file.
        warnings: what is perhaps not meant.
        providers: those that ``inferencers.toml`` configures.
    """

    folder: Path
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    providers: tuple[Provider, ...]


def check_all(environ: Mapping[str, str]) -> Findings:
    """Reads every file of the configuration directory that ``environ`` names."""
    folder = config_dir(environ)
    known, _ = check_environment(environ)
    mcp, in_mcp = check_mcp(folder / _MCP, known)
    filled, unset = _fill(folder, known)
    providers, in_inferencers = check_inferencers(folder / _INFERENCERS, filled)
    _, in_settings = check_settings(filled)
    layers = Layers(SECTIONS)
    layers.add_file(folder / _SETTINGS, filled)
    layers.add_environment(filled)
    names, servers, in_plugins = _check_plugins(layers, folder, filled, mcp, providers)
    _, in_recipes = check_recipes(folder / _RECIPES)
    names.update(_names_in(folder / _INFERENCERS, "inferencers"))
    servers.update(_names_in(folder / _MCP, "mcpServers"))
    loose = LooseEnds(names, None if _broken(folder / _MCP) else servers)
    if not _broken(folder / _INFERENCERS):
        in_recipes.extend(loose.of_recipes(_tree(folder / _RECIPES), str(folder / _RECIPES)))
        in_settings.extend(_of_default_model(loose, layers, folder / _SETTINGS))
    own = set(_names_in(folder / _INFERENCERS, "inferencers"))
    found = [*in_settings, *in_plugins, *in_inferencers, *in_recipes, *in_mcp]
    return Findings(
        folder=folder,
        problems=_by_file([*unset, *_without_stand_ins(found, folder, known)], folder),
        warnings=(*mcp.warnings, *_missing_folder(folder / _RECIPES)),
        providers=tuple(each for each in providers if each.name in own),
    )


def _by_file(problems: Iterable[Problem], folder: Path) -> tuple[Problem, ...]:
    """Sorted, and each with its file: that of a file which cannot be read is in the message."""
    files = [str(folder / name) for name in FILES]
    named: list[Problem] = []
    for problem in problems:
        start, _, rest = problem.message.partition(": ")
        whose = Problem(start, "", rest) if not problem.file and start in files else problem
        named.append(whose)
    order = {file: place for place, file in enumerate(files)}
    return tuple(sorted(named, key=lambda each: order.get(each.file, len(order))))


# Unset variables


def _fill(folder: Path, environ: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The environment with a stand-in for every unset variable, and the problems that they are."""
    filled = dict(environ)
    problems: list[Problem] = []
    for name, named in ((_SETTINGS, ()), (_INFERENCERS, NAMED_TABLES)):
        _, missing = expand(_tree(folder / name), environ, named=named)
        if missing:
            advice = "set each, or write ${NAME:-default}"
            message = f"unset variables: {', '.join(missing)}; {advice}"
            problems.append(Problem(str(folder / name), "", message))
            filled |= dict.fromkeys(missing, _STAND_IN)
    return filled, problems


def _without_stand_ins(
    problems: Iterable[Problem], folder: Path, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Without what is wrong only because of a stand-in."""
    tables = cast("Mapping[str, Any]", _tree(folder / _INFERENCERS).get("inferencers") or {})
    spoilt = {
        f"inferencers.{name}" for name, table in tables.items() if expand({"": table}, environ)[1]
    }
    for problem in problems:
        if _STAND_IN not in problem.message and problem.place not in spoilt:
            yield problem


# Files as they stand


def _tree(path: Path) -> dict[str, Any]:
    """A file as it stands; empty when it cannot be read, which others report."""
    try:
        return read_file(path, None)
    except ConfigError:
        return {}


def _broken(path: Path) -> bool:
    """Whether nothing can be said of what it holds."""
    try:
        read_file(path, None)
    except ConfigError:
        return True
    return False


def _names_in(path: Path, table: str) -> list[str]:
    held = _tree(path).get(table)
    return list(cast("Mapping[str, Any]", held)) if isinstance(held, Mapping) else []


# Plugins, and what they bring


def _check_plugins(
    layers: Layers,
    folder: Path,
    environ: Mapping[str, str],
    mcp: McpConfig,
    providers: Iterable[Provider],
) -> tuple[set[str], set[str], list[Problem]]:
    """The names of all providers, of everything that has tools, and what is wrong."""
    names = {provider.name for provider in providers}
    servers = {server.name for server in (*mcp.servers, *BUNDLED)}
    loaded, problems = check_plugins(
        layers.value("plugins", PluginKeys).enabled,
        layers.plugins,
        fabric=mcp.fabric,
        environ=environ,
        config_dir=folder,
        taken=names,
        servers=[server.name for server in mcp.servers],
    )
    for each in collect_contributions(loaded, config_dir=folder, environ=environ)[0]:
        names.update(provided.provider.name for provided in each.providers)
        if each.tool_providers:
            servers.add(each.name)
    places = {problem.file: problem.file for problem in problems}
    for name in (_SETTINGS, _MCP):
        places[name] = str(folder / name)
    return names, servers, [Problem(places[p.file], p.place, p.message) for p in problems]


# What is named and is not there


def _of_default_model(loose: LooseEnds, layers: Layers, path: Path) -> Iterator[Problem]:
    model = layers.value("", TopSettings).default_model
    if model is None:
        # Beside a fault in the file nothing of it is in the layers.
        yield from loose.of_model(_tree(path).get("default_model"), str(path), "default_model")
    elif not model.startswith((_STAND_IN, f"{OWN_NAMESPACE}/")):
        for problem in loose.of_model(model, "", ""):
            # They know which of file and environment has said it.
            layers.wrong("", "default_model", problem.message)
            yield layers.problems[-1]


def _missing_folder(path: Path) -> Iterator[Problem]:
    # It may be missing: it is looked at anew with every question. Most often it is a slip.
    given = check_recipes(path)[0].patterns_dir
    if given is not None and not given.is_dir():
        yield Problem(str(path), "patterns.dir", f"there is no folder {str(given)!r}")
