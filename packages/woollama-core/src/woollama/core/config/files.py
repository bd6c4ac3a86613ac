"""Reading a configuration file: where it is, what is wrong in it, all of it at once."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from woollama.core.config.variables import expand
from woollama.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

# The standard library's modules that read files are loaded by the first file that is read: programs
# without one make up for most of this package's imports.

__all__ = ["Problem", "config_dir", "explain_value", "read_file", "read_table", "refuse"]

_NO_WORD = "Invalid enum value "

S = TypeVar("S", bound=msgspec.Struct)


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong: in which file, at which place in it, what, and what to do."""

    file: str
    place: str
    message: str

    def __str__(self) -> str:
        """``file: place: message``."""
        return ": ".join(part for part in (self.file, self.place, self.message) if part)


def refuse(problems: Iterable[Problem]) -> ConfigError:
    """The error that reports all ``problems``, for the caller to raise."""
    return ConfigError("\n".join(str(problem) for problem in problems))


def config_dir(environ: Mapping[str, str] | None = None) -> "Path":
    """``$WOOLLAMA_CONFIG_DIR``, else ``$XDG_CONFIG_HOME/woollama``, else ``~/.config/woollama``.

    An empty variable counts as unset, and so does an ``$XDG_CONFIG_HOME`` that is not absolute:
    the working directory configures nothing. Nothing is read and nothing has to exist.

    Raises:
        ConfigError: there is no home directory to look in.
    """
    from pathlib import Path

    environ = os.environ if environ is None else environ
    own = environ.get("WOOLLAMA_CONFIG_DIR")
    base = environ.get("XDG_CONFIG_HOME", "")
    try:
        if own:
            return Path(own).expanduser()
        return (Path(base) if base[:1] == "/" else Path("~/.config").expanduser()) / "woollama"
    except RuntimeError as error:
        raise ConfigError(
            f"The configuration directory {own or '~/.config'!r} cannot be found: {error}",
            hint="Set WOOLLAMA_CONFIG_DIR to its absolute path.",
        ) from error


def read_file(
    path: "Path", environ: Mapping[str, str] | None, *, named: Iterable[tuple[str, ...]] = ()
) -> dict[str, Any]:
    """A TOML or JSON file, expanded; ``{}`` when there is none.

    Args:
        path: its ending says which of the two it is.
        environ: for ``${VAR}``; None leaves every text as it is.
        named: see ``expand``.

    Raises:
        ConfigError: it cannot be read or parsed, is no table, or a variable is not set.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise refuse([Problem(str(path), "", f"cannot be read: {reason}")]) from error
    try:
        tree = _parse(text, path.suffix)
        if not isinstance(tree, dict):
            raise refuse([Problem(str(path), "", "must hold a table at the top")])
        expanded, missing = expand(cast("dict[str, Any]", tree), environ, named=named)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise refuse([Problem(str(path), "", f"is not valid {kind}: {error}")]) from error
    if missing:
        names = ", ".join(missing)
        advice = "set each, or write ${NAME:-default}"
        raise refuse([Problem(str(path), "", f"unset variables: {names}; {advice}")])
    return expanded


def _parse(text: str, suffix: str) -> Any:
    if suffix == ".toml":
        import tomllib

        return tomllib.loads(text)
    import json

    return json.loads(text, object_pairs_hook=_once) if text.strip() else {}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # TOML refuses a key that stands twice; JSON would let the last one win without a word.
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one table")
    return table


def read_table(
    raw: object, shape: type[S], *, file: str, place: str
) -> tuple[S | None, list[Problem]]:
    """One table of a file as a value, and everything that is wrong in it.

    Args:
        raw: what stands at ``place``.
        shape: the Struct that names the keys and their types.
        file: for the problems.
        place: the table's name, ``inferencers.work``.

    Returns:
        The value, None when there are problems; and the problems.
    """
    if not isinstance(raw, Mapping):
        return None, [Problem(file, place, f"must be a table, not {_kind(raw)}")]
    table = cast("Mapping[str, Any]", raw)
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    problems: list[Problem] = []
    for key, value in table.items():
        where = f"{place}.{key}" if place else key
        field = fields.get(key)
        if field is None:
            problems.append(Problem(file, where, _unknown(key, fields)))
            continue
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            problems.append(Problem(file, where, explain_value(error, field.type)))
    problems.extend(
        Problem(file, place, f"needs the key {name!r}")
        for name, field in fields.items()
        if field.required and name not in table
    )
    if problems:
        return None, problems
    try:
        return msgspec.convert(table, shape), []
    except (msgspec.ValidationError, ValueError) as error:
        return None, [Problem(file, place, explain_value(error))]


def _unknown(key: str, fields: Iterable[str]) -> str:
    from difflib import get_close_matches

    known = sorted(fields)
    near = get_close_matches(key, known, n=1)
    advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return f"unknown key; {advice}"


def explain_value(error: Exception, kind: object = None) -> str:
    """What is wrong with a value, for who wrote it.

    Args:
        error: from converting it.
        kind: what it should be; of one of a few words, they are listed.
    """
    reason, _, place = str(error).partition(" - at `$")
    inner = place.rstrip("`").lstrip(".")
    words = _words_of(kind)
    if reason.startswith(_NO_WORD) and words and not inner:
        known = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        return f"must be {known}, not {reason.removeprefix(_NO_WORD)}"
    text = reason[:1].lower() + reason[1:]
    return f"{text} (at {inner})" if inner.strip("[].") else text


def _words_of(kind: object) -> list[str]:
    """The choices of a ``Literal``, also as one part of a union."""
    if get_origin(kind) is Literal:
        return [repr(word) for word in get_args(kind)]
    return [word for part in get_args(kind) for word in _words_of(part)]


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "nothing"
