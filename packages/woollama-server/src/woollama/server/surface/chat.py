"""Canonical replies in the words of OpenAI's Chat Completions (wire README, section 2).

A whole reply is one object, a stream is chunks: the role in the first, the finish reason in one of
its own, then the usage when the client asked for it, then ``[DONE]``.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from woollama.core.canonical import (
    Delta,
    Finish,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Start,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
    usage_to_openai,
)
from woollama.core.errors import WoollamaError

__all__ = ["DONE", "DROPPED_HEADER", "ChunkWriter", "completion", "error_event"]

DONE = b"data: [DONE]\n\n"

DROPPED_HEADER = "x-woollama-dropped"
"""Names the parameters that were left out because an operator's ``drop_params`` says so."""

_encoder = msgspec.json.Encoder()


def completion(reply: Reply, *, reasoning: str, model: str | None = None) -> bytes:
    """A whole reply as a ``chat.completion``; the thinking stands under ``reasoning``.

    ``model`` is shown when the provider names none.
    """
    shown = reply.model if reply.model is not None else model
    return _encoder.encode(reply.to_openai(model=shown, reasoning=reasoning))


def error_event(error: WoollamaError) -> bytes:
    """The last event of a stream that failed; no ``[DONE]`` follows it."""
    return b"data: " + _encoder.encode(error.to_openai()) + b"\n\n"


class ChunkWriter:
    """Deltas to the events of one chunk stream."""

    def __init__(self, *, model: str, reasoning: str, include_usage: bool) -> None:
        """One reply.

        Args:
            model: shown when the provider names none.
            reasoning: the key of the thinking in a delta.
            include_usage: whether the client asked for a usage chunk.
        """
        self._model = model
        self._reasoning = reasoning
        self._include_usage = include_usage
        self._usage: Usage | None = None
        self._head: dict[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        """The last usage seen."""
        return self._usage

    def encode(self, deltas: Iterable[Delta]) -> bytes:
        """The events of ``deltas``, to be written at once."""
        out: list[bytes] = []
        for delta in deltas:
            out.extend(self._events(delta))
        return b"".join(out)

    def _events(self, delta: Delta) -> Iterable[bytes]:
        match delta:
            case TextDelta():
                return (self._chunk({"content": delta.text}),)
            case ReasoningDelta():
                return (self._chunk({self._reasoning: delta.text}),)
            case ToolCallDelta():
                return (self._chunk({"tool_calls": [self._call(delta)]}),)
            case RefusalDelta():
                return (self._chunk({"refusal": delta.text}),)
            case OpaqueDelta():
                return self._opaque(delta)
            case Start():
                self._head = {
                    "id": delta.id,
                    "object": "chat.completion.chunk",
                    "created": delta.created,
                    "model": delta.model or self._model,
                }
                return (self._chunk({"role": "assistant", "content": ""}),)
            case UsageDelta():
                self._usage = delta.usage
                return ()
            case Finish():
                return self._end(delta)

    def _chunk(
        self, delta: dict[str, Any], finish: str | None = None, logprobs: Any = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        if logprobs is not None:
            choice["logprobs"] = logprobs
        return b"data: " + _encoder.encode({**self._head, "choices": [choice]}) + b"\n\n"

    def _call(self, delta: ToolCallDelta) -> dict[str, Any]:
        function: dict[str, Any] = {"arguments": delta.arguments}
        if delta.name is not None:
            function = {"name": delta.name, **function}
        call: dict[str, Any] = {"index": delta.index, "function": function}
        if delta.id is not None:
            call = {"index": delta.index, "id": delta.id, "type": "function", "function": function}
        return call

    def _opaque(self, delta: OpaqueDelta) -> Iterable[bytes]:
        # What a server of this dialect wants back stays in the caller's messages (RU-12); what the
        # caller asked for is given.
        if delta.key == "reasoning_details":
            return (self._chunk({"reasoning_details": [delta.value]}),)
        if delta.key == "extra_content":
            call = {"index": delta.index, "extra_content": delta.value}
            return (self._chunk({"tool_calls": [call]}),)
        if delta.key == "logprobs":
            return (self._chunk({}, logprobs=delta.value),)
        return ()

    def _end(self, finish: Finish) -> Iterable[bytes]:
        yield self._chunk({}, finish.reason)
        if self._include_usage:
            usage = usage_to_openai(self._usage if self._usage is not None else Usage())
            body: dict[str, Any] = {**self._head, "choices": [], "usage": usage}
            yield b"data: " + _encoder.encode(body) + b"\n\n"
        yield DONE
