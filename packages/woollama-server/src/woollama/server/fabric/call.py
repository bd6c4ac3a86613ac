"""A call of a pattern in fabric's words: what it takes, and what it cannot."""

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from woollama.core.canonical import (
    NOTHING,
    AssistantMessage,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    Value,
)
from woollama.core.errors import CannotEncode, RequestError
from woollama.core.patterns import PatternCall
from woollama.core.patterns.template import value_text
from woollama.core.wire.refusals import asks_for_nothing
from woollama.server.fabric.expansion import check_values
from woollama.server.fabric.wire import ChatSettings, path_like

__all__ = ["FabricCall", "read_call", "read_variables"]

_log = logging.getLogger(__name__)

_Kind = Literal["number", "name", "text", "flag", "count", "thinking"]
_OPTIONS: Mapping[str, tuple[str, _Kind]] = MappingProxyType(
    {
        "context": ("context", "name"),
        "strategy": ("strategy", "name"),
        "language": ("language", "text"),
        "search": ("search", "flag"),
        "search_location": ("search_location", "text"),
        "searchLocation": ("search_location", "text"),
        "temperature": ("temperature", "number"),
        "top_p": ("top_p", "number"),
        "topP": ("top_p", "number"),
        "frequency_penalty": ("frequency_penalty", "number"),
        "frequencyPenalty": ("frequency_penalty", "number"),
        "presence_penalty": ("presence_penalty", "number"),
        "presencePenalty": ("presence_penalty", "number"),
        "thinking": ("thinking", "thinking"),
        "reasoning_effort": ("thinking", "thinking"),
        "num_ctx": ("context_length", "count"),
        "modelContextLength": ("context_length", "count"),
    }
)
"""By the name of an option, OpenAI's or fabric's: the setting, and what its value must be."""

_THINKING = frozenset({"off", "low", "medium", "high"})
_SURFACE = frozenset({"stream_options"})
"""What the surface that took the call has dealt with."""


class FabricCall(Value, frozen=True, kw_only=True):
    """A run as fabric takes it.

    Attributes:
        pattern: its name.
        text: of all user messages.
        image: the address of one image, None without one.
        variables: texts by name.
        model: as the caller or the section named it.
        settings: the options.
        dropped: what was given and is not sent.
    """

    pattern: str
    text: str
    image: str | None = None
    variables: Mapping[str, str] = NOTHING
    model: str
    settings: ChatSettings = ChatSettings()
    dropped: tuple[str, ...] = ()


def read_call(
    call: PatternCall, *, default_model: str | None, drop_params: tuple[str, ...]
) -> FabricCall:
    """The call in fabric's words.

    Args:
        call: as a surface took it.
        default_model: what it runs on when it names no model.
        drop_params: options that may be left out where fabric has no words for them.

    Raises:
        RequestError: it names no model, or something in it is wrong.
        CannotEncode: fabric has no words for something in it.
    """
    model = call.model or default_model
    if not model:
        raise RequestError(
            f"The pattern {call.name!r} names no model to run on: give one.",
            param="model",
            hint='Or set "default_model" of fabric in mcp.json.',
        )
    if model.startswith("woollama/"):
        raise RequestError(
            f"A pattern runs on the model of a provider, not on another pattern: {model!r}.",
            param="model",
        )
    text, images, roles = _read_messages(call.messages)
    if len(images) > 1:
        # fabric takes several, but a model that sees only one would answer as if it had seen all.
        _log.warning("fabric: %d images in one call; only the first is sent", len(images))
        roles.append("image_url")
    settings, left_out = _read_options(call.options, drop_params)
    return FabricCall(
        pattern=call.name,
        text=text,
        image=images[0] if images else None,
        variables=read_variables(call.variables),
        model=model,
        settings=settings,
        dropped=(*(f"messages.{role}" for role in sorted(set(roles))), *left_out),
    )


def read_variables(variables: Mapping[str, Any]) -> dict[str, str]:
    """Variables as texts: what is no text is its JSON (P-40).

    Raises:
        RequestError: a value has no JSON form, or fabric would expand one.
    """
    texts = {name: value_text(value, name) for name, value in variables.items()}
    check_values(texts)
    return texts


def _read_messages(messages: tuple[Message, ...]) -> tuple[str, list[str], list[str]]:
    """The user's text, the addresses of images, and the roles that are not sent (P-43)."""
    texts: list[str] = []
    images: list[str] = []
    roles: list[str] = []
    for i, message in enumerate(messages):
        match message:
            case UserMessage():
                texts.append(_read_content(message, i, images))
            case SystemMessage():
                roles.append(message.role)
            case AssistantMessage():
                roles.append("assistant")
            case ToolMessage():
                roles.append("tool")
    return "\n\n".join(text for text in texts if text), images, roles


def _read_content(message: UserMessage, place: int, images: list[str]) -> str:
    if isinstance(message.content, str):
        return message.content
    texts: list[str] = []
    for j, part in enumerate(message.content):
        match part:
            case TextPart():
                texts.append(part.text)
            case ImagePart():
                images.append(part.url)
            case _:
                raise CannotEncode(
                    "fabric takes text and images only.",
                    "unsupported_content",
                    param=f"input[{place}].content[{j}]",
                )
    return "\n\n".join(text for text in texts if text)


def _read_options(
    options: Mapping[str, Any], drop_params: tuple[str, ...]
) -> tuple[ChatSettings, list[str]]:
    fields: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in options.items():
        known = _OPTIONS.get(name)
        if known is not None and value is not None:
            key, kind = known
            setting = _read_option(name, value, kind)
            if fields.setdefault(key, setting) != setting:
                raise RequestError(f"{name!r} is given twice, by two names.", param=name)
        elif known is None and name not in _SURFACE and not asks_for_nothing(name, value):
            if name not in drop_params:
                raise CannotEncode(
                    f"fabric has no words for {name!r}.",
                    param=name,
                    hint='Leave it out, or list it in "drop_params" of fabric in mcp.json.',
                )
            left_out.append(name)
    return ChatSettings(**fields), left_out


def _read_option(name: str, value: Any, kind: _Kind) -> Any:
    setting = _READERS[kind](value)
    if setting is None:
        raise RequestError(f"{name!r} must be {_WANTED[kind]}.", param=name)
    return setting


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value is not True and value > 0 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and not path_like(value) else None


def _thinking(value: Any) -> str | None:
    # fabric wants text, also for a number of tokens.
    if not isinstance(value, str):
        tokens = _count(value)
        return str(tokens) if tokens is not None else None
    word = "off" if value == "none" else value
    return word if word in _THINKING or (word.isascii() and word.isdigit()) else None


_READERS: Mapping[_Kind, Callable[[Any], Any]] = MappingProxyType(
    {
        "number": _number,
        "count": _count,
        "flag": _flag,
        "text": _text,
        "name": _name,
        "thinking": _thinking,
    }
)

_WANTED: Mapping[_Kind, str] = MappingProxyType(
    {
        "number": "a number",
        "count": "a whole number above 0",
        "flag": "true or false",
        "text": "a string",
        "name": "the name of an entry in fabric's library, not a path",
        "thinking": "'off', 'low', 'medium', 'high' or a number of tokens for fabric",
    }
)
