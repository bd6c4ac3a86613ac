"""OpenAI Chat Completions: the dialect ``compatible`` and what ``cerebras`` shares with it.

Source: the wire page ``openai-chat``; its rules OC-1 to OC-46 are named where they act.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from woollama.core.canonical import (
    ChatRequest,
    Message,
    NamedTool,
    OtherChoice,
    message_to_openai,
    request_from_openai,
    tool_to_openai,
)
from woollama.core.errors import ProviderError
from woollama.core.wire.chat_reading import ChatReading
from woollama.core.wire.codec import (
    JSON_HEADERS,
    Bearer,
    Decoder,
    Dialect,
    ModelInfo,
    WireRequest,
    WireSettings,
)
from woollama.core.wire.faults import reply_error
from woollama.core.wire.framing import ReplyDecoder
from woollama.core.wire.merging import merged
from woollama.core.wire.model_list import decode_openai_models
from woollama.core.wire.openai_family import openai_params
from woollama.core.wire.sse import EventSplitter

__all__ = ["COMPATIBLE", "ChatCodec"]

_encoder = msgspec.json.Encoder()


class ChatCodec:
    """Chat Completions, told apart only by how history is written (A-2 to A-4)."""

    def __init__(
        self,
        name: str,
        *,
        reasoning: str,
        output_field: str | None = None,
        opaque: bool = False,
    ) -> None:
        """One dialect of the family.

        Args:
            name: the dialect's, for messages.
            reasoning: the key of an assistant's thinking in history.
            output_field: the field of the output cap, where the dialect fixes it.
            opaque: whether servers may want back what only they understand (RU-12).
        """
        self._name = name
        self._reasoning = reasoning
        self._output_field = output_field
        self._opaque = opaque

    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        """See ``Codec.encode``; ``POST {base_url}/chat/completions``."""
        body, dropped = self._body(request, settings)
        if stream:
            body["stream"] = True
            options = dict(request.params.stream_options or {})
            if settings.stream_usage:
                options["include_usage"] = True
            if options:
                body["stream_options"] = options
        return WireRequest(
            method="POST",
            url=f"{base_url.rstrip('/')}/chat/completions",
            headers=JSON_HEADERS,
            body=_encoder.encode({**settings.extra_body, **body, **request.extra_body}),
            dropped=dropped,
        )

    def _body(
        self, request: ChatRequest, settings: WireSettings
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        messages = merged(request.messages) if settings.merge_system else request.messages
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [self._message(message) for message in messages],
        }
        if request.tools:
            body["tools"] = [tool_to_openai(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _choice(request)
        asked, dropped = openai_params(
            request,
            settings,
            dialect=self._name,
            cap_field=self._output_field or settings.output_field,
        )
        body.update(asked)
        return body, dropped

    def _message(self, message: Message) -> dict[str, Any]:
        body = message_to_openai(message, reasoning=self._reasoning)
        if body["role"] == "developer":
            body["role"] = "system"
        if not self._opaque:
            body.pop("reasoning_details", None)
            for call in body.get("tool_calls", ()):
                call.pop("extra_content", None)
        return body

    def decode_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """See ``Codec.decode_request``."""
        return request_from_openai(body)

    def decoder(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> Decoder:
        """See ``Codec.decoder``."""
        return ReplyDecoder(ChatReading(new_id=new_id, now=now), EventSplitter())

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float]
    ) -> ProviderError:
        """See ``Codec.decode_error``; an effort refused beside tools gets advice (A-14, OC-43)."""
        error = reply_error(status, headers, body, now)
        if error.status == 400 and error.param == "reasoning_effort" and "tool" in error.message:
            error.hint = (
                'Set dialect = "responses" for this provider or model: the Responses API takes '
                "an effort beside tools."
            )
        return error

    def models_request(self, base_url: str) -> WireRequest:
        """See ``Codec.models_request``; ``GET {base_url}/models``."""
        return WireRequest(method="GET", url=f"{base_url.rstrip('/')}/models")

    def decode_models(self, body: bytes) -> tuple[ModelInfo, ...]:
        """See ``Codec.decode_models``."""
        return decode_openai_models(body)


def _choice(request: ChatRequest) -> Any:
    match request.tool_choice:
        case NamedTool(name=name):
            return {"type": "function", "function": {"name": name}}
        case OtherChoice(raw=raw):
            return raw
        case choice:
            return choice


COMPATIBLE = Dialect(
    name="compatible",
    family="openai",
    codec=ChatCodec("compatible", reasoning="reasoning_content", opaque=True),
    key_place=Bearer(),
)
"""Chat Completions as everyone but a few speaks it; the default of kind ``openai``."""
