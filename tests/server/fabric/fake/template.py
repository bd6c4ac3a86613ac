"""How fabric v1.4.470 fills in a pattern: until no token is left, values included."""

import os
import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\{\{([^{}]+)\}\}")
_SENTINEL = "__FABRIC_INPUT_SENTINEL_TOKEN__"
ENDLESS = 1000


class TemplateError(Exception):
    """What fabric says under status 500."""


class Endless(Exception):
    """Here fabric would never come back."""


def fill(text: str, variables: Mapping[str, str], given: str) -> str:
    """The filled-in pattern."""
    if "{{input}}" not in text:
        text += "" if text.endswith("\n") else "\n"
        text += "{{input}}"
    text = text.replace("{{input}}", _SENTINEL)
    for _ in range(ENDLESS):
        found = _TOKEN.search(text)
        if found is None:
            return text.replace(_SENTINEL, given)
        text = text.replace(found[0], _value(found[1], variables))
    raise Endless


def _value(name: str, variables: Mapping[str, str]) -> str:
    if name == _SENTINEL:
        raise TemplateError(f"missing required variable: {name}")
    if name.startswith("plugin:"):
        return _plugin(name)
    if name.startswith("ext:"):
        raise TemplateError(f"extension error: {name}")
    if name not in variables:
        raise TemplateError(f"missing required variable: {name}")
    return variables[name]


def _plugin(call: str) -> str:
    _, namespace, operation, value = (*call.split(":", 3), "", "", "")[:4]
    match namespace, operation:
        case "text", "upper":
            return value.upper()
        case "sys", "env":
            return os.environ.get(value, "")
        case "datetime", "now":
            return "2026-08-04T00:00:00Z"
        case _:
            raise TemplateError(f"plugin error: {call}")
