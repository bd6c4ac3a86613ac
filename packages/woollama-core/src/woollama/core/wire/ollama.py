"""Ollama's own chat API: the dialect ``ollama``, never the ``/v1`` shim.

Source: the wire page ``ollama-native``; its rules O-1 to O-4 and OL-1 to OL-27 are named where they
act.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from woollama.core.canonical import (
    ChatRequest,
    FunctionTool,
    NamedTool,
    ToolMessage,
    tool_to_openai,
)
from woollama.core.errors import ProviderError, ReplyError
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
from woollama.core.wire.framing import ReplyDecoder, parse
from woollama.core.wire.merging import merged
from woollama.core.wire.ndjson import LineSplitter
from woollama.core.wire.ollama_messages import NAME, MessageWriter
from woollama.core.wire.ollama_reading import OllamaReading, unix_seconds
from woollama.core.wire.ollama_requests import OPTIONS_BY_PARAM, request_from_ollama
from woollama.core.wire.refusals import asks_for_nothing, left_out, refuse, unspoken
from woollama.core.wire.shapes import mapping_in, object_of, text_in

__all__ = ["OLLAMA", "OllamaCodec"]

_encoder = msgspec.json.Encoder()

_OPTIONS = frozenset(
    {
        "draft_num_predict",
        "main_gpu",
        "min_p",
        "num_batch",
        "num_ctx",
        "num_gpu",
        "num_keep",
        "num_predict",
        "num_thread",
        "repeat_last_n",
        "repeat_penalty",
        "top_k",
        "typical_p",
        "use_mmap",
    }
)
"""The options without an OpenAI name; one that a caller put beside them is moved there (P-3)."""

_OWN_FIELDS = ("shift", "think", "truncate")
"""The top-level fields without an OpenAI name."""

_SPOKEN = frozenset(
    {
        *OPTIONS_BY_PARAM,
        *_OPTIONS,
        *_OWN_FIELDS,
        "keep_alive",
        "logprobs",
        "options",
        "reasoning_effort",
        "response_format",
        "top_logprobs",
    }
)

_EFFORTS: Mapping[str, str | bool] = MappingProxyType(
    {"none": False, "minimal": "low", "xhigh": "max", "ultra": "max"}
)
"""Efforts that have another word here (OL-6); all others are sent as they are."""


class OllamaCodec:
    """``POST {root}/api/chat``: JSON in, JSON lines out."""

    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        """See ``Codec.encode``; a base URL that ends in ``/v1`` loses it (O-1)."""
        dropped = _refuse_unspoken(request, settings)
        writer = MessageWriter(settings.drop_params)
        messages = merged(request.messages) if settings.merge_system else request.messages
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [
                writer.message(message, f"messages[{i}]") for i, message in enumerate(messages)
            ],
            # Absent would mean true (OL-1).
            "stream": stream,
            **_top_level(request, settings),
        }
        tools = [tool_to_openai(tool) for tool in request.tools if isinstance(tool, FunctionTool)]
        if tools and request.tool_choice != "none":
            body["tools"] = tools
        options = _options(request, settings)
        if options:
            body["options"] = options
        return WireRequest(
            method="POST",
            url=f"{_root(base_url)}/api/chat",
            headers=JSON_HEADERS,
            body=_encoder.encode({**settings.extra_body, **body, **request.extra_body}),
            dropped=(*dropped, *writer.dropped),
        )

    def decode_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """See ``Codec.decode_request``."""
        return request_from_ollama(body)

    def decoder(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> Decoder:
        """See ``Codec.decoder``."""
        return ReplyDecoder(OllamaReading(new_id=new_id, now=now), LineSplitter(), objects=False)

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float]
    ) -> ProviderError:
        """See ``Codec.decode_error``; advice where the server's words are known."""
        error = reply_error(status, headers, body, now)
        error.hint = _hint(error)
        return error

    def models_request(self, base_url: str) -> WireRequest:
        """See ``Codec.models_request``; ``GET {root}/api/tags``."""
        return WireRequest(method="GET", url=f"{_root(base_url)}/api/tags")

    def decode_models(self, body: bytes) -> tuple[ModelInfo, ...]:
        """See ``Codec.decode_models``; the entries of ``models``, by name."""
        payload = parse(body)
        models = object_of(payload).get("models")
        if not isinstance(models, list):
            raise ReplyError("The provider's model list has no list 'models'.", payload=payload)
        entries = [object_of(entry) for entry in cast("list[Any]", models)]
        return tuple(
            ModelInfo(id=text_in(entry, "name"), created=unix_seconds(entry.get("modified_at")))
            for entry in entries
            if text_in(entry, "name")
        )


