"""Content blocks of Anthropic Messages: canonical parts to blocks and back.

Source: the wire page ``anthropic-messages``; its rules N-8, N-10 and AE-17 act here.
"""

import base64
from collections.abc import Collection, Iterable, Mapping
from typing import Any, assert_never, cast

from woollama.core.canonical import (
    NOTHING,
    AudioPart,
    Content,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
)
from woollama.core.errors import CannotEncode, RequestError
from woollama.core.wire.data_urls import data_url, split_data_url
from woollama.core.wire.refusals import left_out

__all__ = ["DIALECT", "BlockWriter", "content_from_blocks", "part_from_block", "rest_of"]

DIALECT = "anthropic"
"""The dialect's name, also the tag of what is opaque to every other one (RU-12)."""

_TEXT_KEYS = frozenset({"cache_control", "citations"})
_IMAGE_KEYS = frozenset({"cache_control", "transformations"})
_DOCUMENT_KEYS = frozenset({"cache_control", "citations", "context"})
_OWN_BLOCKS = frozenset(
    {
        "container_upload",
        "document",
        "image",
        "search_result",
        "server_tool_use",
        "tool_reference",
    }
)
_OWN_RESULTS = "_tool_result"
_JPEG_NAMES = frozenset({"image/jpg", "image/pjpeg"})
_PLAIN_TEXT = "text/plain"


class BlockWriter:
    """Writes the content of one request as blocks.

    Attributes:
        dropped: what it left out because the operator allows it, or because the wire has no such
            choice; names of parts and their keys.
    """

    def __init__(self, drop: Collection[str]) -> None:
        """Nothing is written yet; ``drop`` is the operator's ``drop_params``."""
        self.dropped: list[str] = []
        self._drop = drop

    def blocks(self, content: Content | None, where: str) -> list[dict[str, Any]]:
        """The blocks of ``content``; text that says nothing makes none (N-8, AE-17).

        Args:
            content: text or parts.
            where: the place to name in an error, ``messages[3].content``.

        Raises:
            CannotEncode: a part has no block, or carries a key that its block does not have.
        """
        if content is None:
            return []
        if isinstance(content, str):
            content = (TextPart(text=content),)
        written = (self._block(part, f"{where}[{j}]") for j, part in enumerate(content))
        return [block for block in written if block is not None]

    def keys(self, extra: Mapping[str, Any], known: Collection[str], where: str) -> dict[str, Any]:
        """The keys of ``extra`` that stand beside ``known`` ones on the wire.

        Args:
            extra: what the canonical value keeps of keys it does not know.
            known: the keys that the block, result or tool has on this wire.
            where: the place to name in an error.

        Raises:
            CannotEncode: a key is not known, asks for something, and may not be dropped.
        """
        kept: dict[str, Any] = {}
        for key, value in extra.items():
            name = f"{where}.{key}"
            if key in known:
                kept[key] = value
            elif left_out(DIALECT, name, value, self._drop):
                self.dropped.append(name)
        return kept

    def _block(self, part: Part, where: str) -> dict[str, Any] | None:
        match part:
            case TextPart():
                if not part.text.strip():
                    return None
                extra = self.keys(part.extra, _TEXT_KEYS, where)
                return {"type": "text", "text": part.text, **extra}
            case ImagePart():
                return self._image(part, where)
            case FilePart():
                return self._document(part, where)
            case OtherPart():
                if part.type in _OWN_BLOCKS or part.type.endswith(_OWN_RESULTS):
                    return dict(part.raw)
                raise _no_block(f"a part of type {part.type!r}", where)
            case AudioPart():
                raise _no_block("sound", where)
            case _:
                assert_never(part)

    def _image(self, part: ImagePart, where: str) -> dict[str, Any]:
        if part.detail not in (None, "auto"):
            # The server scales images by itself: there is no choice to make, and none to refuse.
            self.dropped.append(f"{where}.image_url.detail")
        source = {"type": "url", "url": part.url}
        if part.url[:5].lower() == "data:":
            media_type, data = _inline(part.url, where)
            # Its other names are refused by the server, although its kind of image is not.
            media_type = "image/jpeg" if media_type in _JPEG_NAMES else media_type
            source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source, **self.keys(part.extra, _IMAGE_KEYS, where)}

    def _document(self, part: FilePart, where: str) -> dict[str, Any]:
        if part.file_data is None:
            raise _no_block("a file that is only named", where)
        media_type, data = _inline(part.file_data, where)
        source = {"type": "base64", "media_type": media_type, "data": data}
        text = _plain_text(data) if media_type == _PLAIN_TEXT else None
        if text is not None:
            source = {"type": "text", "media_type": _PLAIN_TEXT, "data": text}
        block: dict[str, Any] = {"type": "document", "source": source}
        if part.filename is not None:
            block["title"] = part.filename
        return {**block, **self.keys(part.extra, _DOCUMENT_KEYS, where)}


