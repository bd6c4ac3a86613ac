"""Putting a key where a dialect reads it: the only place where a secret meets a request."""

from collections.abc import Mapping
from typing import assert_never

from woollama.core.errors import ConfigError
from woollama.core.wire import Bearer, Header, KeyPlace, NoKey

__all__ = ["check_key", "name_of_place", "place_key"]


def name_of_place(place: KeyPlace) -> str:
    """The word for a place in configuration: ``bearer``, or the header's name."""
    match place:
        case Bearer():
            return "bearer"
        case Header(name=name):
            return name
        case NoKey():
            return "none"
        case _:
            assert_never(place)


def check_key(key: str | None, *, owner: str) -> None:
    """Refuses a key that cannot be sent.

    Raises:
        ConfigError: it holds characters that no header can carry.
    """
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"The key of provider {owner!r} holds characters that no header can carry.",
            hint="Look for a line break in it.",
        )


def place_key(
    place: KeyPlace, headers: Mapping[str, str], key: str | None, *, owner: str
) -> dict[str, str]:
    """The headers with the key in its place; unchanged without one.

    Args:
        place: where the dialect reads it.
        headers: names in lower case.
        key: the secret; it appears in no error.
        owner: the provider's name.

    Raises:
        ConfigError: the key holds characters that no header can carry.
    """
    placed = dict(headers)
    if not key:
        return placed
    check_key(key, owner=owner)
    match place:
        case Bearer():
            placed["authorization"] = f"Bearer {key}"
        case Header(name=name):
            placed[name] = key
        case NoKey():
            pass
        case _:
            assert_never(place)
    return placed
