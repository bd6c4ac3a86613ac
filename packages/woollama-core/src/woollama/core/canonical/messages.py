"""Messages of a conversation, and their OpenAI shape both ways."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never, cast

import msgspec

from woollama.core.canonical.content import (
    Content,
    content_from_openai,
    content_to_openai,
    text_of,
)
from woollama.core.canonical.value import NOTHING, Value
from woollama.core.errors import RequestError

__all__ = [
    "AssistantMessage",
    "FunctionCall",
    "Message",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "message_from_openai",
    "message_to_openai",
]

REASONING_ALIASES = ("reasoning", "reasoning_content")
"""The names under which servers and clients write a reply's thinking (wire rule OC-22)."""


class FunctionCall(Value, frozen=True, kw_only=True):
    """Which function, and its arguments as the model wrote them: text, perhaps not even JSON."""

    name: str
    arguments: str


class ToolCall(Value, frozen=True, kw_only=True):
    """A call the model asked for. ``extra_content`` is opaque and goes back verbatim (OC-9)."""

    id: str
    function: FunctionCall
    extra_content: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them."""
        return self.function.arguments


class SystemMessage(Value, frozen=True, kw_only=True):
    """Instructions. ``role`` keeps apart what the caller called ``developer``."""

    content: Content
    role: Literal["system", "developer"] = "system"
    extra: Mapping[str, Any] = NOTHING


class UserMessage(Value, frozen=True, kw_only=True):
    """What the person said."""

    content: Content
    extra: Mapping[str, Any] = NOTHING


class AssistantMessage(Value, frozen=True, kw_only=True):
    """What the model said.

    Attributes:
        content: text or parts; None when there is none.
        reasoning: the thinking that came with it; the dialect names it on the wire.
        reasoning_details: opaque, verbatim, only for the dialect ``compatible`` (RU-12).
        opaque: what another dialect may want back, by dialect name.
    """

    content: Content | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    refusal: str | None = None
    reasoning_details: tuple[Any, ...] = ()
    opaque: Mapping[str, tuple[Any, ...]] = NOTHING
    extra: Mapping[str, Any] = NOTHING


class ToolMessage(Value, frozen=True, kw_only=True):
    """The result of a tool call. ``is_error`` is ours and leaves only where a dialect has it."""

    tool_call_id: str
    content: Content
    is_error: bool = False
    extra: Mapping[str, Any] = NOTHING


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def message_from_openai(value: object, where: str) -> Message:
    """One message as a client wrote it, to canonical.

    Keys we do not know are kept in ``extra``; null is the same as absent for those we do.

    Args:
        value: a mapping with ``role`` and what belongs to it.
        where: the place to name in an error, ``messages[3]``.

    Raises:
        RequestError: not a message; names the place and what was expected.
    """
    if not isinstance(value, dict | Mapping):
        raise RequestError(
            f"{where} must be an object with 'role' and 'content', not {type(value).__name__}.",
            param=where,
        )
    raw = cast("Mapping[str, Any]", value)
    role = raw.get("role")
    match role:
        case "system" | "developer":
            content = content_from_openai(raw.get("content"), f"{where}.content")
            return SystemMessage(content=content, role=role, extra=_rest(raw, "content"))
        case "user":
            content = content_from_openai(raw.get("content"), f"{where}.content")
            return UserMessage(content=content, extra=_rest(raw, "content"))
        case "assistant":
            return _assistant(raw, where)
        case "tool":
            return _tool(raw, where)
        case _:
            raise RequestError(
                f"{where}.role must be one of 'system', 'developer', 'user', 'assistant', 'tool', "
                f"not {role!r}.",
                param=f"{where}.role",
            )


def _rest(raw: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    rest = {key: value for key, value in raw.items() if key != "role" and key not in known}
    return rest or NOTHING


def _assistant(raw: Mapping[str, Any], where: str) -> AssistantMessage:
    content = raw.get("content")
    calls = raw.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise RequestError(f"{where}.tool_calls must be a list.", param=f"{where}.tool_calls")
    items = cast("Sequence[object]", calls)
    details: object = raw.get("reasoning_details") or ()
    if not isinstance(details, Sequence) or isinstance(details, str):
        raise RequestError(
            f"{where}.reasoning_details must be a list.", param=f"{where}.reasoning_details"
        )
    known = (
        "content",
        "tool_calls",
        "refusal",
        "reasoning_details",
        *REASONING_ALIASES,
    )
    return AssistantMessage(
        content=None if content is None else content_from_openai(content, f"{where}.content"),
        tool_calls=tuple(_call(item, f"{where}.tool_calls[{i}]") for i, item in enumerate(items)),
        reasoning=_first_text(raw, REASONING_ALIASES, where),
        refusal=_first_text(raw, ("refusal",), where),
        reasoning_details=tuple(cast("Sequence[Any]", details)),
        extra=_rest(raw, *known),
    )


def _first_text(raw: Mapping[str, Any], keys: Sequence[str], where: str) -> str | None:
    for key in keys:
        value = raw.get(key)
        if isinstance(value, list):
            # Cerebras takes its thinking in parts too.
            value = text_of(content_from_openai(cast("list[Any]", value), f"{where}.{key}"))
        if isinstance(value, str) and value:
            return value
    return None


def _call(value: object, where: str) -> ToolCall:
    raw = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else NOTHING
    function = raw.get("function")
    name: object = None
    arguments: object = None
    if isinstance(function, Mapping):
        named = cast("Mapping[str, Any]", function)
        name, arguments = named.get("name"), named.get("arguments")
    if not isinstance(name, str) or not name:
        raise RequestError(
            f"{where} must be a function call with 'id' and 'function': {{'name', 'arguments'}}.",
            param=where,
        )
    if arguments is None:
        text = "{}"
    elif isinstance(arguments, str):
        text = arguments
    else:
        text = _as_json(arguments, where)
    identity = raw.get("id")
    return ToolCall(
        id=identity if isinstance(identity, str) else "",
        function=FunctionCall(name=name, arguments=text),
        extra_content=raw.get("extra_content"),
    )


def _as_json(arguments: object, where: str) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"The arguments of {where} hold half of a character, which cannot be sent.", param=where
        ) from error


def _tool(raw: Mapping[str, Any], where: str) -> ToolMessage:
    identity = raw.get("tool_call_id")
    if not isinstance(identity, str):
        raise RequestError(
            f"{where}.tool_call_id must be the id of the call this is the result of.",
            param=f"{where}.tool_call_id",
        )
    content = raw.get("content")
    return ToolMessage(
        tool_call_id=identity,
        content="" if content is None else content_from_openai(content, f"{where}.content"),
        is_error=raw.get("is_error") is True,
        extra=_rest(raw, "tool_call_id", "content", "is_error"),
    )


def message_to_openai(message: Message, *, reasoning: str = "reasoning") -> dict[str, Any]:
    """A canonical message as Chat Completions writes it.

    Args:
        message: any canonical message.
        reasoning: the key for an assistant's thinking.
    """
    match message:
        case SystemMessage():
            content = content_to_openai(message.content)
            return {"role": message.role, "content": content, **message.extra}
        case UserMessage():
            return {
                "role": "user",
                "content": content_to_openai(message.content),
                **message.extra,
            }
        case ToolMessage():
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "content": content_to_openai(message.content),
                **message.extra,
            }
        case AssistantMessage():
            return _assistant_to_openai(message, reasoning)
        case _:
            assert_never(message)


def _assistant_to_openai(message: AssistantMessage, reasoning: str) -> dict[str, Any]:
    content = None if message.content is None else content_to_openai(message.content)
    body: dict[str, Any] = {"role": "assistant", "content": content}
    if message.reasoning is not None:
        body[reasoning] = message.reasoning
    if message.refusal is not None:
        body["refusal"] = message.refusal
    if message.tool_calls:
        body["tool_calls"] = [_call_to_openai(call) for call in message.tool_calls]
    if message.reasoning_details:
        body["reasoning_details"] = list(message.reasoning_details)
    body.update(message.extra)
    return body


def _call_to_openai(call: ToolCall) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    if call.extra_content is not None:
        body["extra_content"] = call.extra_content
    return body
