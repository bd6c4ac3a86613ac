"""How ``POST /v1/responses`` says a reply: one object, or an event for every step towards it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from woollama.core.canonical import Reply, Usage, text_of
from woollama.core.testing.fake import pieces
from woollama.core.testing.fakes.chat_replies import usage_of
from woollama.core.testing.fakes.openai_rules import texts_of

__all__ = ["events_of", "response_of"]

_INCOMPLETE: Mapping[str, str] = MappingProxyType(
    {"length": "max_output_tokens", "content_filter": "content_filter"}
)


def response_of(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole response; the finish ``error`` makes it a failed one."""
    failed = reply.finish_reason == "error"
    reason = _INCOMPLETE.get(reply.finish_reason)
    status = "failed" if failed else "incomplete" if reason else "completed"
    error = {"code": "server_error", "message": "The model failed."} if failed else None
    return {
        "id": reply.id,
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "model": reply.model or body["model"],
        "output": [] if failed else _items(reply, status),
        "error": error,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "temperature": body.get("temperature"),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p"),
        "store": body.get("store", True),
        "usage": None if failed else _usage(usage_of(reply, _prompt(body))),
    }


def _items(reply: Reply, status: str) -> list[dict[str, Any]]:
    message = reply.message
    items: list[dict[str, Any]] = []
    if message.reasoning:
        texts = message.reasoning.split("\n\n")
        summary = [{"type": "summary_text", "text": text} for text in texts]
        items.append({"id": "rs_1", "type": "reasoning", "summary": summary})
        items[-1]["encrypted_content"] = "gAAAA"
    parts: list[dict[str, Any]] = []
    text = text_of(message.content)
    if text:
        parts.append({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    if message.refusal:
        parts.append({"type": "refusal", "refusal": message.refusal})
    if parts:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "status": status}
        items.append({**head, "content": parts})
    for number, call in enumerate(message.tool_calls, 1):
        head = {"id": f"fc_{number}", "type": "function_call", "status": status}
        named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({**head, **named})
    return items


def _prompt(body: Mapping[str, Any]) -> Iterator[str]:
    yield body.get("instructions") or ""
    yield from texts_of([{"content": body["input"]}])


def _usage(usage: Usage) -> dict[str, Any]:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    details = {
        "cached_tokens": usage.cached_tokens or 0,
        "cache_write_tokens": usage.cache_write_tokens or 0,
    }
    return {
        "input_tokens": prompt,
        "input_tokens_details": details,
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens or prompt + completion,
    }


def events_of(response: dict[str, Any], *, empty_end: bool = False) -> Iterator[dict[str, Any]]:
    """The events of a response, numbered.

    Args:
        response: the whole.
        empty_end: whether the terminal response repeats no output (R-16).
    """
    begun: dict[str, Any] = {**response, "status": "in_progress", "output": [], "usage": None}
    begun |= {"error": None, "incomplete_details": None}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(response["output"]):
        steps.extend(_steps(index, item))
    ended: dict[str, Any] = {**response, "output": []} if empty_end else response
    steps.append((f"response.{response['status']}", {"response": ended}))
    for number, (name, fields) in enumerate(steps):
        yield {"type": name, "sequence_number": number, **fields}


def _steps(index: int, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    at = {"output_index": index}
    inside = {**at, "item_id": item["id"]}
    yield "response.output_item.added", {**at, "item": _begun(item)}
    match item["type"]:
        case "reasoning":
            for i, part in enumerate(item["summary"]):
                yield from _summary_steps({**inside, "summary_index": i}, part)
        case "message":
            for i, part in enumerate(item["content"]):
                yield from _part_steps({**inside, "content_index": i}, part)
        case _:
            name = "response.function_call_arguments"
            for piece in pieces(item["arguments"]):
                yield f"{name}.delta", {**inside, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield f"{name}.done", {**inside, **done}
    yield "response.output_item.done", {**at, "item": item}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    begun: dict[str, Any] = {"status": "in_progress"}
    match item["type"]:
        case "reasoning":
            begun = {"summary": [], "encrypted_content": ""}
        case "message":
            begun["content"] = []
        case _:
            begun["arguments"] = ""
    return {**item, **begun}


def _summary_steps(
    at: dict[str, Any], part: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
    yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**at, "part": part}


def _part_steps(at: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = part["type"]
    key = "refusal" if kind == "refusal" else "text"
    extra: dict[str, Any] = {} if kind == "refusal" else {"logprobs": []}
    yield "response.content_part.added", {**at, "part": {**part, key: ""}}
    for piece in pieces(part[key]):
        yield f"response.{kind}.delta", {**at, "delta": piece, **extra}
    yield f"response.{kind}.done", {**at, key: part[key], **extra}
    yield "response.content_part.done", {**at, "part": part}
