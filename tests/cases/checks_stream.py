"""Checks of streams of Chat Completions."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.cases.comparison import MISSING, compare, dig
from tests.cases.evaluation import Evaluate
from tests.cases.replies import DONE, Reply, assemble_calls, deltas
from tests.cases.scene import Scene
from tests.cases.schema import Check

__all__ = ["STREAM_CHECKS"]

_SHOWN = 300


def _ok(scene: Scene, check: Check) -> str | None:
    reply = scene.reply(check)
    if reply.status != 200:
        return f"status {reply.status}, {reply.error}; the body is {reply.text[:_SHOWN]!r}"
    if "text/event-stream" not in str(reply.header("content-type")):
        return f"the content type is {reply.header('content-type')!r}"
    if reply.error is not None:
        return reply.error
    return _wrong_events(reply)


def _wrong_events(reply: Reply) -> str | None:
    if reply.junk:
        return f"a line that is not of an event stream: {reply.junk[0][:_SHOWN]!r}"
    values = [event.value for event in reply.events]
    if values.count(DONE) != 1 or values[-1] != DONE:
        return f"{values.count(DONE)} times [DONE], the last event is {values[-1:]}"
    for event in reply.events[:-1]:
        if event.value is MISSING or "error" in event.chunk:
            return f"an event is {event.data[:_SHOWN]!r}"
        if not isinstance(event.chunk.get("choices"), list):
            return f"an event without choices: {event.data[:_SHOWN]!r}"
    return None


def _error(scene: Scene, check: Check) -> str | None:
    reply = scene.reply(check)
    errors = [chunk["error"] for chunk in reply.chunks if chunk.get("error")]
    if not errors:
        return f"no event has an error; the body ends {reply.text[-_SHOWN:]!r}"
    return compare(dig(errors[0], "message"), check)


def _text(scene: Scene, check: Check) -> str | None:
    found = deltas(scene.reply(check).chunks)
    return compare("".join(delta.get("content") or "" for delta in found), check)


def _finish(scene: Scene, check: Check) -> str | None:
    choices: list[dict[str, Any]] = [
        choice for chunk in scene.reply(check).chunks for choice in chunk.get("choices") or ()
    ]
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    if check.none:
        return f"are {reasons}" if reasons else None
    if len(reasons) > 1:
        return f"are several: {reasons}"
    return compare(reasons[0] if reasons else MISSING, check)


def _usage(scene: Scene, check: Check) -> str | None:
    reports = [chunk["usage"] for chunk in scene.reply(check).chunks if chunk.get("usage")]
    return compare(dig(reports[-1], check.path or "") if reports else MISSING, check)


def _usage_last(scene: Scene, check: Check) -> str | None:
    events = scene.reply(check).events
    places = [
        place
        for place, event in enumerate(events)
        if event.chunk.get("usage") and not event.chunk.get("choices")
    ]
    if places == [len(events) - 2] and events[-1].value == DONE:
        return None
    return f"usage without choices is at {places} of {len(events)} events"


def _tools(scene: Scene, check: Check) -> str | None:
    calls, problems = assemble_calls(scene.reply(check).chunks)
    if problems:
        return problems[0]
    got: list[dict[str, Any]] = []
    for call in calls:
        try:
            got.append({"name": call["name"], "args": json.loads(call["arguments"])})
        except ValueError:
            return f"the arguments of {call['name']!r} are not JSON: {call['arguments']!r}"
    ids = [call["id"] for call in calls]
    if "" in ids or len(set(ids)) != len(ids):
        return f"the ids are {ids}"
    return compare(got, check)


STREAM_CHECKS: Mapping[str, Evaluate] = MappingProxyType(
    {
        "sse_ok": _ok,
        "sse_error": _error,
        "sse_text": _text,
        "sse_finish": _finish,
        "sse_usage": _usage,
        "sse_usage_last": _usage_last,
        "sse_tools": _tools,
    }
)
"""Each by its name: the events, what they amount to, and how the stream ends."""
