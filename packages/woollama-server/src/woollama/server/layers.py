"""One value of each key from file, environment and command line, and where it came from."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec

from woollama.core.canonical.value import Value
from woollama.core.config.files import Problem, explain_value, read_file, read_table
from woollama.core.errors import ConfigError
from woollama.server.environment import Override, find_overrides, literal

__all__ = ["Layers"]

V = TypeVar("V", bound=Value)

_SHORT = MappingProxyType({"WOOLLAMA_ADDRESS": ("server", "address")})
"""Variables with a name of their own for a key."""

_TRUE = frozenset({"1", "on", "true", "yes"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Layers:
    """Collects values, the highest layer last; every wrong one becomes a problem.

    Attributes:
        problems: what is wrong so far.
        plugins: the raw sections ``[plugins.<name>]`` by name.
    """

    def __init__(self, sections: Mapping[str, type[Value]]) -> None:
        """``sections``: by table name the shape of its keys; ``""`` is the top of the file."""
        self._sections = sections
        self._values: dict[str, dict[str, Any]] = {name: {} for name in sections}
        self._places: dict[tuple[str, str], tuple[str, str]] = {}
        self.problems: list[Problem] = []
        self.plugins: dict[str, dict[str, Any]] = {}

    def value(self, section: str, shape: type[V]) -> V:
        """The section's value: what was given, over the defaults."""
        return shape(**self._values[section])

    def wrong(self, section: str, key: str, message: str) -> None:
        """Reports a value that only looked right, at the place that gave it."""
        dotted = f"{section}.{key}" if section else key
        file, place = self._places.get((section, key), ("", dotted))
        self.problems.append(Problem(file, place, message))

    def _set(self, section: str, key: str, value: Any, file: str, place: str) -> None:
        self._values[section][key] = value
        self._places[section, key] = (file, place)

    # The file

    def add_file(self, path: Path, environ: Mapping[str, str]) -> None:
        """The lowest layer: a TOML file, which need not exist."""
        file = str(path)
        try:
            tree = read_file(path, environ)
        except ConfigError as error:
            self.problems.append(Problem("", "", error.message))
            return
        top = {key: value for key, value in tree.items() if key not in self._sections}
        for name in [key for key, value in top.items() if isinstance(value, Mapping)]:
            del top[name]
            advice = _near(name, filter(None, self._sections))
            self.problems.append(Problem(file, name, f"unknown table; {advice}"))
        self._add_table("", top, file)
        for name in self._sections:
            if name and name in tree:
                self._add_table(name, tree[name], file)

    def _add_table(self, section: str, raw: object, file: str) -> None:
        shape = self._sections[section]
        if section == "plugins" and isinstance(raw, Mapping):
            raw = self._take_plugins(cast("Mapping[str, Any]", raw))
        value, problems = read_table(raw, shape, file=file, place=section)
        self.problems.extend(problems)
        if value is None:
            return
        for key in cast("Mapping[str, Any]", raw):
            place = f"{section}.{key}" if section else key
            self._set(section, key, getattr(value, key), file, place)

    def _take_plugins(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        for name, value in raw.items():
            if isinstance(value, Mapping):
                self.plugins[name] = dict(cast("Mapping[str, Any]", value))
            else:
                keys[name] = value
        return keys

    # The environment

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """The middle layer; an empty variable counts as unset."""
        tops = {f"WOOLLAMA_{field.upper()}": ("", field) for field in self._keys("")}
        named: dict[str, tuple[str, ...]] = {**tops, **_SHORT}
        short = [
            Override(variable=variable, path=path, text=environ[variable])
            for variable, path in named.items()
            if environ.get(variable)
        ]
        for override in [*find_overrides(environ), *short]:
            self._add_override(override)

    def _add_override(self, override: Override) -> None:
        section, *keys = override.path
        if section == "plugins" and keys and keys != ["enabled"]:
            self._add_plugin_key(override, keys)
            return
        problem = self._unknown(section, keys)
        if problem:
            self._refuse(override.variable, problem)
            return
        key = keys[0]
        try:
            value = self._read(override.text, self._keys(section)[key])
        except msgspec.ValidationError as error:
            self._refuse(override.variable, explain_value(error, self._keys(section)[key]))
            return
        file, earlier = self._places.get((section, key), ("", ""))
        if file == "environment" and self._values[section][key] != value:
            self._refuse(override.variable, f"and {earlier} say different things; unset one")
            return
        self._set(section, key, value, "environment", override.variable)

    def _unknown(self, section: str, keys: list[str]) -> str:
        if section not in self._sections:
            known = sorted(name for name in self._sections if name)
            return f"there is no section {section!r}; {_near(section, known)}"
        if len(keys) != 1 or keys[0] not in self._keys(section):
            name = "__".join(keys)
            return f"section {section!r} has no key {name!r}; {_near(name, self._keys(section))}"
        return ""

    def _add_plugin_key(self, override: Override, keys: list[str]) -> None:
        # Names of plugins have hyphens, names of variables cannot.
        name = keys[0].replace("_", "-")
        if len(keys) < 2 or not all(keys):
            self._refuse(override.variable, "must name a key: WOOLLAMA_PLUGINS__NAME__KEY")
            return
        table = self.plugins.setdefault(name, {})
        for part in keys[1:-1]:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                self._refuse(override.variable, f"{part!r} is not a table")
                return
            table = cast("dict[str, Any]", inner)
        table[keys[-1]] = literal(override.text)

    def _refuse(self, variable: str, message: str) -> None:
        self.problems.append(Problem("environment", variable, message))

    def _keys(self, section: str) -> dict[str, Any]:
        return {field.name: field.type for field in msgspec.structs.fields(self._sections[section])}

    def _read(self, text: str, kind: Any) -> Any:
        if get_origin(kind) is tuple:
            parts = tuple(part.strip() for part in text.split(",") if part.strip())
            return msgspec.convert(parts, kind)
        if kind is bool or bool in get_args(kind):
            word = text.strip().lower()
            return msgspec.convert(word in _TRUE if word in _TRUE | _FALSE else text, kind)
        return msgspec.convert(text, kind, strict=False)

    # The command line

    def add_flags(self, flags: Mapping[str, Any]) -> None:
        """The highest layer, by ``section.key``; None is not given."""
        for dotted, value in flags.items():
            if value is None:
                continue
            section, _, key = dotted.rpartition(".")
            problem = self._unknown(section, [key])
            if problem:
                self.problems.append(Problem("command line", dotted, problem))
                continue
            try:
                checked = msgspec.convert(value, self._keys(section)[key])
            except msgspec.ValidationError as error:
                reason = explain_value(error, self._keys(section)[key])
                self.problems.append(Problem("command line", dotted, reason))
                continue
            self._set(section, key, checked, "command line", dotted)


def _near(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
