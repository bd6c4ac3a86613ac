"""Anthropic Messages: the dialect ``anthropic``.

Source: the wire page ``anthropic-messages``; its rules N-1 to N-20 and AE-1 to AE-24 are named
where they act. The key goes into ``x-api-key`` and nowhere else (N-2).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from woollama.core.canonical import ChatRequest, ToolMessage
from woollama.core.errors import ProviderError
from woollama.core.wire.anthropic_blocks import DIALECT, BlockWriter
from woollama.core.wire.anthropic_history import RESULT_KEYS, encode_history, encode_system
from woollama.core.wire.anthropic_reading import MessageReading, with_code
from woollama.core.wire.anthropic_request import request_from_wire
from woollama.core.wire.anthropic_tools import encode_choice, encode_tools, is_own
from woollama.core.wire.codec import (
    JSON_HEADERS,
    Decoder,
    Dialect,
    Header,
    ModelInfo,
    WireRequest,
    WireSettings,
)
from woollama.core.wire.faults import reply_error
from woollama.core.wire.framing import ReplyDecoder
from woollama.core.wire.model_list import decode_openai_models
from woollama.core.wire.refusals import asks_for_nothing, unspoken
from woollama.core.wire.shapes import mapping_in, object_of
from woollama.core.wire.sse import EventSplitter

__all__ = [
    "ANTHROPIC",
    "DEFAULT_MAX_TOKENS",
    "STREAM_ABOVE_TOKENS",
    "AnthropicCodec",
]

DEFAULT_MAX_TOKENS = 16_384
"""The output cap when neither the request nor an operator names one (N-4)."""

STREAM_ABOVE_TOKENS = 21_333
"""From this output cap on a reply may outlive its connection unless it is streamed (AE-20)."""

_SAMPLED_VERSION = "2023-06-01"
_MODELS_PAGE = 1000
_ADAPTIVE: Mapping[str, Any] = MappingProxyType({"type": "adaptive", "display": "summarized"})
_EPHEMERAL: Mapping[str, Any] = MappingProxyType({"type": "ephemeral"})
_OWN_FIELDS = (
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "speed",
    "thinking",
    "user_profile_id",
)
_SAME = ("max_tokens", "service_tier", "temperature", "top_p", "top_k", *_OWN_FIELDS)
_RENAMED = ("parallel_tool_calls", "reasoning_effort", "stop", "user")

_ADAPTIVE_HINT = (
    "An effort brings adaptive thinking, which models before Claude 4.6 do not have: "
    "ask this model without an effort."
)
_STREAM_HINT = (
    "The reply took longer than the server waits: ask for a stream, "
    f"above all when max_tokens is over {STREAM_ABOVE_TOKENS}."
)

_encoder = msgspec.json.Encoder()


class AnthropicCodec:
    """Anthropic Messages under the API version that the settings name (N-1, AE-1)."""

    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        """See ``Codec.encode``; ``POST {base_url}/messages``."""
        writer = BlockWriter(settings.drop_params)
        spoken = _spoken(request, settings) - settings.drop_params
        dropped = unspoken(request, DIALECT, spoken, settings.drop_params)
        body = _body(request, spoken, writer, settings)
        if stream:
            body["stream"] = True
        # The cap is required, so ours stands in below whatever an operator or a client says (N-4).
        fields = {"max_tokens": DEFAULT_MAX_TOKENS, **settings.extra_body, **body}
        return WireRequest(
            method="POST",
            url=f"{base_url.rstrip('/')}/messages",
            headers={**JSON_HEADERS, "anthropic-version": settings.anthropic_version},
            body=_encoder.encode({**fields, **request.extra_body}),
            dropped=(*dropped, *writer.dropped),
        )

    def decode_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """See ``Codec.decode_request``."""
        return request_from_wire(body)

    def decoder(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> Decoder:
        """See ``Codec.decoder``."""
        return ReplyDecoder(MessageReading(new_id=new_id, now=now), EventSplitter())

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float]
    ) -> ProviderError:
        """See ``Codec.decode_error``; hints for thinking that is refused and for a lost wait."""
        error = with_code(reply_error(status, headers, body, now))
        if status == 400 and "adaptive" in error.message.lower():
            # The texts may change and nothing else tells this refusal apart; without the word
            # there is no hint, rather than a wrong one (N-12).
            error.hint = _ADAPTIVE_HINT
        elif error.kind == "timeout":
            error.hint = _STREAM_HINT
        return error

    def models_request(self, base_url: str) -> WireRequest:
        """See ``Codec.models_request``; ``GET {base_url}/models``, all of it in one page."""
        return WireRequest(
            method="GET",
            url=f"{base_url.rstrip('/')}/models?limit={_MODELS_PAGE}",
            headers={"anthropic-version": _SAMPLED_VERSION},
        )

    def decode_models(self, body: bytes) -> tuple[ModelInfo, ...]:
        """See ``Codec.decode_models``; the context is ``max_input_tokens`` (N-18)."""
        return decode_openai_models(body)


def _spoken(request: ChatRequest, settings: WireSettings) -> frozenset[str]:
    """The names of what ``request`` asks for that this dialect has words for, value by value."""
    asked = {**request.params.asked(), **request.extra}
    names = {"max_tokens", *_RENAMED, *_OWN_FIELDS}
    if settings.anthropic_version == _SAMPLED_VERSION:
        names.add("top_k")
        names.update(name for name in ("temperature", "top_p") if 0 <= asked.get(name, 0) <= 1)
    if _schema_of(asked.get("response_format")) is not None:
        names.add("response_format")
    metadata = asked.get("metadata", {})
    same_user = metadata.get("user_id") in (None, asked.get("user", metadata.get("user_id")))
    if metadata.keys() <= {"user_id"} and same_user:
        names.add("metadata")
    if asked.get("service_tier") == "standard_only":
        names.add("service_tier")
    if isinstance(asked.get("output_config"), Mapping):
        names.add("output_config")
    if all(is_own(tool) for tool in request.tools):
        names.add("tools")
    for i, message in enumerate(request.messages):
        if isinstance(message, ToolMessage):
            names.update(f"messages[{i}].{key}" for key in RESULT_KEYS)
    return frozenset(names)


def _body(
    request: ChatRequest, spoken: frozenset[str], writer: BlockWriter, settings: WireSettings
) -> dict[str, Any]:
    body: dict[str, Any] = {"model": request.model}
    if settings.max_output_tokens is not None:
        body["max_tokens"] = settings.max_output_tokens
    system = encode_system(request.messages, writer)
    if system is not None:
        body["system"] = system
    body["messages"] = encode_history(request.messages, writer, replay=settings.replay_reasoning)
    asked = {
        name: value
        for name, value in {**request.params.asked(), **request.extra}.items()
        if name in spoken and not asks_for_nothing(name, value)
    }
    tools = encode_tools(request.tools, writer, others="tools" in spoken)
    if tools:
        body["tools"] = tools
    choice = encode_choice(
        request.tool_choice,
        offered=bool(tools),
        parallel=asked.get("parallel_tool_calls", True),
    )
    if choice is not None:
        body["tool_choice"] = choice
    body.update(_steering(asked))
    if settings.cache_control:
        body.setdefault("cache_control", dict(_EPHEMERAL))
    return body


def _steering(asked: Mapping[str, Any]) -> dict[str, Any]:
    body = {name: asked[name] for name in _SAME if name in asked}
    if "stop" in asked:
        body["stop_sequences"] = asked["stop"]
    user_id = asked.get("user") or asked.get("metadata", {}).get("user_id")
    if user_id is not None:
        body["metadata"] = {"user_id": user_id}
    output = dict(asked.get("output_config", {}))
    if "reasoning_effort" in asked:
        output["effort"] = asked["reasoning_effort"]
        body.setdefault("thinking", dict(_ADAPTIVE))
    if "response_format" in asked:
        schema = _schema_of(asked["response_format"])
        output["format"] = {"type": "json_schema", "schema": schema}
    if output:
        body["output_config"] = output
    return body


def _schema_of(response_format: object) -> Mapping[str, Any] | None:
    said = object_of(response_format)
    schema = mapping_in(said, "json_schema").get("schema")
    if said.get("type") != "json_schema" or not isinstance(schema, Mapping):
        return None
    return cast("Mapping[str, Any]", schema)


ANTHROPIC = Dialect(
    name=DIALECT,
    family="anthropic",
    codec=AnthropicCodec(),
    key_place=Header(name="x-api-key"),
)
"""Anthropic Messages; ``provider = "anthropic"`` is a kind of its own and takes no dialect."""
