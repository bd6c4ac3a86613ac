"""What a dialect has no words for: left out when it asks for nothing, refused otherwise.

A value equal to the API's own default is no request (design decision 17). Anything else is refused
with its name, or left out and reported where the operator's ``drop_params`` lists it.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from woollama.core.canonical import ChatRequest, FunctionTool, OtherChoice
from woollama.core.errors import CannotEncode

__all__ = ["asks_for_nothing", "left_out", "refuse", "unspoken"]

_DEFAULTS: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "frequency_penalty": (0,),
        "logprobs": (False,),
        "modalities": (["text"],),
        "n": (1,),
        "parallel_tool_calls": (True,),
        "presence_penalty": (0,),
        "response_format": ({"type": "text"},),
        "service_tier": ("auto", "default"),
        "store": (False,),
        "tool_choice": ("auto",),
        "top_logprobs": (0,),
        "truncation": ("disabled",),
        "verbosity": ("medium",),
    }
)


def asks_for_nothing(name: str, value: object) -> bool:
    """Whether a parameter has the value the API would assume anyway, or an empty one."""
    if value is None or value in ("", [], {}, ()):
        return True
    return any(
        value == default and isinstance(value, bool) is isinstance(default, bool)
        for default in _DEFAULTS.get(name, ())
    )


def refuse(dialect: str, param: str, *, kind: str = "unsupported_parameter") -> CannotEncode:
    """The refusal of one value by name, for the caller to raise."""
    return CannotEncode(
        f"The dialect {dialect!r} has no words for {param!r}.",
        kind,
        param=param,
        hint="Leave it out, or list it in the provider's drop_params."
        if kind == "unsupported_parameter"
        else None,
    )


def left_out(dialect: str, name: str, value: object, drop: Collection[str]) -> bool:
    """Whether a field without words asks for something, and the operator allows to leave it out.

    Args:
        dialect: its name, for the message.
        name: the field with its place, ``n`` or ``messages[3].name``.
        value: what it asks for.
        drop: the operator's ``drop_params``; ``messages.name`` there is that key of any message.

    Raises:
        CannotEncode: it asks for something, and ``drop`` does not list it.
    """
    plain = re.sub(r"\[\d+\]", "", name)
    if asks_for_nothing(plain.rpartition(".")[2], value):
        return False
    if name in drop or plain in drop:
        return True
    raise refuse(dialect, name)


def unspoken(
    request: ChatRequest, dialect: str, spoken: Collection[str], drop: Collection[str]
) -> tuple[str, ...]:
    """Refuses every asked field of ``request`` that is not in ``spoken``.

    Args:
        request: what is to be encoded.
        dialect: its name, for the message.
        spoken: the names of parameters the dialect has words for.
        drop: the names the operator allows to leave out.

    Returns:
        The names that were left out because ``drop`` lists them.

    Raises:
        CannotEncode: the first one that is neither spoken, nor a default, nor in ``drop``.
    """
    dropped: list[str] = []
    asked = {**request.params.asked(), **request.extra}
    asked.pop("stream_options", None)
    if any(not isinstance(tool, FunctionTool) for tool in request.tools):
        asked["tools"] = True
    if isinstance(request.tool_choice, OtherChoice):
        asked["tool_choice"] = True
    for i, message in enumerate(request.messages):
        for key, value in message.extra.items():
            asked[f"messages[{i}].{key}"] = value
    for name, value in asked.items():
        if name not in spoken and left_out(dialect, name, value, drop):
            dropped.append(name)
    return tuple(dropped)
