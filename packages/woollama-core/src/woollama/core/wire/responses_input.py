"""What a client of ``POST /v1/responses`` sent, to canonical."""

from collections.abc import Mapping
from typing import Any

import msgspec

from woollama.core.canonical import (
    ChatRequest,
    Message,
    SystemMessage,
    UserMessage,
    request_from_openai,
)
from woollama.core.errors import RequestError
from woollama.core.wire.demands import a_list, a_string, an_object, wrong
from woollama.core.wire.responses_history import messages_of_items
from woollama.core.wire.shapes import object_of

__all__ = ["request_from_responses"]

_OWN = frozenset(
    {"input", "instructions", "tools", "tool_choice", "max_output_tokens", "reasoning", "text"}
)
_INSTEAD_OF_INPUT = ("previous_response_id", "conversation", "prompt")


def request_from_responses(body: Mapping[str, Any]) -> ChatRequest:
    """A body of ``POST /responses``, decoded from JSON, to canonical. Null is the same as absent.

    ``instructions`` become a first system message. Tools that are no functions are kept as they
    came; so are ``include``, ``store``, ``previous_response_id`` and whatever else canonical
    requests have no field for, in ``extra``.

    Raises:
        RequestError: a field has the wrong type, or an item stands for something that only the
            server which made it knows; ``param`` names it.
    """
    if body.get("messages") is not None:
        raise RequestError(
            "'messages' belongs to chat completions: send 'input'.", param="messages"
        )
    others = {key: value for key, value in body.items() if key not in _OWN}
    request = request_from_openai(
        {
            **others,
            "messages": (),
            "tools": _tools(body.get("tools")),
            "tool_choice": _choice(body.get("tool_choice")),
            **_cap(body.get("max_output_tokens")),
            **_reasoning(body.get("reasoning")),
            **_text(body.get("text")),
        }
    )
    return msgspec.structs.replace(request, messages=_messages(body))


def _cap(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong("max_output_tokens", "a whole number", value)
    return {"max_tokens": value}


def _reasoning(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    rest = {key: item for key, item in an_object(value, "reasoning").items() if item is not None}
    effort = rest.pop("effort", None)
    if not isinstance(effort, str | None):
        raise wrong("reasoning.effort", "a string", effort)
    return {"reasoning_effort": effort, "reasoning": rest or None}


def _text(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    rest = {key: item for key, item in an_object(value, "text").items() if item is not None}
    format = rest.pop("format", None)
    if format is not None:
        format = an_object(format, "text.format")
        if format.get("type") == "json_schema":
            schema = {key: item for key, item in format.items() if key != "type"}
            format = {"type": "json_schema", "json_schema": schema}
    verbosity = rest.pop("verbosity", None)
    return {"response_format": format, "verbosity": verbosity, "text": rest or None}


def _tools(value: object) -> list[Any]:
    if value is None:
        return []
    return [_tool(tool, f"tools[{i}]") for i, tool in enumerate(a_list(value, "tools"))]


def _tool(value: object, where: str) -> Mapping[str, Any]:
    raw = an_object(value, where)
    if raw.get("type") != "function":
        return raw
    a_string(raw, "name", where)
    return {"type": "function", "function": {k: v for k, v in raw.items() if k != "type"}}


def _choice(value: object) -> object:
    raw = object_of(value)
    if raw.get("type") == "function" and isinstance(raw.get("name"), str):
        return {"type": "function", "function": {"name": raw["name"]}}
    return value


def _messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    instructions = body.get("instructions")
    if not isinstance(instructions, str | None):
        raise wrong("instructions", "a string", instructions)
    system = (SystemMessage(content=instructions),) if instructions else ()
    said = body.get("input")
    if isinstance(said, str):
        return (*system, UserMessage(content=said))
    if said is None and any(body.get(key) for key in _INSTEAD_OF_INPUT):
        return system
    return (*system, *messages_of_items(a_list(said, "input")))
