r"""The environment as settings: the file ``.env``, and the variables ``WOOLLAMA_SECTION__KEY``.

The grammar of ``.env`` is small and strict: one ``NAME=value`` a line, ``export`` before it if you
like, comments behind ``#``. A value is bare, in single quotes (taken as it is) or in double quotes
(``\n``, ``\t``, ``\"``, ``\\`` are read). Nothing is expanded. What does not fit is refused by
its line: a key that is half read is worse than a daemon that does not start.
"""

import re
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from woollama.core.canonical.value import Value
from woollama.core.config.files import Problem, config_dir, refuse

__all__ = [
    "Override",
    "check_environment",
    "find_overrides",
    "literal",
    "parse_env",
    "read_environment",
]

_ASSIGNMENT = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\[nrt"\\])*)"')
_BARE = re.compile(r"([^\s'\"#]*(?:[ \t]+[^\s'\"#]+)*)")
_REST = re.compile(r"(?:[ \t]+#.*|[ \t]*)")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = MappingProxyType({"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"})


class Override(Value, frozen=True, kw_only=True):
    """One variable that sets a key.

    Attributes:
        variable: its name, ``WOOLLAMA_SERVER__LOG_FORMAT``.
        path: the key's path in lower case, ``("server", "log_format")``.
        text: its value; may be a secret.
    """

    variable: str
    path: tuple[str, ...]
    text: str


def read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` over what ``<config dir>/.env`` sets; a missing file sets nothing (RU-3).

    The file cannot move the configuration directory that it was found in.

    Raises:
        ConfigError: the file cannot be read, or every line of it that is wrong.
    """
    merged, problems = check_environment(environ)
    if problems:
        raise refuse(problems)
    return merged


def check_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """As ``read_environment``, with what is wrong returned beside what could be read."""
    path = config_dir(environ) / ".env"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return dict(environ), []
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return dict(environ), [Problem(str(path), "", f"cannot be read: {reason}")]
    given, problems = parse_env(text, file=str(path))
    for name in ("WOOLLAMA_CONFIG_DIR", "XDG_CONFIG_HOME"):
        given.pop(name, None)
    return {**given, **environ}, problems


def parse_env(text: str, *, file: str) -> tuple[dict[str, str], list[Problem]]:
    """The assignments of a ``.env`` text, and what is wrong with it, without values."""
    given: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        place = f"line {number}"
        assignment = _ASSIGNMENT.fullmatch(stripped)
        if assignment is None:
            problems.append(Problem(file, place, "must be NAME=value"))
            continue
        name, raw = assignment[1], assignment[2]
        value = _value(raw)
        if value is None:
            advice = "put a value with quotes or # in it between single quotes, on one line"
            problems.append(
                Problem(file, place, f"{name} has a value that cannot be read; {advice}")
            )
        elif name in given:
            problems.append(Problem(file, place, f"{name} is set twice; remove one"))
        else:
            given[name] = value
    return given, problems


def _value(raw: str) -> str | None:
    form = {"'": _SINGLE, '"': _DOUBLE}.get(raw[:1], _BARE)
    found = form.match(raw)
    if found is None or _REST.fullmatch(raw, found.end()) is None:
        return None
    if form is _DOUBLE:
        return _ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], found[1])
    return found[1]


def find_overrides(environ: Mapping[str, str]) -> list[Override]:
    """Every variable ``WOOLLAMA_SECTION__KEY`` that is not empty, in the order of their names."""
    return [
        Override(variable=name, path=tuple(name[9:].lower().split("__")), text=environ[name])
        for name in sorted(environ)
        if name.startswith("WOOLLAMA_") and "__" in name[9:] and environ[name]
    ]


def literal(text: str) -> Any:
    """A variable's text where the key's type is not known: a TOML value if it is one, else text."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text
