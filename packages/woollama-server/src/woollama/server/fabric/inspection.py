"""What is looked at of a body on its way to fabric: names that could be paths, and variables.

It must be read as fabric reads it, or what is checked is not what is used. Go takes field names in
any case and stops at the end of the first JSON value; what it makes of a field that stands twice
depends on its version, so that is refused.
"""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

from woollama.core.canonical import NOTHING, Value
from woollama.core.errors import RequestError
from woollama.server.fabric.wire import path_like

__all__ = ["Prompt", "read_apply", "read_chat"]

_NAMES = MappingProxyType(
    {
        "patternname": "patternName",
        "contextname": "contextName",
        "sessionname": "sessionName",
        "strategyname": "strategyName",
    }
)


class Prompt(Value, frozen=True, kw_only=True):
    """What counts of one prompt: its pattern and its variables."""

    pattern: str = ""
    variables: Mapping[str, str] = NOTHING


class _Pairs(list[tuple[str, Any]]):
    """An object with all its pairs, repeated ones too."""


_decoder = json.JSONDecoder(object_pairs_hook=_Pairs, strict=False)


def read_chat(body: bytes) -> list[Prompt]:
    """The prompts of a ``/chat`` body; one of another shape has none, and fabric says so.

    Raises:
        RequestError: it is not JSON, a field stands twice, or a name in it is a path.
    """
    prompts = _fields(_parse(body), ("prompts",)).get("prompts")
    if not isinstance(prompts, list):
        return []
    return [_prompt(prompt) for prompt in cast("list[Any]", prompts)]


def _prompt(raw: Any) -> Prompt:
    fields = _fields(raw, (*_NAMES, "variables"))
    for key, name in _NAMES.items():
        value = fields.get(key)
        if isinstance(value, str) and value and path_like(value):
            raise RequestError(f"{name} must be a name, not a path: {value[:80]!r}.", param=name)
    pattern = fields.get("patternname")
    return Prompt(
        pattern=pattern if isinstance(pattern, str) else "",
        variables=_texts(fields.get("variables")),
    )


def read_apply(body: bytes, pattern: str, query: Iterable[tuple[str, str]]) -> Prompt:
    """What an ``apply`` fills in.

    Args:
        body: of the request.
        pattern: from its path.
        query: the pairs of its query; variables as well, under those of the body.

    Raises:
        RequestError: the body is not JSON, or a field or a variable stands twice.
    """
    given = _once(query)
    fields = _fields(_parse(body), ("variables",)) if body.strip() else {}
    return Prompt(pattern=pattern, variables={**given, **_texts(fields.get("variables"))})


def _parse(body: bytes) -> Any:
    try:
        # What follows the first value is not looked at, as in fabric.
        value, _ = _decoder.raw_decode(body.decode("utf-8", "replace").lstrip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"The body is not JSON: {error}.") from error
    return value


def _fields(value: Any, known: Iterable[str]) -> dict[str, Any]:
    """The known fields of an object, under their names in lower case; nothing of anything else."""
    if not isinstance(value, _Pairs):
        return {}
    wanted = set(known)
    return _once((key.casefold(), inner) for key, inner in value if key.casefold() in wanted)


def _texts(value: Any) -> dict[str, str]:
    """Variables that are texts; fabric refuses a body with others."""
    if not isinstance(value, _Pairs):
        return {}
    return _once((name, text) for name, text in value if isinstance(text, str))


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RequestError(f"{key!r} stands twice in one object.", param=key)
        found[key] = value
    return found
