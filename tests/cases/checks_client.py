"""Checks of what clients got."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from tests.cases.comparison import MISSING, compare, dig
from tests.cases.evaluation import Evaluate
from tests.cases.scene import Scene
from tests.cases.schema import Check

__all__ = ["CLIENT_CHECKS"]

_SHOWN = 200


def _status(scene: Scene, check: Check) -> str | None:
    reply = scene.reply(check)
    if reply.status is None:
        return f"no status came ({reply.error})"
    low, high = check.range or (reply.status, reply.status)
    problem = compare(reply.status, check)
    if problem is None and not low <= reply.status <= high:
        problem = f"is {reply.status}, wanted from {low} to {high}"
    return problem and f"{problem}; the body is {reply.text[:_SHOWN]!r}"


def _all_status(scene: Scene, check: Check) -> str | None:
    assert isinstance(check.in_, list)
    wrong = [
        f"{number}: {reply.status or reply.error}"
        for number, reply in enumerate(scene.replies)
        if reply.status not in check.in_
    ]
    return f"are {', '.join(wrong[:10])}" if wrong else None


def _header(scene: Scene, check: Check) -> str | None:
    return compare(scene.reply(check).header(check.name), check)


def _json(scene: Scene, check: Check) -> str | None:
    reply = scene.reply(check)
    if reply.json is MISSING:
        return f"the body is not JSON: {reply.text[:_SHOWN]!r}"
    return compare(dig(reply.json, check.path or ""), check)


def _body(scene: Scene, check: Check) -> str | None:
    return compare(scene.reply(check).text, check)


def _openai_error(scene: Scene, check: Check) -> str | None:
    reply = scene.reply(check)
    message = dig(reply.json, "error.message")
    if isinstance(message, str) and message:
        return None
    return f"{reply.status} {reply.error or ''}: the body is {reply.text[:_SHOWN]!r}"


def _elapsed(scene: Scene, check: Check) -> str | None:
    reply = scene.reply(check)
    return _in_time(reply.ended_at - reply.started_at, check)


def _wall(scene: Scene, check: Check) -> str | None:
    begin = min(reply.started_at for reply in scene.replies)
    return _in_time(max(reply.ended_at for reply in scene.replies) - begin, check)


def _in_time(seconds: float, check: Check) -> str | None:
    assert check.max_ms is not None
    return f"is {seconds:.2f} s" if seconds * 1000 > check.max_ms else None


def _transport_error(scene: Scene, check: Check) -> str | None:
    return None if scene.reply(check).error else "the reply ended well"


def _responses_in_raw(scene: Scene, check: Check) -> str | None:
    answers = re.findall(rb"HTTP/1\.[01] \d{3}", scene.reply(check).body)
    return compare(len(answers), check)


CLIENT_CHECKS: Mapping[str, Evaluate] = MappingProxyType(
    {
        "status": _status,
        "all_status": _all_status,
        "header": _header,
        "json": _json,
        "body": _body,
        "openai_error": _openai_error,
        "elapsed": _elapsed,
        "wall": _wall,
        "transport_error": _transport_error,
        "responses_in_raw": _responses_in_raw,
    }
)
"""Each by its name: the status, the headers, the body, the time and the end of replies."""