def _inline(url: str, where: str) -> tuple[str, str]:
    found = split_data_url(url)
    if found is None or not found[0]:
        raise _no_block("data without a media type or not in base64", where)
    return found


def _plain_text(data: str) -> str | None:
    # Plain text has a source of its own; in base64 the server takes nothing but PDF.
    try:
        return base64.b64decode(data, validate=True).decode()
    except ValueError:
        return None


def _no_block(what: str, where: str) -> CannotEncode:
    return CannotEncode(
        f"The dialect {DIALECT!r} has no words for {what} ({where}).",
        "unsupported_content",
        param="messages",
    )


def content_from_blocks(blocks: Iterable[Part]) -> Content:
    """Parts as content: one plain text is a string, which the API calls the same."""
    parts = tuple(blocks)
    match parts:
        case (TextPart(text=text, extra=extra),) if not extra:
            return text
        case _:
            return parts


def part_from_block(raw: Mapping[str, Any], where: str) -> Part:
    """A block as a client wrote it, to a part; what canonical parts do not say stays as it came.

    Args:
        raw: the block.
        where: the place to name in an error, ``messages[3].content[0]``.

    Raises:
        RequestError: it has no type, or lacks what its type needs.
    """
    match raw:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=rest_of(raw, "text"))
        case {"type": "text"}:
            raise RequestError(f"{where}.text must be a string.", param=f"{where}.text")
        case {"type": "image" | "document", "source": Mapping()}:
            return _from_source(raw)
        case {"type": "image" | "document"}:
            raise RequestError(f"{where}.source must be an object.", param=f"{where}.source")
        case {"type": str(kind)}:
            return OtherPart(type=kind, raw=raw)
        case _:
            at = f"{where}.type"
            raise RequestError(f"{at} must be a string such as 'text'.", param=at)


def _from_source(raw: Mapping[str, Any]) -> Part:
    title = raw.get("title")
    named = title if isinstance(title, str) else None
    match raw["type"], raw["source"]:
        case "image", {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            url = data_url(media_type, data)
            return ImagePart(url=url, extra=rest_of(raw, "source"))
        case "image", {"type": "url", "url": str(url)}:
            return ImagePart(url=url, extra=rest_of(raw, "source"))
        case "document", {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            url = data_url(media_type, data)
        case "document", {"type": "text", "data": str(data)}:
            url = data_url(_PLAIN_TEXT, base64.b64encode(data.encode()).decode())
        case _:
            return OtherPart(type=raw["type"], raw=raw)
    return FilePart(filename=named, file_data=url, extra=rest_of(raw, "source", "title"))


def rest_of(raw: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    """The keys of a block beside its type and the ``known`` ones; null is the same as absent."""
    rest = {
        key: value
        for key, value in raw.items()
        if value is not None and key != "type" and key not in known
    }
    return cast("Mapping[str, Any]", rest) if rest else NOTHING
