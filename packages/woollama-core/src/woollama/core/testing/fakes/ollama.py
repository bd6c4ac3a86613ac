"""A strict ``ollama serve``: its own chat API and its list of models."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

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
from woollama.core.testing.fakes.ollama_rules import ChatBody, decode_chat, fault_of
from woollama.core.wire.arguments import arguments_object

__all__ = ["OllamaFake"]

_METHODS: Mapping[str, str] = MappingProxyType({"/api/chat": "POST", "/api/tags": "GET"})
_OTHER_KEY_PLACES = ("api-key", "x-api-key")
_SIGN_IN = "https://example.org/connect"
_DEFAULT_MODEL = "qwen3:4b"


class OllamaFake(Fake):
    """An Ollama with a script.

    A request without messages loads or unloads its model and takes nothing from the script (OL-16).
    """

    def __init__(
        self,
        script: Iterable[Reply | FakeReply] = (),
        *,
        key: str | None = None,
        models: Collection[str] = (),
        abilities: Collection[str] = ("tools", "thinking"),
    ) -> None:
        """A server that has not been asked yet.

        Args:
            script: as ``Fake``.
            key: None is a server of one's own, which reads no key (O-4); with a key it is Ollama's
                cloud.
            models: the models that are there; empty is any.
            abilities: what every model can.
        """
        super().__init__(script, key=key)
        self._models = tuple(models)
        self._abilities = frozenset(abilities)

    def refuse(self, request: FakeRequest) -> FakeReply | None:
        """See ``Fake.refuse``."""
        method = _METHODS.get(request.path)
        if method is None:
            return _text(404, "404 page not found")
        if method != request.method:
            return _text(405, "405 method not allowed")
        if not self._authorized(request.headers):
            return self.error(401, "unauthorized", signin_url=_SIGN_IN)
        if method == "GET":
            return None
        body = decode_chat(request.body)
        if isinstance(body, str):
            return self.error(400, body)
        if not body.model:
            return self.error(400, "model is required")
        if self._models and body.model not in self._models:
            return self.error(404, f"model '{body.model}' not found")
        fault = fault_of(body, self._abilities)
        if fault is not None:
            return self.error(400, fault)
        return None if body.messages else _loaded(body)

    def _authorized(self, headers: Mapping[str, str]) -> bool:
        if any(name in headers for name in _OTHER_KEY_PLACES):
            return False
        given = headers.get("authorization")
        if self._key is not None:
            return given == f"Bearer {self._key}"
        return given is None or given.startswith("Bearer ")

    def models(self, request: FakeRequest) -> FakeReply:
        """See ``Fake.models``; ``GET /api/tags``."""
        return json_reply(
            200, {"models": [_tag(name) for name in self._models or (_DEFAULT_MODEL,)]}
        )

    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        """See ``Fake.render``; lines unless ``stream`` is false (OL-1)."""
        head = {"model": body["model"], "created_at": _time(reply.created)}
        message = reply.message
        thinking = message.reasoning or ""
        text = text_of(message.content) or message.refusal or ""
        calls = [_call(i, call) for i, call in enumerate(message.tool_calls)]
        end = _end(reply, body)
        if body.get("stream", True):
            said = [{"content": "", "thinking": piece} for piece in pieces(thinking)]
            said += [{"content": piece} for piece in pieces(text)]
            said += [{"content": "", "tool_calls": [call]} for call in calls]
            lines = [{**head, "message": _assistant(part), "done": False} for part in said]
            return _lines([*lines, {**head, "message": _assistant({"content": ""}), **end}])
        whole: dict[str, Any] = {"content": text}
        if thinking:
            whole["thinking"] = thinking
        if calls:
            whole["tool_calls"] = calls
        return json_reply(200, {**head, "message": _assistant(whole), **end})

    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        """See ``Fake.error``; ``{"error": text}``."""
        return json_reply(status, {"error": message, **fields})


def _text(status: int, text: str) -> FakeReply:
    return FakeReply(status=status, headers={"content-type": "text/plain"}, chunks=(text.encode(),))


def _lines(payloads: Iterable[Any]) -> FakeReply:
    chunks = tuple(msgspec.json.encode(payload) + b"\n" for payload in payloads)
    return FakeReply(headers={"content-type": "application/x-ndjson"}, chunks=chunks)


def _loaded(body: ChatBody) -> FakeReply:
    reason = "unload" if body.keep_alive in (0, "0") else "load"
    reply = {
        "model": body.model,
        "created_at": _time(1_700_000_000),
        "message": _assistant({"content": ""}),
        "done": True,
        "done_reason": reason,
    }
    return _lines([reply]) if body.stream else json_reply(200, reply)


def _assistant(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", **said}


def _call(index: int, call: ToolCall) -> dict[str, Any]:
    function = {
        "index": index,
        "name": call.name,
        "arguments": arguments_object(call.arguments),
    }
    return {"id": call.id, "function": function}


def _end(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.usage
    counts = {
        "prompt_eval_count": _prompt_tokens(body) if usage is None else usage.prompt_tokens,
        "eval_count": _reply_tokens(reply) if usage is None else usage.completion_tokens,
    }
    reason = "length" if reply.finish_reason == "length" else "stop"
    return {
        "done": True,
        "done_reason": reply.native_finish_reason or reason,
        "total_duration": 100,
        "load_duration": 10,
        "prompt_eval_duration": 20,
        "eval_duration": 30,
        # A count of 0 is left out (OL-17).
        **{name: count for name, count in counts.items() if count},
    }


def _prompt_tokens(body: Mapping[str, Any]) -> int:
    messages = msgspec.convert(body, ChatBody).messages
    said = (text for message in messages for text in (message.content, message.thinking))
    return sum(map(count_tokens, said))


def _reply_tokens(reply: Reply) -> int:
    message = reply.message
    said = [text_of(message.content), message.reasoning or "", message.refusal or ""]
    said += [call.arguments for call in message.tool_calls]
    return sum(map(count_tokens, said))


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.123456789Z")


def _tag(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": _time(1_700_000_000),
        "size": 2_500_000_000,
        "digest": "0" * 64,
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "qwen3",
            "families": ["qwen3"],
            "parameter_size": "4.0B",
            "quantization_level": "Q4_K_M",
        },
    }
