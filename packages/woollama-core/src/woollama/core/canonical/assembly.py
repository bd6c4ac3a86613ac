"""Deltas to a reply, and a reply to deltas: a whole reply is a stream of one."""

from collections.abc import Iterable
from typing import Any, assert_never

import msgspec

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
from woollama.core.canonical.value import NOTHING
from woollama.core.errors import ReplyError, TruncatedReply

__all__ = ["LIMIT_CHARACTERS", "Assembly", "assemble", "deltas_of"]

LIMIT_CHARACTERS = 64 * 1024 * 1024
"""The most text, thinking, arguments and opaque values that one reply may add up to."""

_ENTRY = 256  # what one more call or opaque value counts for, beside what is in it
_encoder = msgspec.json.Encoder()


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
        self._details: list[Any] = []
        self._items: dict[str, list[Any]] = {}
        self._logprobs: dict[str, list[Any]] = {}
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
                self._call_piece(delta)
            case OpaqueDelta():
                self._keep(delta)
            case UsageDelta():
                self._usage = delta.usage
            case Start():
                self._start = delta
            case Finish():
                self._finish = delta
            case _:
                assert_never(delta)

    def _call_piece(self, delta: ToolCallDelta) -> None:
        call = self._find(delta.index)
        call.id = delta.id or call.id
        call.name = delta.name or call.name
        self._grow(call.arguments, delta.arguments)

    def _find(self, index: int) -> "_Call":
        call = self._calls.get(index)
        if call is None:
            self._spend(_ENTRY)
            call = self._calls[index] = _Call()
        return call

    def _keep(self, opaque: OpaqueDelta) -> None:
        self._spend(_ENTRY + len(_encoder.encode(opaque.value)))
        match opaque.key:
            case "reasoning_details":
                self._details.append(opaque.value)
            case "extra_content" if opaque.index is not None:
                self._find(opaque.index).extra_content = opaque.value
            case "logprobs":
                for name, tokens in opaque.value.items():
                    self._logprobs.setdefault(name, []).extend(tokens)
            case _:
                self._items.setdefault(opaque.dialect, []).append(opaque.value)

    def _grow(self, pieces: list[str], piece: str) -> None:
        self._spend(len(piece))
        pieces.append(piece)

    def _spend(self, size: int) -> None:
        self._size += size
        if self._size > LIMIT_CHARACTERS:
            raise ReplyError(f"The reply is longer than {LIMIT_CHARACTERS} characters.")

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
            reasoning_details=tuple(self._details),
            opaque={dialect: tuple(items) for dialect, items in self._items.items()},
        )
        return Reply(
            id=self._start.id,
            created=self._start.created,
            model=self._start.model,
            message=message,
            finish_reason=self._finish.reason,
            native_finish_reason=self._finish.native,
            usage=self._usage,
            extra={"logprobs": self._logprobs} if self._logprobs else NOTHING,
        )

    def _call(self, index: int) -> ToolCall:
        call = self._calls[index]
        return ToolCall(
            id=call.id,
            function=FunctionCall(name=call.name, arguments="".join(call.arguments) or "{}"),
            extra_content=call.extra_content,
        )


class _Call:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra_content: Any = None


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
    if "logprobs" in reply.extra:
        deltas.append(OpaqueDelta("compatible", "logprobs", reply.extra["logprobs"]))
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
