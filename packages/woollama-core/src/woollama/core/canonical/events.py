"""Deltas, what a reply consists of while it arrives, and the events of a run of several replies.

A whole reply is a stream of one. The order is ``Start`` once, then any of the others, then
``Finish``; nothing follows ``Finish``. What fails is raised, never yielded (RU-11).

A run is: for each turn ``TurnStarted``, then the deltas of its reply when they are streamed, then
``ToolStarted`` for every call the reply makes, then ``ToolFinished`` for each in the same order
(RU-40). ``RunFinished`` is its last event.
"""

from typing import Any, Literal

import msgspec

from woollama.core.canonical.reply import Reply, Usage
from woollama.core.canonical.tool_results import ToolResult

__all__ = [
    "Delta",
    "Finish",
    "FinishReason",
    "OpaqueDelta",
    "ReasoningDelta",
    "RefusalDelta",
    "RunEvent",
    "RunFinished",
    "Start",
    "TextDelta",
    "ToolCallDelta",
    "ToolFinished",
    "ToolStarted",
    "TurnStarted",
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
    """Something that only its own dialect understands and may want back (RU-12), or the caller.

    ``key`` says what it is: ``reasoning_details``, ``extra_content``, ``item``, or ``logprobs``,
    the probabilities of the tokens since the last ones, as Chat Completions writes them. ``index``
    is the tool call it belongs to, None for the message.
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


class _Collected(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class TurnStarted(_Event, frozen=True, tag="turn_started"):
    """The provider has taken a request of the run.

    ``turn`` counts from 1; ``dropped`` names what was left out: parameters, because the provider's
    ``drop_params`` says so, and ``tools.<name>`` for a tool of the recipe that nobody has. With
    ``tools_offered`` above 0 the text of the turn may turn out to be talk before a call.
    """

    turn: int
    dropped: tuple[str, ...] = ()
    tools_offered: int = 0


class ToolStarted(_Collected, frozen=True, tag="tool_started"):
    """The model calls a tool; the call may yet be refused.

    ``id`` is the call's. ``name`` is the tool's own name, or what the model wrote when there is no
    such tool. ``args`` is the object of its arguments, or the model's text when that is no object.
    """

    turn: int
    id: str
    name: str
    args: Any


class ToolFinished(_Collected, frozen=True, tag="tool_finished"):
    """A call has its result, whole; ``ok`` is false for one that failed or was refused."""

    turn: int
    id: str
    name: str
    ok: bool
    result: ToolResult


class RunFinished(_Collected, frozen=True, tag="run_finished"):
    """The run has come to its end.

    ``reply`` is the last one, with the usage of its own turn. ``usage_total`` sums all turns, None
    when no turn reported any. ``replies`` are those of all turns, the last one included.
    """

    reply: Reply
    usage_total: Usage | None = None
    replies: tuple[Reply, ...] = ()


RunEvent = Delta | TurnStarted | ToolStarted | ToolFinished | RunFinished
