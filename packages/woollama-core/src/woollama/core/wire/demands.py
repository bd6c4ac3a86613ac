"""What a field of a client's body must be, with the refusal that names it when it is not."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from woollama.core.errors import RequestError

__all__ = ["a_list", "a_string", "an_object", "wrong"]


def wrong(where: str, expected: str, value: object) -> RequestError:
    """The refusal of ``value`` at ``where``, for the caller to raise."""
    return RequestError(f"{where!r} must be {expected}, not {type(value).__name__}.", param=where)


def an_object(value: object, where: str) -> Mapping[str, Any]:
    """``value``, when it is an object.

    Raises:
        RequestError: it is none.
    """
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise wrong(where, "an object", value)


def a_list(value: object, where: str) -> Sequence[Any]:
    """``value``, when it is a list.

    Raises:
        RequestError: it is none.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return cast("Sequence[Any]", value)
    raise wrong(where, "a list", value)


def a_string(raw: Mapping[str, Any], key: str, where: str) -> str:
    """The string under ``key``.

    Raises:
        RequestError: there is none.
    """
    value = raw.get(key)
    if isinstance(value, str):
        return value
    raise wrong(f"{where}.{key}", "a string", value)
