"""A strict server of Chat Completions."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from woollama.core.canonical import Reply, message_to_openai, text_of, usage_to_openai
from woollama.core.testing.fake import Fake, FakeReply, FakeRequest, json_reply, pieces
from woollama.core.testing.fakes.chat_replies import event_stream, model_list, usage_of
from woollama.core.testing.fakes.compatible_rules import check_body, check_cap, check_effort
from woollama.core.testing.fakes.compatible_shapes import ChatBody
from woollama.core.testing.fakes.openai_rules import (
    Refused,
    check_model,
    openai_error,
    refuse_key,
    shaped,
    texts_of,
)
from woollama.core.wire.shapes import mapping_in

__all__ = ["CompatibleFake"]

_METHODS = (("/v1/chat/completions", "POST"), ("/v1/models", "GET"))


class CompatibleFake(Fake):
    """A server that knows the roles ``system``, ``user``, ``assistant`` and ``tool`` (OC-1).

    It takes thinking in history as ``reasoning_content`` (A-3) and says its own so.
    """

    def __init__(
        self,
        script: Iterable[Reply | FakeReply] = (),
        *,
        key: str | None = None,
        models: Collection[str] = (),
        cap_field: Literal["max_tokens", "max_completion_tokens"] | None = None,
        effort_beside_tools: Literal["take", "refuse"] = "take",
        default_effort: str | None = None,
    ) -> None:
        """A server that has not been asked yet.

        Args:
            script: as ``Fake``.
            key: as ``Fake``.
            models: the models that are there; empty is any.
            cap_field: the only name it takes for the output cap (OC-2); None takes both.
            effort_beside_tools: ``refuse`` does as OpenAI's reasoning models do (A-14).
            default_effort: the model's own effort, which counts when none is sent (OC-43).
        """
        super().__init__(script, key=key)
        self._models = tuple(models)
        self._cap_field = cap_field
        self._refuses_effort = effort_beside_tools == "refuse"
        self._default_effort = default_effort

    def refuse(self, request: FakeRequest) -> FakeReply | None:
        """See ``Fake.refuse``."""
        method = dict(_METHODS).get(request.path)
        if method is None:
            return self.error(404, f"Invalid URL ({request.method} {request.path})")
        if method != request.method:
            return self.error(405, f"Not allowed to {request.method} on {request.path}.")
        refusal = refuse_key(request, self._key)
        if refusal is not None or request.method == "GET":
            return refusal
        try:
            self._check(request.json())
        except Refused as refused:
            return refused.reply
        return None

    def _check(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise Refused(self.error(400, "We could not parse the JSON body of your request."))
        body = shaped(value, ChatBody)
        check_model(body.model, self._models)
        if self._cap_field is not None:
            check_cap(body, self._cap_field)
        check_body(body)
        if self._refuses_effort:
            check_effort(body, self._default_effort)

    def models(self, request: FakeRequest) -> FakeReply:
        """See ``Fake.models``; ``GET /v1/models``."""
        return model_list(self._models, owner="fake")

    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        """See ``Fake.render``; usage in a stream only when ``include_usage`` asks for it."""
        usage = usage_to_openai(usage_of(reply, texts_of(body["messages"])))
        if not body.get("stream"):
            return json_reply(200, {**_whole(reply, body), "usage": usage})
        return event_stream(_chunks(reply, body, usage))

    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        """See ``Fake.error``; ``{"error": {message, type, param, code}}``."""
        return openai_error(status, message, **fields)


def _head(reply: Reply, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": reply.id,
        "object": kind,
        "created": reply.created,
        "model": reply.model or body["model"],
    }


def _whole(reply: Reply, body: Mapping[str, Any]) -> dict[str, Any]:
    message = message_to_openai(reply.message, reasoning="reasoning_content")
    choices = [
        {
            "index": index,
            "message": {"refusal": None, **message},
            "logprobs": None,
            "finish_reason": reply.finish_reason,
        }
        for index in range(body.get("n") or 1)
    ]
    return {**_head(reply, body, "chat.completion"), "choices": choices}


def _chunks(reply: Reply, body: Mapping[str, Any], usage: Any) -> Iterator[dict[str, Any]]:
    head = _head(reply, body, "chat.completion.chunk")
    counts = mapping_in(body, "stream_options").get("include_usage") is True
    shown = {"usage": None} if counts else {}
    for index in range(body.get("n") or 1):
        for delta in _deltas(reply):
            yield {**head, "choices": [_choice(index, delta, None)], **shown}
        yield {**head, "choices": [_choice(index, {}, reply.finish_reason)], **shown}
    if counts:
        yield {**head, "choices": [], "usage": usage}


def _choice(index: int, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    message = reply.message
    yield {"role": "assistant", "content": "", "refusal": None}
    texts = {
        "reasoning_content": message.reasoning or "",
        "content": text_of(message.content),
        "refusal": message.refusal or "",
    }
    for key, text in texts.items():
        yield from ({key: piece} for piece in pieces(text))
    yield from ({"reasoning_details": [detail]} for detail in message.reasoning_details)
    for index, call in enumerate(message.tool_calls):
        function = {"name": call.name, "arguments": ""}
        opened: dict[str, Any] = {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": function,
        }
        if call.extra_content is not None:
            opened["extra_content"] = call.extra_content
        yield {"tool_calls": [opened]}
        for piece in pieces(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
