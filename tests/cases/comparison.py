"""Comparing one value with what a check says of it."""

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from msgspec import UNSET

from tests.cases.schema import Check

__all__ = ["MISSING", "compare", "dig"]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
"""Stands where there is no value."""

_TYPES: Mapping[str, type | tuple[type, ...]] = MappingProxyType(
    {"str": str, "int": int, "list": list, "dict": dict, "bool": bool, "null": type(None)}
)
_SHOWN = 300
"""So many characters of a value are shown."""


def dig(tree: Any, path: str | list[str]) -> Any:
    """What stands at a dotted path, or ``MISSING``; a number is a place in a list."""
    keys = path if isinstance(path, list) else path.split(".") if path else []
    for key in keys:
        try:
            if isinstance(tree, list):
                tree = cast("list[Any]", tree)[int(key)]
            elif isinstance(tree, dict):
                tree = cast("dict[str, Any]", tree)[key]
            else:
                return MISSING
        except (KeyError, IndexError, ValueError):
            return MISSING
    return tree


def compare(value: Any, check: Check) -> str | None:
    """Why ``value`` is not what the operators of ``check`` say; None when it is."""
    if check.exists is not UNSET and (value is not MISSING) is not check.exists:
        return f"is {_show(value)}, and exists={check.exists} was wanted"
    for name, operator in _OPERATORS.items():
        wanted = getattr(check, name)
        if wanted is UNSET:
            continue
        if value is MISSING:
            if name.startswith("not_"):
                continue
            return f"is missing, wanted {name} {_show(wanted)}"
        try:
            holds = operator(value, wanted)
        except TypeError:  # an order of things that have none
            holds = False
        if not holds:
            return f"is {_show(value)}, wanted {name.rstrip('_')} {_show(wanted)}"
    return None


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _equal(value: Any, wanted: Any) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _has_type(value: Any, wanted: str) -> bool:
    return isinstance(value, _TYPES[wanted]) and (wanted == "bool" or not isinstance(value, bool))


def _json_equal(value: Any, wanted: Any) -> bool:
    try:
        return json.loads(value) == wanted
    except (TypeError, ValueError):
        return False


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "equals": _equal,
        "not_equals": lambda value, wanted: value != wanted,
        "contains": lambda value, wanted: wanted in _text(value),
        "not_contains": lambda value, wanted: wanted not in _text(value),
        "matches": lambda value, wanted: re.search(wanted, _text(value)) is not None,
        "not_matches": lambda value, wanted: re.search(wanted, _text(value)) is None,
        "in_": lambda value, wanted: value in wanted,
        "type": _has_type,
        "len": lambda value, wanted: len(value) == wanted,
        "min": lambda value, wanted: value >= wanted,
        "max": lambda value, wanted: value <= wanted,
        "json_equals": _json_equal,
    }
)
