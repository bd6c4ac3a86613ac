"""What the payloads of an Anthropic Messages reply mean, whole and streamed.

Source: the wire page ``anthropic-messages``; its rules are named where they act.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from woollama.core.canonical import (
    NOTHING,
    Delta,
    Finish,
    FinishReason,
    RefusalDelta,
    Start,
    Usage,
    UsageDelta,
)
from woollama.core.errors import ProviderError, ReplyError, TruncatedReply
from woollama.core.wire.anthropic_block_reading import BlockReading
from woollama.core.wire.faults import payload_error
from woollama.core.wire.framing import parse
from woollama.core.wire.shapes import count_in, mapping_in, object_of, text_in

__all__ = ["MessageReading", "with_code"]

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded"})


def with_code(error: ProviderError) -> ProviderError:
    """``error`` with the code that ``error.details.error_code`` names, if any."""
    match error.payload:
        case {"error": {"details": {"error_code": str(code)}}} if error.code is None:
            error.code = code
        case _:
            pass
    return error


class MessageReading:
    """Reads one reply; a whole message is a stream whose blocks come at once."""

    def __init__(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        """Nothing has arrived."""
        self._new_id = new_id
        self._now = now
        self._blocks = BlockReading(new_id)
        self._counts: dict[str, int] = {}
        self._details: Mapping[str, Any] = NOTHING
        self._native: str | None = None
        self._refused: Mapping[str, Any] = NOTHING
        self._started = False
        self._marked = False

    def whole(self, payload: Any, out: list[Delta]) -> None:
        """See ``Reading.whole``."""
        message = _checked(payload)
        content = message.get("content")
        if not isinstance(content, list):
            raise ReplyError("The provider's reply has no list 'content'.", payload=payload)
        self._start(message, out)
        self._count(message)
        for index, block in enumerate(cast("list[Any]", content)):
            self._blocks.start(index, object_of(block), out)
            self._blocks.stop(index, out)
        self._stop(message)
        self._marked = True
        self.end(out)

    def event(self, data: bytes, out: list[Delta]) -> bool:
        """See ``Reading.event``; its ``type`` says what it is, not its ``event:`` line (AE-21)."""
        if data.startswith(b"[DONE]"):
            # The end in API version 2023-01-01, and of some servers that copy the API.
            return True
        body = _checked(parse(data))
        match body.get("type"):
            case "message_start":
                message = mapping_in(body, "message")
                self._start(message, out)
                self._count(message)
            case "content_block_start":
                self._start(NOTHING, out)
                self._blocks.start(_index(body), mapping_in(body, "content_block"), out)
            case "content_block_delta":
                self._start(NOTHING, out)
                self._blocks.delta(_index(body), mapping_in(body, "delta"), out)
            case "content_block_stop":
                self._blocks.stop(_index(body), out)
            case "message_delta":
                self._stop(mapping_in(body, "delta"))
                self._count(body)
            case "message_stop":
                self._marked = True
            case _:
                # Pings, and what later versions of the API may add (AE-2).
                pass
        return self._marked

    def end(self, out: list[Delta]) -> None:
        """See ``Reading.end``; ``message_stop`` or a stop reason is the mark (AE-13)."""
        if not self._marked and self._native is None:
            raise TruncatedReply("stream ended before message_stop")
        self._start(NOTHING, out)
        self._blocks.flush(out)
        if self._native == "refusal":
            out.append(RefusalDelta(self._declined()))
        usage = self._usage()
        if usage is not None:
            out.append(UsageDelta(usage))
        out.append(Finish(self._reason(), self._native))

    def _start(self, message: Mapping[str, Any], out: list[Delta]) -> None:
        if self._started:
            return
        self._started = True
        identity = text_in(message, "id") or f"msg_{self._new_id()}"
        out.append(Start(identity, text_in(message, "model") or None, int(self._now())))

    def _count(self, body: Mapping[str, Any]) -> None:
        # Counts are totals so far: one that is reported replaces, null says nothing (AE-3).
        usage = mapping_in(body, "usage")
        for name in _COUNTS:
            count = count_in(usage, name)
            if count is not None:
                self._counts[name] = count
        details = mapping_in(usage, "output_tokens_details")
        self._details = details or self._details

    def _usage(self) -> Usage | None:
        if not self._counts:
            return None
        completion = self._counts.get("output_tokens")
        read = self._counts.get("cache_read_input_tokens")
        written = self._counts.get("cache_creation_input_tokens")
        parts = (self._counts.get("input_tokens"), read, written)
        known = [count for count in parts if count is not None]
        prompt = sum(known) if known else None
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=(prompt or 0) + (completion or 0),
            cached_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=count_in(self._details, "thinking_tokens"),
        )

    def _stop(self, said: Mapping[str, Any]) -> None:
        native = said.get("stop_reason")
        if isinstance(native, str):
            self._native = native
            self._refused = mapping_in(said, "stop_details")

    def _declined(self) -> str:
        category = text_in(self._refused, "category")
        declined = f"declined: {category}" if category else "declined"
        return text_in(self._refused, "explanation") or declined

    def _reason(self) -> FinishReason:
        if self._native in _LENGTH:
            return "length"
        if self._native == "refusal":
            return "content_filter"
        return "tool_calls" if self._native == "tool_use" or self._blocks.called else "stop"


def _checked(payload: Any) -> Mapping[str, Any]:
    if not isinstance(payload, dict):
        raise ReplyError("The provider's reply is not an object.", payload=payload)
    body = cast("Mapping[str, Any]", payload)
    # An error inside a 200 ends the reply, whatever came before it (AE-12).
    if body.get("type") == "error" or body.get("error"):
        raise with_code(payload_error(body))
    return body


def _index(body: Mapping[str, Any]) -> int:
    return count_in(body, "index") or 0
