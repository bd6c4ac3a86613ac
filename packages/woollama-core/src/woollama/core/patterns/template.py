"""``{{name}}`` in a prompt: which names there are, and their values put in, once.

There is no template language. A token is two braces, a name without braces, two braces; the name is
the exact text between them, spaces included. A token without a value stays as it is, and a value is
never read again, so one that holds ``{{other}}`` brings no further substitution (RU-44, P-40).
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from woollama.core.errors import RequestError

__all__ = ["fill", "value_text", "variables_of"]

_TOKEN = re.compile(r"\{\{([^{}]++)\}\}")


def variables_of(text: str) -> tuple[str, ...]:
    """The names of the tokens in ``text``, each once, in the order in which they are first seen."""
    return tuple(dict.fromkeys(_TOKEN.findall(text)))


def fill(text: str, values: Mapping[str, Any]) -> str:
    """``text`` with every token that has a value replaced by it, all in one pass.

    Args:
        text: the prompt; not changed but for its tokens, line ends and all.
        values: by token name; see ``value_text``.

    Raises:
        RequestError: a value has no JSON form.
    """

    def replaced(token: re.Match[str]) -> str:
        name = token[1]
        return value_text(values[name], name) if name in values else token[0]

    return _TOKEN.sub(replaced, text)


def value_text(value: Any, name: str) -> str:
    """A value as it is put in: text as it is, anything else as JSON.

    Args:
        value: JSON.
        name: the variable's, for the error.

    Raises:
        RequestError: it has no JSON form.
    """
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(
            f"The variable {name!r} must be text or JSON: {error}.", param=f"variables.{name}"
        ) from error
