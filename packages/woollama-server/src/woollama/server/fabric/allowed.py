"""Which of fabric's routes are open below ``/fabric`` (RU-61)."""

import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote

from woollama.core.errors import RequestError
from woollama.server.fabric.wire import path_like

__all__ = ["check_route", "pattern_of_apply"]

_NAME = "([^/]+)"


class _Rule(NamedTuple):
    methods: frozenset[str]
    path: re.Pattern[str]
    group: str | None
    """The word of ``expose`` that opens it; None is open."""


def _rule(methods: str, path: str, group: str | None = None) -> _Rule:
    return _Rule(frozenset(methods.split()), re.compile(path), group)


_RULES = (
    _rule("GET", "/patterns/names"),
    _rule("GET", f"/patterns/exists/{_NAME}"),
    _rule("GET", f"/patterns/{_NAME}"),
    _rule("POST", f"/patterns/{_NAME}/apply"),
    _rule("GET", "/models/names"),
    _rule("GET", "/strategies"),
    _rule("GET", "/contexts/names"),
    _rule("POST", "/chat"),
    _rule("GET", f"/(?:contexts|sessions)/(?:names|exists/{_NAME}|{_NAME})", "contents"),
    _rule("POST DELETE", f"/(?:patterns|contexts|sessions)/{_NAME}", "writes"),
    _rule("PUT", f"/(?:patterns|contexts|sessions)/rename/{_NAME}/{_NAME}", "writes"),
    _rule("GET POST", "/config(?:/.*)?", "config"),
    _rule("POST", "/youtube/.*", "youtube"),
)
"""The first that fits decides; what fits none is in the group ``other``."""

_WHY = {
    "contents": "it shows what is in contexts and sessions",
    "writes": "it changes fabric's store",
    "config": "it shows or changes fabric's configuration, keys included",
    "youtube": "it makes fabric call other servers",
    "other": "it is none of those that are known to be harmless",
}


def check_route(method: str, path: str, expose: Collection[str]) -> None:
    """Refuses a route that is closed, and names that lead out of fabric's folders.

    Args:
        method: of the request.
        path: below the prefix, as it stands in the request line, percent-encoded.
        expose: the groups that the section opens.

    Raises:
        RequestError: 403 with the key that opens it, or 400 for a name that is a path.
    """
    for segment in path.split("/")[1:]:
        name = unquote(segment)
        if name and path_like(name):
            raise RequestError(f"{name[:80]!r} is no name but a path; fabric does not get it.")
    # Matched as fabric will read it: decoded once. An encoded slash has been refused.
    plain = unquote(path)
    rule = next(
        (each for each in _RULES if method in each.methods and each.path.fullmatch(plain)), None
    )
    group = rule.group if rule is not None else "other"
    if group is not None and group not in expose:
        raise RequestError(
            f"{method} /fabric{plain[:200]} is closed: {_WHY[group]}.",
            kind="permission",
            status=403,
            code="route_closed",
            hint=f'To open it, write "expose": ["{group}"] into the section fabric of mcp.json.',
        )


def pattern_of_apply(plain: str) -> str | None:
    """The pattern that a POST to a decoded path fills in; None for another path."""
    found = re.fullmatch(f"/patterns/{_NAME}/apply", plain)
    return found[1] if found is not None else None
