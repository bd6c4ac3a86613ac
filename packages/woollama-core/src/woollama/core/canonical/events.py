"""Deltas: what a reply consists of while it arrives.

A whole reply is a stream of one. The order is ``Start`` once, then any of the others, then
``Finish``; nothing follows ``Finish``. What fails is raised, never yielded (RU-11).
"""

from typing import Any, Literal

import msgspec

from woollama.core.canonical.reply import Usage

__all__ = [
    "Delta",
    "Finish",
    "FinishReason",
    "OpaqueDelta",
    "ReasoningDelta",
    "RefusalDelta",
    "Start",
    "TextDelta",
    "ToolCallDelta",
    "UsageDelta",
]

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]


class _Event(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, gc=False):
    pass


class Start(_Event, frozen=True, tag="start"):
    """The reply has begun. ``id`` and ``model`` are the server's, None when it has none."""

    id: str
    model: str | None
    created: int


class TextDelta(_Event, frozen=True, tag="text"):
    """A piece of the answer."""

    text: str


class ReasoningDelta(_Event, frozen=True, tag="reasoning"):
    """A piece of the thinking that came with the answer, never part of its text."""

    text: str


class RefusalDelta(_Event, frozen=True, tag="refusal"):
    """A piece of the model's refusal."""

    text: str


class OpaqueDelta(msgspec.Struct, frozen=True, tag_field="type", tag="opaque", omit_defaults=True):
    """Something only its own dialect understands and may want back (RU-12).

    ``key`` says what it is (``reasoning_details``, ``extra_content`` …), ``index`` the tool call it
    belongs to, None for the message.
    """

    dialect: str
    key: str
    value: Any
    index: int | None = None


class ToolCallDelta(_Event, frozen=True, tag="tool_call"):
    """A piece of a tool call. The first piece of an ``index`` has ``id`` and ``name``.

    ``index`` counts calls from 0 in order of appearance; ``arguments`` is appended as it is.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class UsageDelta(_Event, frozen=True, tag="usage"):
    """Token counts; the last one holds for the whole reply (wire rule C-6)."""

    usage: Usage


class Finish(_Event, frozen=True, tag="finish"):
    """The reply ended well. ``native`` is the server's own word."""

    reason: FinishReason
    native: str | None = None


Delta = (
    Start
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | OpaqueDelta
    | ToolCallDelta
    | UsageDelta
    | Finish
)
