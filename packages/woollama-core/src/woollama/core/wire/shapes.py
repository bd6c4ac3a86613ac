"""Foreign JSON looked at without trust: what is not what it should be is absent."""

from collections.abc import Mapping
from typing import Any, cast

from woollama.core.canonical import NOTHING

__all__ = ["count_in", "list_in", "mapping_in", "object_of", "text_in"]


def object_of(value: object) -> Mapping[str, Any]:
    """``value`` when it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else NOTHING


def mapping_in(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under ``key``, else an empty one."""
    return object_of(raw.get(key))


def list_in(raw: Mapping[str, Any], key: str) -> list[Any]:
    """The list under ``key``, else an empty one."""
    value = raw.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_in(raw: Mapping[str, Any], key: str) -> str:
    """The text under ``key``; null and everything else is no text."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def count_in(raw: Mapping[str, Any], key: str) -> int | None:
    """The whole number under ``key``; true and false are none."""
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
