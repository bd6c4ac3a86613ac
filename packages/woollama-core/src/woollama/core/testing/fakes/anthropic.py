"""A strict Anthropic: its Messages API and its list of models."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from woollama.core.canonical import Reply, ToolCall, text_of
from woollama.core.testing.fake import (
    Fake,
    FakeReply,
    FakeRequest,
    count_tokens,
    json_reply,
    pieces,
)
from woollama.core.testing.fakes.anthropic_rules import (
    VERSIONS,
    decode_body,
    fault_of,
    signature_of,
)
from woollama.core.wire.arguments import arguments_object
from woollama.core.wire.shapes import mapping_in

__all__ = ["AnthropicFake"]

_METHODS: Mapping[str, str] = MappingProxyType({"/v1/messages": "POST", "/v1/models": "GET"})
_LIMIT_BYTES = 32 * 1024 * 1024
_REQUEST_ID = "req_fake"
_STOP_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    }
)
_ERROR_TYPES: Mapping[int, str] = MappingProxyType(
    {
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        409: "conflict_error",
        413: "request_too_large",
        429: "rate_limit_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
)


class AnthropicFake(Fake):
    """An Anthropic with a script. It takes any model's name, and runs no tools of its own."""

    def __init__(
        self,
        script: Iterable[Reply | FakeReply] = (),
        *,
        key: str | None = None,
        models: Collection[str] = ("claude-x",),
        adaptive: bool = True,
    ) -> None:
        """A server that has not been asked yet.

        Args:
            script: as ``Fake``.
            key: as ``Fake``.
            models: the names in its list.
            adaptive: False makes its models older than 4.6: they refuse adaptive thinking (N-12).
        """
        super().__init__(script, key=key)
        self._models = tuple(models)
        self._adaptive = adaptive

    def refuse(self, request: FakeRequest) -> FakeReply | None:
        """See ``Fake.refuse``."""
        method = _METHODS.get(request.path)
        if method is None:
            return self.error(404, "Not found")
        if method != request.method:
            return self.error(405, "Method not allowed")
        return self._refuse_headers(request.headers) or self._refuse_body(request)

    def _refuse_headers(self, headers: Mapping[str, str]) -> FakeReply | None:
        given = headers.get("x-api-key")
        if "authorization" in headers:
            return self.error(401, "Invalid bearer token")
        if not given:
            return self.error(401, "x-api-key header is required")
        if self._key is not None and given != self._key:
            return self.error(401, "invalid x-api-key")
        version = headers.get("anthropic-version")
        if version is None:
            return self.error(400, "anthropic-version: header is required")
        if version not in VERSIONS:
            return self.error(400, f'anthropic-version: "{version}" is not a valid version')
        return None

    def _refuse_body(self, request: FakeRequest) -> FakeReply | None:
        if request.method == "GET":
            return None
        if len(request.body) > _LIMIT_BYTES:
            return self.error(413, "Request exceeds the maximum size")
        body = decode_body(request.body)
        if isinstance(body, str):
            return self.error(400, body)
        fault = fault_of(body, request.headers["anthropic-version"], adaptive=self._adaptive)
        return None if fault is None else self.error(400, fault)

    def models(self, request: FakeRequest) -> FakeReply:
        """See ``Fake.models``; ``GET /v1/models``."""
        entries = [_model(name) for name in self._models]
        names = [*self._models]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
        return json_reply(200, {"data": entries, "has_more": False, **ends})

    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        """See ``Fake.render``; several events a block when ``stream`` is true."""
        reason = reply.native_finish_reason or _STOP_REASONS.get(reply.finish_reason)
        if reason is None:
            return self.error(500, "Internal server error")
        message = _message(reply, body, reason)
        headers = {"request-id": _REQUEST_ID}
        if not body.get("stream"):
            return json_reply(200, message, headers)
        return FakeReply(
            headers={"content-type": "text/event-stream", **headers},
            chunks=tuple(_frame(event) for event in _events(message)),
        )

    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        """See ``Fake.error``; ``{"type": "error", "error": {…}, "request_id": …}``."""
        other = "api_error" if status >= 500 else "invalid_request_error"
        error = {"type": _ERROR_TYPES.get(status, other), "message": message, **fields}
        body = {"type": "error", "error": error, "request_id": _REQUEST_ID}
        return json_reply(status, body, {"request-id": _REQUEST_ID})


def _message(reply: Reply, body: Mapping[str, Any], reason: str) -> dict[str, Any]:
    refused = {"type": "refusal", "category": None, "explanation": reply.message.refusal}
    ending: list[str] = body.get("stop_sequences", []) if reason == "stop_sequence" else []
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model or body["model"],
        "content": _content(reply, body),
        "stop_reason": reason,
        "stop_sequence": next(iter(ending), None),
        "stop_details": refused if reason == "refusal" else None,
        "usage": _usage(reply, body),
    }


def _content(reply: Reply, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = reply.message
    blocks: list[dict[str, Any]] = []
    if message.reasoning:
        shown = mapping_in(body, "thinking").get("display") != "omitted"
        thinking = message.reasoning if shown else ""
        signed = {"thinking": thinking, "signature": signature_of(thinking)}
        blocks.append({"type": "thinking", **signed})
    text = text_of(message.content)
    if text:
        blocks.append({"type": "text", "text": text, "citations": None})
    return [*blocks, *map(_call, message.tool_calls)]


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_object(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _usage(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage
    if usage is None:
        return {"input_tokens": _prompt_tokens(body), "output_tokens": _reply_tokens(reply)}
    cached = {
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
    fresh = (usage.prompt_tokens or 0) - sum(count or 0 for count in cached.values())
    counts: dict[str, Any] = {
        "input_tokens": fresh,
        **cached,
        "output_tokens": usage.completion_tokens or 0,
    }
    if usage.reasoning_tokens is not None:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def _prompt_tokens(body: Mapping[str, Any]) -> int:
    return sum(_words(said) for said in (body.get("system"), *body["messages"]))


def _words(said: Any) -> int:
    match said:
        case str():
            return count_tokens(said)
        case list():
            return sum(map(_words, cast("list[Any]", said)))
        case {"type": "tool_use", "input": given}:
            return count_tokens(msgspec.json.encode(given).decode())
        case {"text": inner} | {"content": inner}:
            return _words(inner)
        case _:
            return 0


def _reply_tokens(reply: Reply) -> int:
    message = reply.message
    said = [text_of(message.content), message.reasoning or ""]
    said += [call.arguments for call in message.tool_calls]
    return sum(map(count_tokens, said))


def _events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    usage = message["usage"]
    ending = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    begun = {**usage, "output_tokens": 1}
    begun.pop("output_tokens_details", None)
    opened: dict[str, Any] = {**message, **dict.fromkeys(ending), "content": [], "usage": begun}
    yield {"type": "message_start", "message": opened}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        start, deltas = _streamed(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ending, "usage": usage}
    yield {"type": "message_stop"}


def _streamed(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])
            ]
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            return {**block, "text": ""}, deltas
        case _:
            arguments = bytes(block["input"]).decode()
            # The first piece is empty, and a call without arguments has no other (AE-5).
            parts = ["", *(pieces(arguments) if arguments != "{}" else [])]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
            return {**block, "input": {}}, deltas


def _frame(event: Mapping[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event["type"].encode(), msgspec.json.encode(event))


def _model(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
        "capabilities": None,
    }
