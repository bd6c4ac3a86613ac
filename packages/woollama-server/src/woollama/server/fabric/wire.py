"""fabric's REST API as bytes: requests, and replies that come as one (fabric v1.4.470).

Sans-IO. fabric's JSON names are its own: ``Pattern`` is the prompt's text, lists may be ``null``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import msgspec

from woollama.core.canonical import NOTHING, Value
from woollama.core.errors import ReplyError
from woollama.core.wire.codec import JSON_HEADERS, WireRequest

__all__ = [
    "ChatSettings",
    "FabricModels",
    "apply_request",
    "chat_request",
    "decode_models",
    "decode_names",
    "decode_text",
    "models_request",
    "names_request",
    "pattern_request",
    "path_like",
]

DEFAULT_TEMPERATURE = 0.7
DEFAULT_TOP_P = 0.9
"""fabric promises these two and sends 0 when they are left out, so they never are."""


class ChatSettings(Value, frozen=True, kw_only=True):
    """What a run can set beside pattern, input and variables; None is fabric's own default.

    Attributes:
        context, strategy: names of entries of fabric's library.
        language: a code; fabric adds a paragraph that asks for it.
        search, search_location: web search, where the vendor has one.
        temperature, top_p, frequency_penalty, presence_penalty: as everywhere.
        thinking: ``off``, ``low``, ``medium``, ``high``, or a number of tokens as text.
        context_length: the model's context in tokens.
    """

    context: str | None = None
    strategy: str | None = None
    language: str | None = None
    search: bool | None = None
    search_location: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    thinking: str | None = None
    context_length: int | None = None


class FabricModels(Value, frozen=True, kw_only=True):
    """What fabric can reach: model names by the display name of their vendor."""

    vendors: Mapping[str, tuple[str, ...]] = NOTHING


def path_like(name: str) -> bool:
    """Whether fabric would take a name for a path of the file system, or leave its folder by it."""
    return (
        not name
        or name[0] in "~."
        or ".." in name
        or any(mark in name for mark in ("/", "\\", "\0"))
    )


def names_request(base_url: str) -> WireRequest:
    """The names of all patterns; also how fabric shows that it is there."""
    return _get(f"{base_url}/patterns/names")


def pattern_request(base_url: str, name: str) -> WireRequest:
    """The text of one pattern, as it is written."""
    return _get(f"{base_url}/patterns/{quote(name, safe='')}")


def models_request(base_url: str) -> WireRequest:
    """Models and vendors. The first one of a fabric process asks every vendor and can be slow."""
    return _get(f"{base_url}/models/names")


def apply_request(
    base_url: str, name: str, *, input: str, variables: Mapping[str, str]
) -> WireRequest:
    """A pattern filled in."""
    body = {"input": input, "variables": dict(variables)}
    return _post(f"{base_url}/patterns/{quote(name, safe='')}/apply", body)


def chat_request(
    base_url: str,
    *,
    pattern: str,
    input: str,
    variables: Mapping[str, str],
    vendor: str,
    model: str,
    settings: ChatSettings = ChatSettings(),  # noqa: B008 - an immutable value
) -> WireRequest:
    """A run. One prompt a request: each further one would run after it on the same stream.

    Args:
        base_url: where fabric is.
        pattern: its name.
        input: the user's text.
        variables: by name.
        vendor: a display name of fabric's, or ``""`` for the first that has the model.
        model: as that vendor names it.
        settings: the rest.
    """
    prompt = {
        "userInput": input,
        "patternName": pattern,
        "vendor": vendor,
        "model": model,
        "variables": dict(variables),
        "contextName": settings.context,
        "strategyName": settings.strategy,
    }
    body = {
        "prompts": [_given(prompt)],
        "temperature": _or(settings.temperature, DEFAULT_TEMPERATURE),
        "topP": _or(settings.top_p, DEFAULT_TOP_P),
        "frequencyPenalty": settings.frequency_penalty,
        "presencePenalty": settings.presence_penalty,
        "language": settings.language,
        "search": settings.search,
        "searchLocation": settings.search_location,
        "thinking": settings.thinking,
        "modelContextLength": settings.context_length,
    }
    return _post(f"{base_url}/chat", _given(body))


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _get(url: str) -> WireRequest:
    return WireRequest(method="GET", url=url)


def _post(url: str, body: Mapping[str, Any]) -> WireRequest:
    return WireRequest(method="POST", url=url, headers=JSON_HEADERS, body=msgspec.json.encode(body))


def decode_names(body: bytes) -> tuple[str, ...]:
    """The names of patterns; those that no request could carry are left out.

    Raises:
        ReplyError: it is no list of names, and so not fabric's.
    """
    names = _parse(body, "list of patterns")
    if names is None:
        return ()
    if not isinstance(names, list):
        raise _foreign("list of patterns", body)
    found = cast("list[Any]", names)
    if not all(isinstance(name, str) for name in found):
        raise _foreign("list of patterns", body)
    return tuple(dict.fromkeys(name for name in cast("list[str]", found) if not path_like(name)))


def decode_text(body: bytes) -> str:
    """The text of a pattern, raw or filled in.

    Raises:
        ReplyError: it is no pattern.
    """
    reply = _parse(body, "pattern")
    text = cast("Mapping[str, Any]", reply).get("Pattern") if isinstance(reply, Mapping) else None
    if not isinstance(text, str):
        raise _foreign("pattern", body)
    return text


def decode_models(body: bytes) -> FabricModels:
    """Models by vendor.

    Raises:
        ReplyError: it is no such list.
    """
    reply = _parse(body, "list of models")
    if not isinstance(reply, Mapping):
        raise _foreign("list of models", body)
    vendors: object = cast("Mapping[str, Any]", reply).get("vendors") or NOTHING
    if not isinstance(vendors, Mapping):
        raise _foreign("list of models", body)
    return FabricModels(
        vendors={
            name: tuple(model for model in _list(models) if isinstance(model, str))
            for name, models in cast("Mapping[str, Any]", vendors).items()
        }
    )


def _list(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _parse(body: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _foreign(what, body) from error


def _foreign(what: str, body: bytes) -> ReplyError:
    return ReplyError(
        f"What answers in the place of fabric sent no {what}.",
        payload=body[:200].decode(errors="replace"),
        hint='Look whether "url" of fabric in mcp.json is the address of a fabric server.',
    )
