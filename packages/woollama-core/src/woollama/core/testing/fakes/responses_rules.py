"""What ``POST /v1/responses`` refuses: a wrong shape, and parts that do not belong together."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from woollama.core.testing.fake import json_reply
from woollama.core.testing.fakes.openai_rules import (
    Refused,
    check_strict_schema,
    openai_error,
    shaped,
)
from woollama.core.testing.fakes.responses_shapes import (
    AssistantItem,
    CallItem,
    NamedChoice,
    OutputItem,
    ReasoningItem,
    ResponsesBody,
    SchemaFormat,
    SystemItem,
    UserItem,
)

__all__ = ["check_body", "check_plan", "decode_items"]

Item = SystemItem | UserItem | AssistantItem | CallItem | OutputItem | ReasoningItem

_BY_ROLE: Mapping[str, type[Item]] = MappingProxyType(
    {
        "assistant": AssistantItem,
        "developer": SystemItem,
        "system": SystemItem,
        "user": UserItem,
    }
)
_BY_TYPE: Mapping[str, type[Item]] = MappingProxyType(
    {
        "function_call": CallItem,
        "function_call_output": OutputItem,
        "reasoning": ReasoningItem,
    }
)


def decode_items(body: ResponsesBody) -> tuple[Item, ...]:
    """The items of ``input``.

    Raises:
        Refused: 400; one has another shape.
    """
    if isinstance(body.input, str):
        return ()
    return tuple(_item(raw, f"input[{i}]") for i, raw in enumerate(body.input))


def _item(raw: dict[str, Any], place: str) -> Item:
    kind = raw.get("type", "message" if "role" in raw else None)
    if kind == "message":
        role = raw.get("role")
        shape = _BY_ROLE.get(role) if isinstance(role, str) else None
        if shape is None:
            raise _invalid(f"{place}.role", role, sorted(_BY_ROLE))
    else:
        shape = _BY_TYPE.get(kind) if isinstance(kind, str) else None
        if shape is None:
            raise _invalid(f"{place}.type", kind, ["message", *sorted(_BY_TYPE)])
    return shaped({"type": kind, **raw}, shape, place)


def _invalid(param: str, value: object, known: Sequence[str]) -> Refused:
    message = f"Invalid value: {value!r}. Supported values are: {', '.join(map(repr, known))}."
    return Refused(openai_error(400, message, param=param, code="invalid_value"))


def _refused(message: str, param: str, *, status: int = 400, code: str | None = None) -> Refused:
    return Refused(openai_error(status, message, param=param, code=code))


def check_body(body: ResponsesBody, items: Sequence[Item]) -> None:
    """Refuses parts that do not belong together.

    Raises:
        Refused: 400 or 404.
    """
    if body.conversation is not None and body.previous_response_id is not None:
        raise _refused(
            "'conversation' and 'previous_response_id' cannot be used together.", "conversation"
        )
    if body.previous_response_id is not None:
        # The fake remembers nothing, whether asked to store or not.
        raise _refused(
            f"Previous response with id '{body.previous_response_id}' not found.",
            "previous_response_id",
            code="previous_response_not_found",
        )
    _check_history(items)
    _check_reasoning(items, stored=body.store is not False)
    _check_tools(body)
    if body.stream_options is not None and not body.stream:
        raise _refused("'stream_options' is only allowed when 'stream' is true.", "stream_options")


def check_plan(body: ResponsesBody, items: Sequence[Item]) -> None:
    """Refuses what the plan server refuses, in its own shape.

    Raises:
        Refused: 400, ``{"detail": …}``.
    """
    if any(isinstance(item, SystemItem) for item in items):
        raise _detail("System messages are not allowed")
    if not body.stream:
        raise _detail("Stream must be set to true")
    if body.store is not False:
        raise _detail("Store must be set to false")


def _detail(message: str) -> Refused:
    return Refused(json_reply(400, {"detail": message}))


def _check_history(items: Sequence[Item]) -> None:
    called: list[str] = []
    answered: list[str] = []
    for item in items:
        if isinstance(item, CallItem):
            called.append(item.call_id)
        elif isinstance(item, OutputItem):
            if called.count(item.call_id) <= answered.count(item.call_id):
                raise _refused(
                    f"No tool call found for function call output with call_id {item.call_id}.",
                    "input",
                )
            answered.append(item.call_id)
    for identity in called:
        if called.count(identity) > answered.count(identity):
            raise _refused(f"No tool output found for function call {identity}.", "input")


def _check_reasoning(items: Sequence[Item], *, stored: bool) -> None:
    for item, following in pairwise((*items, None)):
        if not isinstance(item, ReasoningItem):
            continue
        if not (stored or item.encrypted_content):
            raise _refused(
                f"Item with id '{item.id}' not found. Items are not persisted when `store` is set "
                "to false.",
                "input",
                status=404,
            )
        if not isinstance(following, AssistantItem | CallItem | ReasoningItem):
            raise _refused(
                f"Item '{item.id}' of type 'reasoning' was provided without its required "
                "following item.",
                "input",
            )


def _check_tools(body: ResponsesBody) -> None:
    tools = body.tools or []
    for i, tool in enumerate(tools):
        if tool.strict is not False:
            check_strict_schema(
                tool.parameters or {}, f"function '{tool.name}'", f"tools[{i}].parameters"
            )
    choice = body.tool_choice
    if choice not in {None, "auto", "none"} and not tools:
        raise _refused("Tool choice must be specified with 'tools' parameter.", "tool_choice")
    if isinstance(choice, NamedChoice) and choice.name not in {tool.name for tool in tools}:
        raise _refused(
            f"Tool choice '{choice.name}' not found in 'tools' parameter.", "tool_choice"
        )
    format = body.text.format if body.text is not None else None
    if isinstance(format, SchemaFormat) and format.strict:
        check_strict_schema(format.schema, f"response_format '{format.name}'", "text.format.schema")
