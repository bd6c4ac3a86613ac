"""What the payloads of an Ollama reply mean, one object or one object a line."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from woollama.core.canonical import (
    Delta,
    Finish,
    FinishReason,
    OpaqueDelta,
    ReasoningDelta,
    Start,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
)
from woollama.core.errors import ReplyError, TruncatedReply
from woollama.core.wire.arguments import arguments_text
from woollama.core.wire.faults import payload_error
from woollama.core.wire.framing import LIMIT_BYTES, parse
from woollama.core.wire.shapes import count_in, list_in, mapping_in, object_of, text_in

__all__ = ["OllamaReading", "unix_seconds"]


class OllamaReading:
    """Reads lines; a reply that is not streamed is a stream of one line. ``done`` is its mark."""

    def __init__(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        """Reads one reply."""
        self._new_id = new_id
        self._now = now
        self._started = False
        self._done = False
        self._calls = 0
        self._native: str | None = None
        self._usage: Usage | None = None
        self._spread = bytearray()

    def whole(self, payload: Any, out: list[Delta]) -> None:
        """See ``Reading.whole``."""
        self._payload(payload, out)
        self.end(out)

    def event(self, data: bytes, out: list[Delta]) -> bool:
        """See ``Reading.event``; one line."""
        if self._spread:
            self._spread += data
            if len(self._spread) > LIMIT_BYTES:
                raise ReplyError(f"The reply is longer than {LIMIT_BYTES} bytes.")
            return False
        try:
            payload = parse(data)
        except TruncatedReply:
            if self._started:
                raise
            # Not a line but the first of several: something on the way laid the reply out anew.
            self._spread += data
            return False
        self._payload(payload, out)
        return self._done

    def end(self, out: list[Delta]) -> None:
        """See ``Reading.end``; without ``done: true`` the runner died (OL-15)."""
        if self._spread:
            spread, self._spread = bytes(self._spread), bytearray()
            self._payload(parse(spread), out)
        if not self._done:
            raise TruncatedReply("stream ended before done")
        if self._usage is not None:
            out.append(UsageDelta(self._usage))
        out.append(Finish(self._reason(), self._native))

    def _payload(self, payload: Any, out: list[Delta]) -> None:
        if not isinstance(payload, dict):
            raise ReplyError("The provider's reply is not an object.", payload=payload)
        body = cast("Mapping[str, Any]", payload)
        # A line of its own ends the reply, also behind good ones and with HTTP 200 (OL-14).
        if body.get("error"):
            raise payload_error(body)
        self._start(body, out)
        self._said(mapping_in(body, "message"), out)
        logprobs = list_in(body, "logprobs")
        if logprobs:
            # Chat Completions has the same entries under "content".
            out.append(OpaqueDelta("compatible", "logprobs", {"content": logprobs}))
        if body.get("done") is True:
            self._close(body)

    def _start(self, body: Mapping[str, Any], out: list[Delta]) -> None:
        if self._started:
            return
        self._started = True
        created = unix_seconds(body.get("created_at"))
        out.append(
            Start(
                f"chatcmpl-{self._new_id()}",
                text_in(body, "model") or None,
                created if created is not None else int(self._now()),
            )
        )

    def _said(self, message: Mapping[str, Any], out: list[Delta]) -> None:
        thinking, content = text_in(message, "thinking"), text_in(message, "content")
        if thinking:
            out.append(ReasoningDelta(thinking))
        if content:
            out.append(TextDelta(content))
        for call in filter(None, map(object_of, list_in(message, "tool_calls"))):
            # Calls are whole, on any line (OL-12), and their own index may be 0 for all (OL-9).
            function = mapping_in(call, "function")
            identity = text_in(call, "id") or f"call_{self._new_id()}"
            arguments = arguments_text(function.get("arguments"))
            out.append(ToolCallDelta(self._calls, identity, text_in(function, "name"), arguments))
            self._calls += 1

    def _close(self, body: Mapping[str, Any]) -> None:
        self._done = True
        self._native = text_in(body, "done_reason") or None
        prompt, completion = count_in(body, "prompt_eval_count"), count_in(body, "eval_count")
        if prompt is None and completion is None:
            return
        # The server leaves a count of 0 out (OL-17).
        prompt, completion = prompt or 0, completion or 0
        self._usage = Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
        )

    def _reason(self) -> FinishReason:
        if self._native == "length":
            return "length"
        return "tool_calls" if self._calls else "stop"


def unix_seconds(value: object) -> int | None:
    """The Unix time of an RFC 3339 text, or None when ``value`` is none (OL-18).

    Fractions of a second are cut. A time that was never set, which Go writes as the year 1, is
    none either.
    """
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    seconds = int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    return seconds if seconds > 0 else None
