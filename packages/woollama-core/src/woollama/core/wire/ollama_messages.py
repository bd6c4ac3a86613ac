"""A conversation in the words of ``/api/chat``: plain text, bare images, arguments as objects."""

from collections.abc import Collection
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
    ToolCall,
    ToolMessage,
    UserMessage,
    text_of,
)
from woollama.core.errors import CannotEncode
from woollama.core.wire.arguments import arguments_object
from woollama.core.wire.data_urls import split_data_url
from woollama.core.wire.refusals import left_out
from woollama.core.wire.shapes import text_in

__all__ = ["NAME", "MessageWriter"]

NAME = "ollama"
"""The dialect's name."""


class MessageWriter:
    """Writes the messages of one request.

    Attributes:
        dropped: what it left out because the operator allows it, or because the wire has no such
            choice; names of parts and their keys.
    """

    def __init__(self, drop: Collection[str]) -> None:
        """Nothing is written yet; ``drop`` is the operator's ``drop_params``."""
        self.dropped: list[str] = []
        self._drop = drop
        self._names: dict[str, str] = {}

    def message(self, message: Message, where: str) -> dict[str, Any]:
        """One message; they are written in their order.

        Args:
            message: any canonical message.
            where: the place to name in an error, ``messages[3]``.

        Raises:
            CannotEncode: a part that the wire has no words for.
        """
        match message:
            case SystemMessage():
                return {"role": "system", **self._content(message.content, where)}
            case UserMessage():
                return {"role": "user", **self._content(message.content, where)}
            case AssistantMessage():
                return self._assistant(message, where)
            case ToolMessage():
                return self._result(message, where)
            case _:
                assert_never(message)

    def _assistant(self, message: AssistantMessage, where: str) -> dict[str, Any]:
        body = {"role": "assistant", **self._content(message.content or "", where)}
        if message.refusal:
            # The wire has no word for a refusal of an earlier turn; it was said, so it stays text.
            body["content"] = "\n".join(filter(None, (body["content"], message.refusal)))
        if message.reasoning:
            body["thinking"] = message.reasoning
        if message.tool_calls:
            body["tool_calls"] = [self._call(call) for call in message.tool_calls]
        return body

    def _call(self, call: ToolCall) -> dict[str, Any]:
        self._names[call.id] = call.name
        named = {"id": call.id} if call.id else {}
        arguments = arguments_object(call.arguments)
        return {**named, "function": {"name": call.name, "arguments": arguments}}

    def _result(self, message: ToolMessage, where: str) -> dict[str, Any]:
        body = {"role": "tool", **self._content(message.content, where)}
        # Older servers tie results by the tool's name alone (OL-5).
        name = self._names.get(message.tool_call_id) or text_in(message.extra, "name")
        if name:
            body["tool_name"] = name
        if message.tool_call_id:
            body["tool_call_id"] = message.tool_call_id
        return body

    def _content(self, content: Content, where: str) -> dict[str, Any]:
        if isinstance(content, str):
            return {"content": content}
        body: dict[str, Any] = {"content": text_of(content, separator="\n")}
        bare = (self._bare(part, f"{where}.content[{j}]") for j, part in enumerate(content))
        images = [data for data in bare if data is not None]
        if images:
            body["images"] = images
        return body

    def _bare(self, part: Part, where: str) -> str | None:
        """The base64 of a part that is not text (OL-7)."""
        match part:
            case TextPart():
                data = None
            case ImagePart():
                data = _image(part, where)
                if part.detail not in {None, "auto"}:
                    # The server scales images by itself: no choice to make, and none to refuse.
                    self.dropped.append(f"{where}.image_url.detail")
            case AudioPart():
                # Models that hear take sound from here too.
                data = part.data
            case FilePart():
                raise _no_words("a file", where)
            case OtherPart():
                raise _no_words(f"a part of type {part.type!r}", where)
            case _:
                assert_never(part)
        for key, value in part.extra.items():
            if left_out(NAME, f"{where}.{key}", value, self._drop):
                self.dropped.append(f"{where}.{key}")
        return data


def _image(part: ImagePart, where: str) -> str:
    inline = split_data_url(part.url)
    if inline is None:
        # The server fetches nothing, and neither do we on anyone's behalf.
        raise _no_words("an image that is not a data: URL with base64", where)
    return inline[1]


def _no_words(what: str, where: str) -> CannotEncode:
    return CannotEncode(
        f"The dialect {NAME!r} has no words for {what} ({where}).",
        "unsupported_content",
        param="messages",
    )
