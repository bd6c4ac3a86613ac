"""The ``input`` items of the Responses API to canonical messages.

What the server said of its own items (``id``, ``status``, ``phase``) is not kept: the model reads
none of it, and no other dialect has a place for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from woollama.core.canonical import (
    NOTHING,
    AssistantMessage,
    Content,
    FilePart,
    FunctionCall,
    ImagePart,
    Message,
    OtherPart,
    Part,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    part_from_openai,
    text_of,
)
from woollama.core.errors import RequestError
from woollama.core.wire.demands import a_list, a_string, an_object
from woollama.core.wire.refusals import asks_for_nothing
from woollama.core.wire.responses_items import NAME
from woollama.core.wire.responses_texts import reasoning_texts

__all__ = ["messages_of_items"]

_BOOKKEEPING = ("type", "role", "content", "id", "status", "phase")


def messages_of_items(items: Sequence[object]) -> tuple[Message, ...]:
    """The messages that items make up, those of one assistant turn put together.

    Raises:
        RequestError: an item lacks what its type needs, or means nothing outside the server that
            made it; ``param`` names it.
    """
    reading = _ItemReading()
    for i, item in enumerate(items):
        reading.item(an_object(item, f"input[{i}]"), f"input[{i}]")
    reading.end_turn()
    return tuple(reading.messages)


class _ItemReading:
    """Puts the items of one assistant turn together: its thinking, its text, its calls."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._turn: AssistantMessage | None = None

    def item(self, raw: Mapping[str, Any], where: str) -> None:
        """Take in one element of ``input``."""
        kind = raw.get("type")
        if kind is None and "role" in raw:
            kind = "message"
        match kind:
            case "message":
                self._message(raw, where)
            case "reasoning":
                self._reasoning(raw)
            case "function_call":
                self._call(raw, where)
            case "function_call_output":
                self.end_turn()
                output = raw.get("output")
                self.messages.append(
                    ToolMessage(
                        tool_call_id=a_string(raw, "call_id", where),
                        content="" if output is None else _content(output, f"{where}.output"),
                    )
                )
            case _:
                raise RequestError(
                    f"'{where}' is an item of type {kind!r}, which means nothing to a model of "
                    "another server: send messages, function calls and their outputs.",
                    "unsupported_content",
                    param=where,
                )

    def end_turn(self) -> None:
        """What the assistant said is complete."""
        if self._turn is not None:
            self.messages.append(self._turn)
            self._turn = None

    def _message(self, raw: Mapping[str, Any], where: str) -> None:
        role = raw.get("role")
        content = _content(raw.get("content"), f"{where}.content")
        extra = {k: v for k, v in raw.items() if k not in _BOOKKEEPING and v is not None}
        match role:
            case "user":
                message: Message = UserMessage(content=content, extra=extra or NOTHING)
            case "system" | "developer":
                message = SystemMessage(content=content, role=role, extra=extra or NOTHING)
            case "assistant":
                self._said(content, extra)
                return
            case _:
                raise RequestError(
                    f"'{where}.role' must be one of 'user', 'assistant', 'system', 'developer', "
                    f"not {role!r}.",
                    param=f"{where}.role",
                )
        self.end_turn()
        self.messages.append(message)

    def _said(self, content: Content, extra: Mapping[str, Any]) -> None:
        turn = self._open_turn()
        if turn.content is not None and not turn.tool_calls:
            # A second message is a message of its own, unless calls tie the two together (RE-20).
            self.end_turn()
            turn = AssistantMessage()
        said, refusal = _refusal_apart(content)
        self._turn = msgspec.structs.replace(
            turn,
            content=_joined(turn.content, said),
            refusal="".join(filter(None, (turn.refusal, refusal))) or None,
            extra={**turn.extra, **extra} or NOTHING,
        )

    def _reasoning(self, raw: Mapping[str, Any]) -> None:
        turn = self._open_turn()
        if turn.content is not None and not turn.tool_calls:
            self.end_turn()
            turn = AssistantMessage()
        _, texts = reasoning_texts(raw)
        opaque = turn.opaque
        if raw.get("encrypted_content"):
            opaque = {NAME: (*opaque.get(NAME, ()), raw)}
        before = () if turn.reasoning is None else (turn.reasoning,)
        self._turn = msgspec.structs.replace(
            turn, reasoning="\n\n".join((*before, *filter(None, texts))) or None, opaque=opaque
        )

    def _call(self, raw: Mapping[str, Any], where: str) -> None:
        if raw.get("namespace"):
            raise RequestError(
                f"'{where}.namespace': only the Responses API has namespaces of functions.",
                "unsupported_content",
                param=f"{where}.namespace",
            )
        call = ToolCall(
            id=a_string(raw, "call_id", where),
            function=FunctionCall(
                name=a_string(raw, "name", where), arguments=a_string(raw, "arguments", where)
            ),
        )
        turn = self._open_turn()
        self._turn = msgspec.structs.replace(turn, tool_calls=(*turn.tool_calls, call))

    def _open_turn(self) -> AssistantMessage:
        return AssistantMessage() if self._turn is None else self._turn


def _joined(first: Content | None, second: Content | None) -> Content | None:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    return (*_as_parts(first), *_as_parts(second))


def _as_parts(content: Content) -> tuple[Part, ...]:
    return (TextPart(text=content),) if isinstance(content, str) else content


def _refusal_apart(content: Content) -> tuple[Content | None, str | None]:
    """An assistant's text, joined where it is nothing but text, and its refusal."""
    if isinstance(content, str):
        return content, None
    refusals = [p for p in content if isinstance(p, OtherPart) and p.type == "refusal"]
    parts = tuple(part for part in content if part not in refusals)
    refusal = "".join(text for text in (p.raw.get("refusal") for p in refusals) if text) or None
    if all(isinstance(part, TextPart) and not part.extra for part in parts):
        return (text_of(parts) if parts else None), refusal
    return parts, refusal


def _content(value: object, where: str) -> Content:
    if isinstance(value, str):
        return value
    return tuple(_part(part, f"{where}[{i}]") for i, part in enumerate(a_list(value, where)))


def _part(value: object, where: str) -> Part:
    raw = an_object(value, where)
    match raw.get("type"):
        case "input_text" | "output_text":
            return TextPart(text=a_string(raw, "text", where), extra=_rest(raw, "text"))
        case "input_image" if isinstance(raw.get("image_url"), str):
            detail = raw.get("detail")
            return ImagePart(
                url=raw["image_url"],
                detail=None if detail == "auto" else detail,
                extra=_rest(raw, "image_url", "detail"),
            )
        case "input_file":
            known = ("filename", "file_data", "file_id")
            named = {key: a_string(raw, key, where) for key in known if raw.get(key) is not None}
            return FilePart(**named, extra=_rest(raw, *known))
        case "input_image" | "refusal":
            return OtherPart(type=raw["type"], raw=raw)
        case _:
            # Parts in the words of chat completions, which some clients send here too.
            return part_from_openai(raw, where)


def _rest(raw: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    # The empty lists of a reply's own parts (annotations, log probabilities) say nothing.
    rest = {
        key: value
        for key, value in raw.items()
        if key != "type" and key not in known and not asks_for_nothing(key, value)
    }
    return rest or NOTHING
