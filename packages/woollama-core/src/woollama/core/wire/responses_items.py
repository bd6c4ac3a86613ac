"""Canonical messages to the ``instructions`` and ``input`` items of the Responses API (R-2, R-12).

An item is written in its shortest form: no ``id`` and no ``status``, which older servers refuse
(RE-21) and which would refer to a state that ``store: false`` does not keep.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

from woollama.core.canonical import (
    AssistantMessage,
    AudioPart,
    Content,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    Part,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    text_of,
)
from woollama.core.errors import CannotEncode
from woollama.core.wire.codec import WireSettings
from woollama.core.wire.refusals import asks_for_nothing, left_out
from woollama.core.wire.shapes import object_of

__all__ = ["NAME", "ItemWriting"]

NAME = "responses"
"""The dialect's name, under which its opaque items are kept."""


class ItemWriting:
    """Writes one conversation.

    Attributes:
        items: what goes into ``input``.
        dropped: the message fields left out because ``drop_params`` says so.
    """

    def __init__(self, settings: WireSettings) -> None:
        """``drop_params`` may list ``messages.<key>`` and ``messages.content.<key>``."""
        self.items: list[dict[str, Any]] = []
        self.dropped: list[str] = []
        self._system: list[str] = []
        self._names: dict[str, str] = {}
        self._drop = settings.drop_params
        self._replay = settings.replay_reasoning

    @property
    def instructions(self) -> str:
        """All system texts in order, a blank line between them."""
        return "\n\n".join(self._system)

    def write(self, messages: Iterable[Message]) -> None:
        """Take in all messages.

        Raises:
            CannotEncode: a content or a field has no place in an item; ``param`` names it.
        """
        for i, message in enumerate(messages):
            self._message(message, f"messages[{i}]")

    def _message(self, message: Message, where: str) -> None:
        match message:
            case SystemMessage():
                self._system_text(message, where)
            case UserMessage():
                content = self._content(message.content, where)
                extra = self._kept(message.extra, where)
                self.items.append({"role": "user", "content": content, **extra})
            case AssistantMessage():
                self._assistant(message, where)
            case ToolMessage():
                self._result(message, where)
            case _:
                assert_never(message)

    def _system_text(self, message: SystemMessage, where: str) -> None:
        self._no_place(message.extra, where)
        if not isinstance(message.content, str):
            for j, part in enumerate(message.content):
                if not isinstance(part, TextPart):
                    raise _foreign(part, "in system messages")
                self._no_place(part.extra, f"{where}.content[{j}]")
        text = text_of(message.content)
        if text:
            self._system.append(text)

    def _assistant(self, message: AssistantMessage, where: str) -> None:
        said = list(self._said(message, where))
        for call in message.tool_calls:
            self._names[call.id] = call.name
            said.append(
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                }
            )
        if said and self._replay:
            # A reasoning item is legal only in front of what it led to.
            self.items.extend(_reasoning_items(message))
        self.items.extend(said)

    def _said(self, message: AssistantMessage, where: str) -> Iterator[dict[str, Any]]:
        content = message.content
        if message.refusal is None and _is_plain(content):
            text = text_of(content)
            if text or (content is not None and not message.tool_calls):
                extra = self._kept(message.extra, where)
                yield {"role": "assistant", "content": text, **extra}
            else:
                self._no_place(message.extra, where)
            return
        parts = self._content(content or (), where, text_type="output_text")
        if isinstance(parts, str):
            parts = [{"type": "output_text", "text": parts}]
        if message.refusal is not None:
            parts.append({"type": "refusal", "refusal": message.refusal})
        extra = self._kept(message.extra, where)
        # A list is taken for a reply's own parts only under this type.
        yield {"type": "message", "role": "assistant", "content": parts, **extra}

    def _result(self, message: ToolMessage, where: str) -> None:
        extra = self._kept(message.extra, where)
        if extra.get("name") == self._names.get(message.tool_call_id, ""):
            # Some clients repeat the function's name; the call has it already.
            del extra["name"]
        self.items.append(
            {
                "type": "function_call_output",
                "call_id": message.tool_call_id,
                "output": self._content(message.content, where),
                **extra,
            }
        )

    def _content(
        self, content: Content, where: str, *, text_type: str = "input_text"
    ) -> str | list[dict[str, Any]]:
        if isinstance(content, str):
            return content
        return [
            self._part(part, f"{where}.content[{j}]", text_type) for j, part in enumerate(content)
        ]

    def _part(self, part: Part, where: str, text_type: str) -> dict[str, Any]:
        match part:
            case TextPart():
                raw: dict[str, Any] = {"type": text_type, "text": part.text}
            case ImagePart():
                detail = part.detail or "auto"
                raw = {"type": "input_image", "image_url": part.url, "detail": detail}
            case FilePart():
                named = {
                    "filename": part.filename,
                    "file_data": part.file_data,
                    "file_id": part.file_id,
                }
                raw = {"type": "input_file"}
                raw |= {key: value for key, value in named.items() if value is not None}
            case AudioPart():
                raise _foreign(part, "at all")
            case OtherPart():
                return dict(part.raw)
            case _:
                assert_never(part)
        return raw | self._kept(part.extra, where, "content.")

    def _kept(self, extra: Mapping[str, Any], where: str, group: str = "") -> dict[str, Any]:
        """The unknown fields that ask for something: they leave as they came (R-11)."""
        kept: dict[str, Any] = {}
        for key, value in extra.items():
            if asks_for_nothing(key, value):
                continue
            if f"messages.{group}{key}" in self._drop:
                self.dropped.append(f"{where}.{key}")
            else:
                kept[key] = value
        return kept

    def _no_place(self, extra: Mapping[str, Any], where: str) -> None:
        for key, value in extra.items():
            name = f"{where}.{key}"
            if left_out(NAME, name, value, self._drop):
                self.dropped.append(name)


def _is_plain(content: Content | None) -> bool:
    if content is None or isinstance(content, str):
        return True
    return all(isinstance(part, TextPart) and not part.extra for part in content)


def _reasoning_items(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    for value in message.opaque.get(NAME, ()):
        item = object_of(value)
        if item.get("encrypted_content"):
            yield {"summary": [], **{k: v for k, v in item.items() if k != "status"}}


def _foreign(part: Part, place: str) -> CannotEncode:
    what = type(part).__name__.removesuffix("Part").lower()
    return CannotEncode(
        f"The dialect {NAME!r} takes no {what} parts {place}.",
        "unsupported_content",
        param="messages",
    )
