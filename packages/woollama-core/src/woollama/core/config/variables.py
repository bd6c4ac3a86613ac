"""``${VAR}`` and ``${VAR:-default}`` in the string values of a parsed file.

Expansion comes after parsing, so a value is data: it cannot add a table or break the file. Names
of tables and keys are never expanded.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

__all__ = ["expand"]

_REFERENCE = re.compile(r"\$\{([^}]*)\}")


def expand(
    tree: Mapping[str, Any],
    environ: Mapping[str, str] | None,
    *,
    named: Iterable[tuple[str, ...]] = (),
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Expands a tree and says what is missing.

    A default ends at the first ``}`` and also stands in for an empty value; ``${}`` is empty;
    ``$V`` and an unclosed ``${`` are left as they are. Keys that begin with ``_`` are notes: they
    and what is under them are left out, except where people choose the names.

    Args:
        tree: a parsed TOML or JSON document.
        environ: the environment; None leaves every text as it is.
        named: the tables whose keys people choose, as paths with ``*`` for any key; ``**`` at the
            end is everything below.

    Returns:
        The expanded tree, and the names of the unset variables that have no default, in the order
        of their first use.
    """
    missing: dict[str, None] = {}
    names = tuple(named)

    def text(value: str) -> str:
        if environ is None:
            return value
        known = environ
        return _REFERENCE.sub(lambda found: _value(found[1], known, missing), value)

    def walk(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, Mapping):
            chosen = any(_under(path, pattern) for pattern in names)
            items = cast("Mapping[str, Any]", value).items()
            return {
                key: walk(inner, (*path, key))
                for key, inner in items
                if chosen or not key.startswith("_")
            }
        if isinstance(value, list):
            return [walk(inner, path) for inner in cast("list[Any]", value)]
        return value

    return walk(tree, ()), tuple(missing)


def _value(reference: str, environ: Mapping[str, str], missing: dict[str, None]) -> str:
    name, has_default, default = reference.partition(":-")
    value = environ.get(name)
    if has_default:
        return value or default
    if value is None and name:
        missing[name] = None
    return value or ""


def _under(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if pattern[-1:] == ("**",):
        pattern = pattern[:-1]
        path = path[: len(pattern)]
    pairs = zip(path, pattern, strict=False)
    return len(path) == len(pattern) and all(want in {"*", part} for part, want in pairs)
