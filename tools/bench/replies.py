"""What the mock upstream says: whole replies and the parts of streams, as bytes."""

import json
import re
from collections.abc import Mapping

import msgspec

MARK = "BENCH-OK"
"""Stands in every whole reply, so that a client can tell the mock's answer from another."""

_TEXT = MARK + " The quick brown fox jumps over the lazy dog and walks home along the river. " * 3
_CREATED = 1764500000
_DATE = "2026-11-30T00:00:00Z"
_REASONS = {200: b"OK", 404: b"Not Found"}
_NAMES = ("chat", "stream-200-0ms", "stream-50-100ms")
_STREAM_NAME = re.compile(r"stream-(\d+)-(\d+)ms$")
_HOLE = "@" * 20
"""Where a chunk's text goes: 19 digits and a space."""


def http_reply(body: object, *, status: int = 200) -> bytes:
    """A whole HTTP response with a JSON body."""
    data = _compact(body)
    head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, _REASONS[status], len(data)) + data


def chat_reply(model: str, *, native: bool) -> bytes:
    """The whole answer to a chat that does not stream; ``native`` means Ollama's protocol."""
    message: dict[str, object] = {"role": "assistant", "content": _TEXT}
    if native:
        return http_reply(
            {
                "model": model,
                "created_at": _DATE,
                "message": message,
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 12,
                "eval_count": 60,
            }
        )
    choice = {
        "index": 0,
        "message": {**message, "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    return http_reply(
        {
            "id": "chatcmpl-bench0000000000000000",
            "object": "chat.completion",
            "created": _CREATED,
            "model": model,
            "choices": [choice],
            "usage": {"prompt_tokens": 12, "completion_tokens": 60, "total_tokens": 72},
            "system_fingerprint": "fp_bench",
        }
    )


def fixed_reply(path: bytes) -> bytes:
    """The answer to anything that is not a chat: model lists, a version, or 404."""
    if path.endswith(b"/models"):
        listed = [
            {"id": name, "object": "model", "created": _CREATED, "owned_by": "bench"}
            for name in _NAMES
        ]
        return http_reply({"object": "list", "data": listed})
    if path == b"/api/tags":
        tags = [
            {"name": name, "model": name, "size": 1, "digest": "0" * 64, "modified_at": _DATE}
            for name in _NAMES
        ]
        return http_reply({"models": tags})
    if path == b"/api/version":
        return http_reply({"version": "0.99.0"})
    if path == b"/health":
        return http_reply({})
    return http_reply({"error": {"message": "no such path", "type": "bench"}}, status=404)


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What one streamed answer consists of, ready to be written.

    Attributes:
        head: Status, headers and what comes before the first text.
        chunk: One chunk of text, a ``%`` template for the clock in ns.
        tail: All that follows the last text.
        count: How many chunks of text.
        delay_s: Seconds from one to the next.
    """

    head: bytes
    chunk: bytes
    tail: bytes
    count: int
    delay_s: float


def stream_script(model: str, *, native: bool, usage: bool) -> Script:
    """The stream that a model's name asks for: ``stream-COUNT-DELAYms``, else 10 chunks at once.

    Args:
        model: The name; what stands before its last ``/`` does not count.
        native: Ollama's NDJSON instead of Chat Completions' SSE.
        usage: Whether the client asked for the usage event (Ollama always tells).
    """
    found = _STREAM_NAME.match(model.rpartition("/")[2])
    count, delay_s = (int(found[1]), int(found[2]) / 1000) if found else (10, 0.0)
    kind = b"application/x-ndjson" if native else b"text/event-stream; charset=utf-8"
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: "
        + kind
        + b"\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    if native:
        whole = _line(model, _HOLE, {"done": False})
        counts = {"prompt_eval_count": 12, "eval_count": count}
        end = _line(model, "", {"done": True, "done_reason": "stop", **counts})
    else:
        head += _framed(_event(model, {"role": "assistant", "content": ""}))
        whole = _event(model, {"content": _HOLE})
        end = _event(model, {}, finish="stop")
        if usage:
            end += _usage_event(model, count)
        end += b"data: [DONE]\n\n"
    before, after = (part.replace(b"%", b"%%") for part in _framed(whole).split(_HOLE.encode()))
    return Script(
        head=head,
        chunk=before + b"%019d " + after,
        tail=_framed(end) + b"0\r\n\r\n",
        count=count,
        delay_s=delay_s,
    )


def _compact(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _framed(payload: bytes) -> bytes:
    """One chunk of HTTP's chunked transfer coding."""
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def _line(model: str, text: str, more: Mapping[str, object]) -> bytes:
    message = {"role": "assistant", "content": text}
    return _compact({"model": model, "created_at": _DATE, "message": message, **more}) + b"\n"


def _event(model: str, delta: Mapping[str, object], *, finish: str | None = None) -> bytes:
    return _sse(model, [{"index": 0, "delta": delta, "finish_reason": finish}], {})


def _usage_event(model: str, count: int) -> bytes:
    usage = {"prompt_tokens": 12, "completion_tokens": count, "total_tokens": 12 + count}
    return _sse(model, [], {"usage": usage})


def _sse(model: str, choices: list[dict[str, object]], more: Mapping[str, object]) -> bytes:
    chunk = {
        "id": "chatcmpl-bench0000000000000000",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": model,
        "choices": choices,
        **more,
    }
    return b"data: " + _compact(chunk) + b"\n\n"
