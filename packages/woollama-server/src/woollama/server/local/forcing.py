"""A demanded tool call, made certain for models that write calls as ``<tool_call>``.

llama.cpp lets a model talk before a call that ``tool_choice`` demands, which a small model does to
its limit. It calls at once when its reply has been begun with the opening of a call.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from woollama.core.errors import RequestError

__all__ = ["force_call"]

_OPENED = msgspec.Raw(msgspec.json.encode({"role": "assistant", "content": "<tool_call>\n"}))
_CLOSING = "</tool_call>"


class _Asked(msgspec.Struct):
    """What of a chat request is looked at."""

    messages: list[msgspec.Raw] = []
    tools: list[msgspec.Raw] | None = None
    tool_choice: Any = None
    parallel_tool_calls: Any = None
    stop: Any = None


class _Function(msgspec.Struct):
    name: str


class _Tool(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    role: str


_asked_decoder = msgspec.json.Decoder(_Asked)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_tool_decoder = msgspec.json.Decoder(_Tool)
_message_decoder = msgspec.json.Decoder(_Message)


def force_call(body: bytes) -> bytes:
    """The body of a chat request, with the call begun if ``tool_choice`` demands one.

    A function that is named is the only one on offer. With ``parallel_tool_calls`` false the reply
    ends with its first call. A conversation that ends with the assistant is continued as it is.

    Raises:
        RequestError: the named function is not among the tools.
    """
    try:
        asked = _asked_decoder.decode(body)
        demanded = _demanded(asked.tool_choice)
        if demanded is None or not asked.tools or not asked.messages:
            return body
        if _message_decoder.decode(asked.messages[-1]).role == "assistant":
            return body
        tools = [tool for tool in asked.tools if demanded in ("", _name_of(tool))]
    except msgspec.DecodeError:
        # llama.cpp says what is wrong with it.
        return body
    if not tools:
        raise RequestError(
            f"'tool_choice' names {demanded!r}, which is not among the tools.", param="tool_choice"
        )
    changes: dict[str, Any] = {
        "messages": [*asked.messages, _OPENED],
        "tools": tools,
        "tool_choice": "required",
    }
    if asked.parallel_tool_calls is False:
        changes["stop"] = [*_stops(asked.stop), _CLOSING]
    return msgspec.json.encode({**_fields_decoder.decode(body), **changes})


def _demanded(choice: object) -> str | None:
    """The function that is demanded; "" is any, None is no demand."""
    if choice == "required":
        return ""
    if isinstance(choice, Mapping):
        function = cast("Mapping[str, Any]", choice).get("function")
        if isinstance(function, Mapping):
            name = cast("Mapping[str, Any]", function).get("name")
            return name if isinstance(name, str) and name else None
    return None


def _name_of(tool: msgspec.Raw) -> str:
    return _tool_decoder.decode(tool).function.name


def _stops(given: object) -> list[Any]:
    if isinstance(given, list):
        return cast("list[Any]", given)
    return [] if given is None else [given]
