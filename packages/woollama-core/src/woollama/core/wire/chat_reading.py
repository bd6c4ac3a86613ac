"""What the payloads of a Chat Completions reply mean, whole and streamed."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from woollama.core.canonical import (
    NOTHING,
    Delta,
    Finish,
    FinishReason,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Start,
    TextDelta,
    Usage,
    UsageDelta,
)
from woollama.core.errors import ReplyError, TruncatedReply
from woollama.core.wire.chat_calls import CallReading
from woollama.core.wire.faults import payload_error
from woollama.core.wire.framing import parse
from woollama.core.wire.shapes import list_in

__all__ = ["ChatReading", "read_usage"]

_LENGTH = frozenset({"length", "model_length", "max_tokens"})


class ChatReading:
    """Reads chunks and whole completions alike: a completion is a chunk with a ``message``."""

    def __init__(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        """Reads one reply."""
        self._new_id = new_id
        self._now = now
        self._calls = CallReading(new_id)
        self._started = False
        self._finished = False
        self._index: object = None
        self._native: str | None = None
        self._usage: Usage | None = None
        self._marked = False

    def whole(self, payload: Any, out: list[Delta]) -> None:
        """See ``Reading.whole``."""
        body = self._checked(payload)
        choices = body.get("choices")
        if not isinstance(choices, list):
            raise ReplyError(
                f"The provider's reply has no list 'choices': {_short(payload)}",
                payload=None,
                retryable=True,
            )
        self._chunk(body, out)
        self._start(body, out)
        self._marked = True
        self.end(out)

    def event(self, data: bytes, out: list[Delta]) -> bool:
        """See ``Reading.event``; ``[DONE]`` is the end."""
        if data.startswith(b"[DONE]"):
            self._marked = True
            return True
        self._chunk(self._checked(parse(data)), out)
        return False

    def end(self, out: list[Delta]) -> None:
        """See ``Reading.end``; a finish reason or ``[DONE]`` is the mark (OC-26, OC-27)."""
        if not self._marked and not self._finished:
            raise TruncatedReply("stream ended before a finish reason")
        self._start(NOTHING, out)
        self._calls.flush(out)
        if self._usage is not None:
            out.append(UsageDelta(self._usage))
        out.append(Finish(self._reason(), self._native))

    def _checked(self, payload: Any) -> Mapping[str, Any]:
        if isinstance(payload, list) and payload:
            payload = cast("list[Any]", payload)[0]
        if not isinstance(payload, dict):
            raise ReplyError(f"The provider's reply is not an object: {_short(payload)}")
        body = cast("Mapping[str, Any]", payload)
        # An error inside a 200 ends the reply, whatever stands beside or behind it (OC-28, OC-37).
        if body.get("error") or (body.get("object") == "error" and "message" in body):
            raise payload_error(body)
        return body

    def _chunk(self, body: Mapping[str, Any], out: list[Delta]) -> None:
        usage = read_usage(body)
        if usage is not None:
            self._usage = usage
        choices = body.get("choices")
        if not isinstance(choices, list):
            return
        for choice in cast("list[Any]", choices):
            if not isinstance(choice, dict):
                continue
            read = cast("Mapping[str, Any]", choice)
            self._only(read.get("index") or 0)
            self._start(body, out)
            self._choice(read, out)

    def _only(self, index: object) -> None:
        if self._index is None:
            self._index = index
        elif self._index != index:
            # Not lost in silence (C-3): a canonical reply has a place for one.
            raise ReplyError(
                "The provider answered with several choices, and one is read here.",
                hint="Ask for one: leave 'n' out.",
            )

    def _start(self, body: Mapping[str, Any], out: list[Delta]) -> None:
        if self._started:
            return
        self._started = True
        identity, model, created = body.get("id"), body.get("model"), body.get("created")
        out.append(
            Start(
                identity
                if isinstance(identity, str) and identity
                else f"chatcmpl-{self._new_id()}",
                model if isinstance(model, str) and model else None,
                int(created) if isinstance(created, int | float) else int(self._now()),
            )
        )

    def _choice(self, choice: Mapping[str, Any], out: list[Delta]) -> None:
        said = choice.get("delta") or choice.get("message")
        if isinstance(said, dict):
            self._said(cast("Mapping[str, Any]", said), out)
        _logprobs(choice.get("logprobs"), out)
        native = choice.get("finish_reason")
        if isinstance(native, str):
            self._native = native
            self._finished = True

    def _said(self, said: Mapping[str, Any], out: list[Delta]) -> None:
        self._reasoning(said, out)
        content = said.get("content")
        if isinstance(content, str):
            if content:
                out.append(TextDelta(content))
        elif isinstance(content, list):
            _parts(cast("list[Any]", content), out)
        refusal = said.get("refusal")
        if isinstance(refusal, str) and refusal:
            out.append(RefusalDelta(refusal))
        calls = said.get("tool_calls")
        if isinstance(calls, list):
            for fragment in cast("list[Any]", calls):
                if isinstance(fragment, dict):
                    self._calls.fragment(cast("Mapping[str, Any]", fragment), out)
        legacy = said.get("function_call")
        if isinstance(legacy, dict):
            self._calls.fragment({"index": 0, "function": legacy}, out)

    def _reasoning(self, said: Mapping[str, Any], out: list[Delta]) -> None:
        details = said.get("reasoning_details")
        items = cast("list[Any]", details) if isinstance(details, list) else []
        text = said.get("reasoning") or said.get("reasoning_content")
        if items and not isinstance(text, str):
            text = "".join(_detail_text(item) for item in items)
        if isinstance(text, str) and text:
            out.append(ReasoningDelta(text))
        out.extend(OpaqueDelta("compatible", "reasoning_details", item) for item in items)

    def _reason(self) -> FinishReason:
        native = self._native
        if native in _LENGTH:
            return "length"
        if native == "content_filter":
            return "content_filter"
        if self._calls.any:
            return "tool_calls"
        return "error" if native == "error" else "stop"


def _logprobs(value: object, out: list[Delta]) -> None:
    if not isinstance(value, dict):
        return
    lists = cast("Mapping[str, Any]", value)
    found = {name: lists[name] for name in ("content", "refusal") if list_in(lists, name)}
    if found:
        out.append(OpaqueDelta("compatible", "logprobs", found))


def _detail_text(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    raw = cast("Mapping[str, Any]", item)
    text = raw.get("text") or raw.get("summary")
    return text if isinstance(text, str) else ""


def _parts(parts: list[Any], out: list[Delta]) -> None:
    for part in parts:
        if not isinstance(part, dict):
            continue
        raw = cast("Mapping[str, Any]", part)
        match raw.get("type"):
            case "text":
                text = raw.get("text")
                if isinstance(text, str) and text:
                    out.append(TextDelta(text))
            case "thinking":
                thought = raw.get("thinking")
                if isinstance(thought, list):
                    thought = "".join(_detail_text(item) for item in cast("list[Any]", thought))
                if isinstance(thought, str) and thought:
                    out.append(ReasoningDelta(thought))
            case _:
                continue


def read_usage(body: Mapping[str, Any]) -> Usage | None:
    """The usage a chunk or completion reports, in any known place (OC-31)."""
    raw = body.get("usage")
    if not isinstance(raw, dict):
        groq = body.get("x_groq")
        raw = cast("Mapping[str, Any]", groq).get("usage") if isinstance(groq, dict) else None
    if not isinstance(raw, dict):
        return None
    usage = cast("Mapping[str, Any]", raw)
    prompt = _count(usage, "prompt_tokens") or 0
    completion = _count(usage, "completion_tokens") or 0
    total = _count(usage, "total_tokens")
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")
    cost = usage.get("cost")
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total if total is not None else prompt + completion,
        cached_tokens=cached,
        cache_write_tokens=_detail(usage, "prompt_tokens_details", "cache_write_tokens"),
        reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        cost=cost if isinstance(cost, int | float) else None,
    )


def _count(raw: Mapping[str, Any], key: str) -> int | None:
    value = raw.get(key)
    return value if isinstance(value, int) else None


def _detail(raw: Mapping[str, Any], group: str, key: str) -> int | None:
    details = raw.get(group)
    return _count(cast("Mapping[str, Any]", details), key) if isinstance(details, dict) else None


def _short(payload: Any) -> str:
    return msgspec.json.encode(payload).decode(errors="replace")[:300]
