"""A strict Cerebras: Chat Completions that refuses what it does not know, and its models."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from woollama.core.canonical import AssistantMessage, Reply, text_of, usage_to_openai
from woollama.core.testing.fake import Fake, FakeReply, FakeRequest, json_reply
from woollama.core.testing.fakes.cerebras_rules import ChatBody, Refusal, decode_chat, texts_of
from woollama.core.testing.fakes.chat_replies import completion, model_list, streamed, usage_of

__all__ = ["CerebrasFake"]

_METHODS: Mapping[str, str] = MappingProxyType(
    {"/v1/chat/completions": "POST", "/v1/models": "GET"}
)
_TIME_INFO: Mapping[str, float] = MappingProxyType(
    {"queue_time": 0.001, "prompt_time": 0.002, "completion_time": 0.01, "total_time": 0.02}
)
_TYPES: Mapping[int, str] = MappingProxyType(
    {404: "not_found_error", 429: "too_many_requests_error", 500: "server_error"}
)


class CerebrasFake(Fake):
    """A Cerebras with a script."""

    def __init__(
        self,
        script: Iterable[Reply | FakeReply] = (),
        *,
        key: str | None = None,
        models: Collection[str] = ("gpt-oss-120b", "zai-glm-4.7"),
    ) -> None:
        """A server that has not been asked yet.

        Args:
            script: as ``Fake``.
            key: as ``Fake``.
            models: the models that are there.
        """
        super().__init__(script, key=key)
        self._models = tuple(models)

    def refuse(self, request: FakeRequest) -> FakeReply | None:
        """See ``Fake.refuse``."""
        if _METHODS.get(request.path) != request.method:
            return self.error(404, "Not found", code="not_found")
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not key or self._key not in {None, key}:
            return self.error(401, "Wrong API Key", param="api_key", code="wrong_api_key")
        if request.method == "GET":
            return None
        body = decode_chat(request.body)
        if isinstance(body, Refusal):
            return self.error(400, body.message, param="validation_error", code=body.code)
        if body.model not in self._models:
            said = f"Model {body.model} does not exist or you do not have access to it."
            return self.error(404, said, param="model", code="model_not_found")
        return None

    def models(self, request: FakeRequest) -> FakeReply:
        """See ``Fake.models``."""
        return model_list(self._models, owner="Cerebras")

    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        """See ``Fake.render``; usage and time come with the finish reason (CB-3)."""
        asked = msgspec.convert(body, ChatBody)
        usage = usage_of(reply, texts_of(asked.messages))
        shown = msgspec.structs.replace(reply, message=_shown(reply.message, asked))
        end = {"usage": usage_to_openai(usage), "time_info": dict(_TIME_INFO)}
        say = streamed if asked.stream else completion
        return say(shown, model=asked.model, reasoning="reasoning", **end)

    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        """See ``Fake.error``; the body is flat (CB-2)."""
        kind = _TYPES.get(status, "invalid_request_error")
        return json_reply(
            status, {"message": message, "type": kind, "param": None, "code": None, **fields}
        )


def _shown(message: AssistantMessage, asked: ChatBody) -> AssistantMessage:
    """The thinking where ``reasoning_format`` wants it: apart, in the text (CB-7), or nowhere."""
    if asked.reasoning_format not in {"raw", "hidden"}:
        return message
    text = text_of(message.content)
    if asked.reasoning_format == "raw" and message.reasoning:
        mark = ("", "") if asked.model.startswith("gpt-oss") else ("<think>", "</think>")
        text = message.reasoning.join(mark) + text
    return msgspec.structs.replace(message, content=text or None, reasoning=None)
