"""Whether JSON fits the typed dictionaries that an SDK publishes, unknown keys included.

Pydantic would do, were it not for ``Iterable``: it reads one lazily and once, so that in a union of
shapes nothing is left of it.
"""

from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

from typing_extensions import (
    get_type_hints,
    is_typeddict,
)

__all__ = ["misfits"]

_WRAPPERS = (Annotated, Required, NotRequired)


def misfits(value: Any, hint: Any, where: str = "$") -> list[str]:
    """What does not fit, each with its place; empty when everything does.

    Args:
        value: decoded JSON.
        hint: a typed dictionary, or anything that may be the type of one of its keys.
        where: the place of ``value``.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in _WRAPPERS:
        return misfits(value, args[0], where)
    if hint in (Any, object):
        return []
    if origin in (Union, UnionType):
        found = [misfits(value, option, where) for option in args]
        return [] if not all(found) else max(found, key=_depth)
    if origin is Literal:
        return [] if value in args else [f"{where}: {value!r} is none of {args}"]
    if is_typeddict(hint):
        return _in_dict(value, hint, where)
    if origin is not None and issubclass(origin, Mapping):
        return [] if isinstance(value, dict) else [f"{where}: no object"]
    if origin is not None and issubclass(origin, Iterable):
        if not isinstance(value, list):
            return [f"{where}: no list"]
        items = cast("list[Any]", value)
        return [
            fault for i, x in enumerate(items) for fault in misfits(x, args[0], f"{where}[{i}]")
        ]
    # Open files and paths, which some SDKs take too, are no JSON.
    plain = origin is None and isinstance(value, (int, float) if hint is float else hint)
    return [] if plain else [f"{where}: {value!r} is no {hint}"]


def _in_dict(value: Any, hint: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: no object"]
    raw = cast("dict[str, Any]", value)
    hints = get_type_hints(hint, include_extras=True)
    needed = [name for name, inner in hints.items() if _is_required(name, inner, hint)]
    missing = [f"{where}.{name}: missing" for name in needed if name not in raw]
    unknown = [f"{where}.{name}: unknown" for name in raw if name not in hints]
    inside = [
        fault
        for name, item in raw.items()
        if name in hints
        for fault in misfits(item, hints[name], f"{where}.{name}")
    ]
    return [*missing, *unknown, *inside]


def _is_required(name: str, inner: Any, hint: Any) -> bool:
    # Where annotations are text, a class does not know its own marks.
    mark = get_origin(inner)
    return mark is Required or (mark is not NotRequired and name in hint.__required_keys__)


def _depth(faults: list[str]) -> int:
    # Of several shapes the one that was meant is the one that fits furthest.
    return max(fault.partition(":")[0].count(".") for fault in faults)
