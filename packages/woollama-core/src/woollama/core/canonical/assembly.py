"""Deltas to a reply, and a reply to deltas: a whole reply is a stream of one."""

from collections.abc import Iterable
from typing import Any, assert_never

from woollama.core.canonical.content import text_of
from woollama.core.canonical.events import (
    Delta,
    Finish,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Start,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)
from woollama.core.canonical.messages import AssistantMessage, FunctionCall, ToolCall
from woollama.core.canonical.reply import Reply, Usage
from woollama.core.errors import ReplyError, TruncatedReply

__all__ = ["LIMIT_CHARACTERS", "Assembly", "assemble", "deltas_of"]

LIMIT_CHARACTERS = 64 * 1024 * 1024
"""The most text, thinking and arguments that one reply may add up to."""


class Assembly:
    """Adds up deltas; ``reply()`` is what they make once ``Finish`` has come."""

    def __init__(self) -> None:
        """Nothing has arrived yet."""
        self._start: Start | None = None
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._opaque: list[OpaqueDelta] = []
        self._size = 0

    def add(self, delta: Delta) -> None:
        """Take in one delta.

        Raises:
            ReplyError: the reply outgrew ``LIMIT_CHARACTERS``.
        """
        match delta:
            case TextDelta():
                self._grow(self._text, delta.text)
            case ReasoningDelta():
                self._grow(self._reasoning, delta.text)
            case RefusalDelta():
                self._grow(self._refusal, delta.text)
            case ToolCallDelta():
                call = self._calls.setdefault(delta.index, _Call())
                call.id = delta.id or call.id
                call.name = delta.name or call.name
                self._grow(call.arguments, delta.arguments)
            case OpaqueDelta():
                self._opaque.append(delta)
            case UsageDelta():
                self._usage = delta.usage
            case Start():
                self._start = delta
            case Finish():
                self._finish = delta
            case _:
                assert_never(delta)

    def _grow(self, pieces: list[str], piece: str) -> None:
        self._size += len(piece)
        if self._size > LIMIT_CHARACTERS:
            raise ReplyError(f"The reply is longer than {LIMIT_CHARACTERS} characters.")
        pieces.append(piece)

    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            TruncatedReply: ``Start`` or ``Finish`` never came.
        """
        if self._start is None or self._finish is None:
            raise TruncatedReply("The reply ended before it was complete.")
        text = "".join(self._text)
        message = AssistantMessage(
            content=text or None,
            tool_calls=tuple(self._call(index) for index in sorted(self._calls)),
            reasoning="".join(self._reasoning) or None,
            refusal="".join(self._refusal) or None,
            reasoning_details=self._details(),
            opaque=self._by_dialect(),
        )
        return Reply(
            id=self._start.id,
            created=self._start.created,
            model=self._start.model,
            message=message,
            finish_reason=self._finish.reason,
            native_finish_reason=self._finish.native,
            usage=self._usage,
        )

    def _call(self, index: int) -> ToolCall:
        call = self._calls[index]
        found = [o for o in self._opaque if o.key == "extra_content" and o.index == index]
        return ToolCall(
            id=call.id,
            function=FunctionCall(name=call.name, arguments="".join(call.arguments) or "{}"),
            extra_content=found[-1].value if found else None,
        )

    def _details(self) -> tuple[Any, ...]:
        return tuple(o.value for o in self._opaque if o.key == "reasoning_details")

    def _by_dialect(self) -> dict[str, tuple[Any, ...]]:
        kept: dict[str, tuple[Any, ...]] = {}
        for opaque in self._opaque:
            if opaque.key not in {"extra_content", "reasoning_details"}:
                kept[opaque.dialect] = (*kept.get(opaque.dialect, ()), opaque.value)
        return kept


class _Call:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def assemble(deltas: Iterable[Delta]) -> Reply:
    """The reply that deltas add up to.

    Raises:
        TruncatedReply: they have no ``Start`` or no ``Finish``.
    """
    assembly = Assembly()
    for delta in deltas:
        assembly.add(delta)
    return assembly.reply()


def deltas_of(reply: Reply) -> tuple[Delta, ...]:
    """The fewest deltas that add up to ``reply``."""
    message = reply.message
    deltas: list[Delta] = [Start(reply.id, reply.model, reply.created)]
    if message.reasoning:
        deltas.append(ReasoningDelta(message.reasoning))
    deltas.extend(
        OpaqueDelta("compatible", "reasoning_details", d) for d in message.reasoning_details
    )
    for dialect, values in message.opaque.items():
        deltas.extend(OpaqueDelta(dialect, "item", value) for value in values)
    text = text_of(message.content)
    if text:
        deltas.append(TextDelta(text))
    if message.refusal:
        deltas.append(RefusalDelta(message.refusal))
    for index, call in enumerate(message.tool_calls):
        deltas.append(ToolCallDelta(index, call.id, call.name, call.arguments))
        if call.extra_content is not None:
            deltas.append(OpaqueDelta("compatible", "extra_content", call.extra_content, index))
    if reply.usage is not None:
        deltas.append(UsageDelta(reply.usage))
    reason: Any = reply.finish_reason
    deltas.append(Finish(reason, reply.native_finish_reason))
    return tuple(deltas)
