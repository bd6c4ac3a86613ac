"""Canonical replies in the words of Chat Completions, for the strict fakes that speak it."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from woollama.core.canonical import Reply, ToolCall, Usage, text_of
from woollama.core.testing.fake import FakeReply, count_tokens, json_reply, pieces

__all__ = ["completion", "event_stream", "model_list", "streamed", "usage_of"]

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


def completion(reply: Reply, *, model: str, reasoning: str, **fields: Any) -> FakeReply:
    """``reply`` as one ``chat.completion``.

    Args:
        reply: what is said.
        model: the name the request gave it.
        reasoning: the key of the thinking.
        **fields: further top-level fields, ``usage`` above all.
    """
    message: dict[str, Any] = {"role": "assistant", "content": _text(reply) or None}
    if reply.message.reasoning:
        message[reasoning] = reply.message.reasoning
    if reply.message.tool_calls:
        message["tool_calls"] = [_whole(call) for call in reply.message.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    head = _head(reply, model, "chat.completion")
    return json_reply(200, {**head, "choices": [choice], **fields})


def streamed(reply: Reply, *, model: str, reasoning: str, **end: Any) -> FakeReply:
    """``reply`` as a stream of chunks, a word or a piece of a call each.

    Args:
        reply: what is said.
        model: the name the request gave it.
        reasoning: the key of the thinking.
        **end: further top-level fields of the chunk that has the finish reason.
    """
    head = _head(reply, model, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    deltas += [{reasoning: piece} for piece in pieces(reply.message.reasoning or "")]
    deltas += [{"content": piece} for piece in pieces(_text(reply))]
    for index, call in enumerate(reply.message.tool_calls):
        deltas += [{"tool_calls": [fragment]} for fragment in _fragments(index, call)]
    chunks = [{**head, "choices": [_choice(delta, None)]} for delta in deltas]
    return event_stream([*chunks, {**head, "choices": [_choice({}, _finish(reply))], **end}])


def event_stream(payloads: Iterable[Any]) -> FakeReply:
    """Payloads as server-sent events, ``[DONE]`` behind them."""
    events = [b"data: " + msgspec.json.encode(payload) + b"\n\n" for payload in payloads]
    return FakeReply(
        headers={"content-type": "text/event-stream"},
        chunks=(*events, b"data: [DONE]\n\n"),
    )


def model_list(names: Iterable[str], *, owner: str) -> FakeReply:
    """The answer to ``GET /v1/models``."""
    entries = [{"id": name, "object": "model", "created": 0, "owned_by": owner} for name in names]
    return json_reply(200, {"object": "list", "data": entries})


def usage_of(reply: Reply, prompt: Iterable[str]) -> Usage:
    """The counts the script gives, else the words of the prompt and of the reply."""
    if reply.usage is not None:
        return reply.usage
    message = reply.message
    said = [_text(reply), message.reasoning or ""]
    said += [call.arguments for call in message.tool_calls]
    return Usage(
        prompt_tokens=sum(map(count_tokens, prompt)),
        completion_tokens=sum(map(count_tokens, said)),
    )


def _text(reply: Reply) -> str:
    return text_of(reply.message.content)


def _finish(reply: Reply) -> str:
    return reply.finish_reason if reply.finish_reason in _FINISHES else "stop"


def _head(reply: Reply, model: str, kind: str) -> dict[str, Any]:
    return {
        "id": reply.id,
        "object": kind,
        "created": reply.created,
        "model": reply.model or model,
        "system_fingerprint": "fp_fake",
    }


def _choice(delta: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _whole(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _fragments(index: int, call: ToolCall) -> list[dict[str, Any]]:
    # Later fragments name neither the call nor the function (CB-4, OC-7).
    half = len(call.arguments) // 2
    named = [(call.id, call.name, call.arguments[:half]), (None, None, call.arguments[half:])]
    return [
        {
            "index": index,
            "id": identity,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for identity, name, arguments in named
    ]
