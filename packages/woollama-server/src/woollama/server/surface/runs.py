"""A run in the words of Chat Completions: one answer, its tools hidden, its usage summed (RU-41).

Both modes give the same text, that of the last turn. While tools are on offer nobody knows whether
a turn's text is the answer or talk before a call, so it is held back until the turn has ended;
thinking is shown as it comes, and so is text where no tool is offered.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from woollama.core.canonical import (
    Finish,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    RunEvent,
    RunFinished,
    Start,
    TextDelta,
    ToolStarted,
    TurnStarted,
    UsageDelta,
    deltas_of,
)
from woollama.core.errors import ReplyError
from woollama.server.surface.chat import ChunkWriter

__all__ = ["RunWriter", "finished_reply", "options_of"]


async def finished_reply(events: AsyncIterator[RunEvent]) -> tuple[Reply, tuple[str, ...]]:
    """The answer of a run with the usage of all its turns, and the parameters that were left out.

    Raises:
        InferenceError: what ended the run early.
    """
    dropped: dict[str, None] = {}
    async for event in events:
        match event:
            case TurnStarted():
                dropped.update(dict.fromkeys(event.dropped))
            case RunFinished():
                return _summed(event), tuple(dropped)
            case _:
                continue
    raise ReplyError("The run ended without an answer.")


def _summed(finished: RunFinished) -> Reply:
    if finished.usage_total is None:
        return finished.reply
    return msgspec.structs.replace(finished.reply, usage=finished.usage_total)


class RunWriter:
    """The events of one run to the events of one chunk stream.

    Attributes:
        dropped: the parameters that were left out so far.
        reply: the answer, once the run has finished.
    """

    def __init__(self, *, model: str, reasoning: str, include_usage: bool) -> None:
        """See ``ChunkWriter``."""
        self._chunks = ChunkWriter(model=model, reasoning=reasoning, include_usage=include_usage)
        self._begun = False
        self._holding = False
        self._held: list[TextDelta | RefusalDelta | OpaqueDelta] = []
        self.dropped: tuple[str, ...] = ()
        self.reply: Reply | None = None

    def encode(self, event: RunEvent) -> bytes:
        """What one event adds to the stream; nothing for those that clients do not see."""
        match event:
            case TurnStarted():
                self.dropped = tuple(dict.fromkeys((*self.dropped, *event.dropped)))
                self._holding = event.tools_offered > 0
                self._held.clear()
            case Start():
                return self._begin(event)
            case TextDelta() | RefusalDelta() | OpaqueDelta(key="logprobs"):
                if self._holding:
                    self._held.append(event)
                else:
                    return self._chunks.encode((event,))
            case ReasoningDelta():
                return self._chunks.encode((event,))
            case ToolStarted():
                self._held.clear()
            case RunFinished():
                return self._end(event)
            case _:
                pass
        return b""

    def _begin(self, start: Start) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return self._chunks.encode((start,))

    def _end(self, finished: RunFinished) -> bytes:
        reply = self.reply = _summed(finished)
        ending = tuple(
            delta for delta in deltas_of(reply) if isinstance(delta, UsageDelta | Finish)
        )
        start, *_ = deltas_of(reply)
        begun = self._begin(start) if isinstance(start, Start) else b""
        return begun + self._chunks.encode((*self._held, *ending))


def options_of(body: Mapping[str, Any], *, taken: frozenset[str]) -> dict[str, Any]:
    """The fields of a request that steer the run: all but those in ``taken`` and those unset."""
    return {key: value for key, value in body.items() if key not in taken and value is not None}
