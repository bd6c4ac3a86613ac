"""The arguments of a call as the model wrote them: an object, or what is wrong with them."""

from typing import Any, cast

import msgspec

__all__ = ["WrongArguments", "read_arguments"]

_QUOTED_CHARACTERS = 300


class WrongArguments(ValueError):
    """They are no JSON object; the message says why and quotes them."""


def read_arguments(text: str) -> dict[str, Any]:
    """The object that ``text`` is; nothing at all is the empty one.

    Raises:
        WrongArguments: it is not JSON, or JSON of another kind.
    """
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise WrongArguments(f"not valid JSON ({error}): {_quoted(text)}") from error
    except (UnicodeError, RecursionError) as error:
        raise WrongArguments(f"not valid JSON: {_quoted(text)}") from error
    if not isinstance(value, dict):
        raise WrongArguments(f"not a JSON object: {_quoted(text)}")
    return cast("dict[str, Any]", value)


def _quoted(text: str) -> str:
    if len(text) <= _QUOTED_CHARACTERS:
        return text
    return f"{text[:_QUOTED_CHARACTERS]}… ({len(text)} characters)"
