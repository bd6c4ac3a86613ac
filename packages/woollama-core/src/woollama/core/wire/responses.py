"""OpenAI Responses: the dialect ``responses``.

Source: the wire page ``openai-responses``; its rules R-1 to R-19 and RE-1 to RE-22 are named where
they act.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from woollama.core.canonical import ChatRequest, FunctionTool, NamedTool, OtherChoice, Tool
from woollama.core.errors import ProviderError
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
from woollama.core.wire.model_list import decode_openai_models
from woollama.core.wire.openai_family import openai_params
from woollama.core.wire.refusals import asks_for_nothing, refuse
from woollama.core.wire.responses_input import request_from_responses
from woollama.core.wire.responses_items import NAME, ItemWriting
from woollama.core.wire.responses_reading import ResponsesReading
from woollama.core.wire.shapes import mapping_in, object_of
from woollama.core.wire.sse import EventSplitter

__all__ = ["RESPONSES", "ResponsesCodec"]

_FIELDS = frozenset(
    {
        "access_programs",
        "background",
        "background_options",
        "context_management",
        "image",
        "include",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "moderation",
        "parallel_tool_calls",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "temperature",
        "text",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
"""What the API takes beside what is built here. Any other leaves only if it asks for something."""

_BUILT_HERE = ("input", "instructions")
_STATEFUL = ("previous_response_id", "conversation", "store")

_NO_PARAMETERS = msgspec.Raw(b'{"type":"object","properties":{}}')
_encoder = msgspec.json.Encoder()


class ResponsesCodec:
    """Stateless and always streamed, whoever the provider is (R-7, R-12, R-13)."""

    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        """See ``Codec.encode``; ``POST {base_url}/responses`` (R-1).

        The reply is asked for as a stream whatever ``stream`` says (R-13); who did not ask for one
        is given the whole at its end.
        """
        params, dropped = openai_params(
            request, settings, dialect=NAME, cap_field="max_output_tokens"
        )
        writing = ItemWriting(settings)
        writing.write(request.messages)
        body: dict[str, Any] = {"model": request.model, "input": writing.items}
        if writing.instructions:
            body["instructions"] = writing.instructions
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _choice(request)
        body |= _params(params)
        options = dict(request.params.stream_options or {})
        options.pop("include_usage", None)  # usage always comes
        if options:
            body["stream_options"] = options
        body |= {"store": False, "stream": True}
        return WireRequest(
            method="POST",
            url=f"{base_url.rstrip('/')}/responses",
            headers=JSON_HEADERS,
            body=_encoder.encode({**settings.extra_body, **body, **request.extra_body}),
            dropped=(*dropped, *writing.dropped),
        )

    def decode_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """See ``Codec.decode_request``."""
        return request_from_responses(body)

    def decoder(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> Decoder:
        """See ``Codec.decoder``; the first byte decides, whatever the label says (R-14)."""
        return ReplyDecoder(ResponsesReading(new_id=new_id, now=now), EventSplitter())

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float]
    ) -> ProviderError:
        """See ``Codec.decode_error``; OpenAI's shape, or ``{"detail": …}`` (RE-12)."""
        return reply_error(status, headers, body, now)

    def models_request(self, base_url: str) -> WireRequest:
        """See ``Codec.models_request``; ``GET {base_url}/models``."""
        return WireRequest(method="GET", url=f"{base_url.rstrip('/')}/models")

    def decode_models(self, body: bytes) -> tuple[ModelInfo, ...]:
        """See ``Codec.decode_models``."""
        return decode_openai_models(body)


def _params(asked: dict[str, Any]) -> dict[str, Any]:
    for name in (*_BUILT_HERE, *_STATEFUL):
        value = asked.pop(name, None)
        if not asks_for_nothing(name, value):
            raise refuse(NAME, name)
    effort = asked.pop("reasoning_effort", None)
    if effort is not None:
        asked["reasoning"] = {**mapping_in(asked, "reasoning"), "effort": effort}
    text = {
        "format": _flat(asked.pop("response_format", None)),
        "verbosity": asked.pop("verbosity", None),
    }
    text = {key: value for key, value in text.items() if value is not None}
    if text:
        asked["text"] = {**mapping_in(asked, "text"), **text}
    # A field the API lacks is sent as it is and the server refuses it, unless its value is
    # the one that every API assumes.
    return {
        name: value
        for name, value in asked.items()
        if name in _FIELDS or not asks_for_nothing(name, value)
    }


def _tool(tool: Tool) -> Any:
    if not isinstance(tool, FunctionTool):
        return _flat(tool.raw)
    raw: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description is not None:
        raw["description"] = tool.description
    raw["parameters"] = _NO_PARAMETERS if tool.parameters is None else tool.parameters
    # Absent means strict in practice, and then optional properties are refused (R-3, RE-13).
    raw["strict"] = bool(tool.strict)
    return {**raw, **tool.extra}


def _choice(request: ChatRequest) -> Any:
    match request.tool_choice:
        case NamedTool(name=name):
            return {"type": "function", "name": name}
        case OtherChoice(raw=raw):
            choice = {**_flat(raw)}
            tools = choice.get("tools")
            if isinstance(tools, list):
                choice["tools"] = [_flat(tool) for tool in cast("list[Any]", tools)]
            return choice
        case choice:
            return choice


def _flat(raw: Any) -> Any:
    """Chat nests what belongs to a type under its name, Responses does not."""
    outer = object_of(raw)
    kind = outer.get("type")
    inner = outer.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, Mapping):
        return raw
    rest = {key: value for key, value in outer.items() if key != kind}
    return rest | cast("dict[str, Any]", inner)


RESPONSES = Dialect(name=NAME, family="openai", codec=ResponsesCodec(), key_place=Bearer())
"""The Responses API of OpenAI and of those who speak it."""