def _root(base_url: str) -> str:
    url = base_url.rstrip("/")
    # A host may be called v1.
    return url if url.endswith("//v1") else url.removesuffix("/v1").rstrip("/")


def _refuse_unspoken(request: ChatRequest, settings: WireSettings) -> tuple[str, ...]:
    """Refuses what has no words here; what may be left out is returned by name."""
    for name in ("cache_control", "cache_key"):
        if getattr(settings, name):
            raise refuse(NAME, name)
    names = {
        f"messages[{i}].name"
        for i, message in enumerate(request.messages)
        if isinstance(message, ToolMessage) and isinstance(message.extra.get("name"), str)
    }
    dropped = unspoken(request, NAME, _SPOKEN | names, settings.drop_params)
    if request.tool_choice == "required" or isinstance(request.tool_choice, NamedTool):
        # Only the model decides whether it calls (OL-8).
        left_out(NAME, "tool_choice", request.tool_choice, settings.drop_params)
        dropped = (*dropped, "tool_choice")
    return dropped


def _options(request: ChatRequest, settings: WireSettings) -> dict[str, Any]:
    """Everything under ``options``; what the caller put there wins (OL-2)."""
    asked = request.params.asked()
    options: dict[str, Any] = {} if settings.num_ctx is None else {"num_ctx": settings.num_ctx}
    options |= {name: asked[param] for param, name in OPTIONS_BY_PARAM.items() if param in asked}
    options |= {name: value for name, value in request.extra.items() if name in _OPTIONS}
    given = request.params.options or {}
    options |= {name: value for name, value in given.items() if value is not None}
    if isinstance(options.get("stop"), str):
        # A text is an error there (OL-3).
        options["stop"] = [options["stop"]]
    return options


def _top_level(request: ChatRequest, settings: WireSettings) -> dict[str, Any]:
    params = request.params
    effort = params.reasoning_effort
    fields = {
        "format": _format(params.response_format),
        "keep_alive": settings.keep_alive if params.keep_alive is None else params.keep_alive,
        "think": None if effort is None else _EFFORTS.get(effort, effort),
        "logprobs": params.logprobs,
        "top_logprobs": params.top_logprobs,
        **{name: request.extra[name] for name in _OWN_FIELDS if name in request.extra},
    }
    return {name: value for name, value in fields.items() if value is not None}


def _format(wanted: Mapping[str, Any] | None) -> Any:
    if wanted is None or asks_for_nothing("response_format", wanted):
        return None
    match wanted.get("type"):
        case "json_schema":
            schema = mapping_in(wanted, "json_schema").get("schema")
        case "json_object" if "schema" not in wanted:
            return "json"
        case "json_object":
            # Some servers take a schema beside the type; it is no less asked for here.
            schema = wanted["schema"]
        case _:
            schema = None
    if not isinstance(schema, Mapping):
        raise refuse(NAME, "response_format")
    return cast("Mapping[str, Any]", schema)


def _hint(error: ProviderError) -> str | None:
    sign_in = text_in(object_of(error.payload), "signin_url")
    if sign_in:
        return f"Sign in first: {sign_in}"
    if error.peer_status == 400 and "does not support thinking" in error.message:
        return "Choose no effort: the model has none."
    if error.peer_status == 404 and error.message.startswith("model "):
        return "Fetch it with 'ollama pull', or name one that is there."
    return None


OLLAMA = Dialect(name=NAME, family="ollama", codec=OllamaCodec(), key_place=Bearer())
"""Ollama's ``/api/chat``; a key is sent only when one is configured (O-4)."""
