"""fabric's refusals as errors of ours.

It says no in three shapes: ``{"error": "…"}``, a bare JSON string under status 500 (not found is
one), and an ``error`` event inside a 200 stream. Its messages are translated by its locale, so
nothing but the text of a missing variable is read out of them.
"""

import re
from typing import Any, cast

import msgspec

from woollama.core.errors import ProviderError, RequestError, WoollamaError, kind_of_status

__all__ = ["event_fault", "missing_variable", "missing_variables", "reply_fault"]

_MISSING = re.compile(r"missing required variable: ?([^\n]*)")
_LIMIT = 500


def missing_variable(text: str) -> str | None:
    """The variable that a message says is missing."""
    found = _MISSING.search(text)
    return found[1] if found is not None else None


def missing_variables(pattern: str, *names: str) -> RequestError:
    """The refusal of a call that leaves variables out, which fabric does not run (P-43)."""
    listed = ", ".join(repr(name) for name in names)
    return RequestError(
        f"The pattern {pattern!r} needs a value for {listed}.",
        param=f"variables.{names[0]}",
        hint="fabric fills every {{token}} or runs nothing; tokens that are no variables need one, "
        "too.",
    )


def reply_fault(pattern: str | None, status: int, body: bytes) -> WoollamaError:
    """The error of a reply whose status says no.

    Args:
        pattern: whose call it was, if one's.
        status: the HTTP status.
        body: as it came.
    """
    text = _text_of(body)
    variable = missing_variable(text) if pattern is not None else None
    if variable and pattern is not None:
        return missing_variables(pattern, variable)
    hint = None
    if status == 401:
        hint = 'Name the variable with fabric\'s key as "api_key_env" of fabric in mcp.json.'
    return ProviderError(
        f"fabric answered {status}: {text or 'nothing more'}",
        kind=kind_of_status(status),
        status=status if status >= 400 else 502,
        payload=text or None,
        peer_status=status,
        hint=hint,
    )


def event_fault(pattern: str | None, content: str) -> WoollamaError:
    """The error of an ``error`` event.

    Args:
        pattern: whose call it was.
        content: the event's text, ``Error: …``.
    """
    variable = missing_variable(content) if pattern is not None else None
    if variable and pattern is not None:
        return missing_variables(pattern, variable)
    text = content.removeprefix("Error: ")
    return ProviderError(f"fabric: {text[:_LIMIT]}", payload=content)


def _text_of(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    try:
        said: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A page of a proxy between us is not fabric's answer and no message either.
        return "a web page, not an answer of fabric's" if text[:1] == "<" else text[:_LIMIT]
    if isinstance(said, dict):
        said = cast("dict[str, Any]", said).get("error", text)
    return said[:_LIMIT] if isinstance(said, str) else text[:_LIMIT]
