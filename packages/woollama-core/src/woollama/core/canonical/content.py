"""Content parts: what a message is made of when it is not plain text."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never, cast

from woollama.core.canonical.value import NOTHING, Value
from woollama.core.errors import RequestError

__all__ = [
    "AudioPart",
    "Content",
    "FilePart",
    "ImagePart",
    "OtherPart",
    "Part",
    "TextPart",
    "content_from_openai",
    "content_to_openai",
    "part_from_openai",
    "text_of",
]


class TextPart(Value, frozen=True, kw_only=True):
    """Plain text."""

    text: str
    extra: Mapping[str, Any] = NOTHING


class ImagePart(Value, frozen=True, kw_only=True):
    """An image by ``url``: an ``http(s)`` address or a ``data:`` URL with base64."""

    url: str
    detail: str | None = None
    extra: Mapping[str, Any] = NOTHING


class AudioPart(Value, frozen=True, kw_only=True):
    """Sound: base64 ``data`` in ``format`` (``wav`` or ``mp3``)."""

    data: str
    format: str
    extra: Mapping[str, Any] = NOTHING


class FilePart(Value, frozen=True, kw_only=True):
    """A document: a ``data:`` URL in ``file_data``, or the ``file_id`` of one the server has."""

    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None
    extra: Mapping[str, Any] = NOTHING


class OtherPart(Value, frozen=True, kw_only=True):
    """A part of a type we do not know, kept as it came; only the OpenAI dialects can send it."""

    type: str
    raw: Mapping[str, Any]


Part = TextPart | ImagePart | AudioPart | FilePart | OtherPart
Content = str | tuple[Part, ...]


def content_from_openai(value: object, where: str) -> Content:
    """Content as a client wrote it, to canonical.

    Args:
        value: a string or a list of part objects.
        where: the place to name in an error, ``messages[3].content``.

    Raises:
        RequestError: neither; or a part that lacks what its type needs.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        parts = cast("Sequence[object]", value)
        return tuple(part_from_openai(part, f"{where}[{i}]") for i, part in enumerate(parts))
    raise RequestError(
        f"{where} must be a string or a list of parts, not {type(value).__name__}.", param=where
    )


def part_from_openai(value: object, where: str) -> Part:
    """One content part as a client wrote it, to canonical; a type we do not know is kept.

    Raises:
        RequestError: it lacks what its type needs.
    """
    if not isinstance(value, Mapping):
        raise RequestError(
            f"{where} must be an object with a 'type', not {type(value).__name__}.", param=where
        )
    raw = cast("Mapping[str, Any]", value)
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise RequestError(f"{where}.type must be a string such as 'text'.", param=f"{where}.type")
    match kind:
        case "text":
            return TextPart(text=_text(raw, "text", where), extra=_rest(raw, "text"))
        case "image_url":
            image = _object(raw, "image_url", where)
            return ImagePart(
                url=_text(image, "url", f"{where}.image_url"),
                detail=image.get("detail"),
                extra=_rest(raw, "image_url"),
            )
        case "input_audio":
            audio = _object(raw, "input_audio", where)
            inside = f"{where}.input_audio"
            return AudioPart(
                data=_text(audio, "data", inside),
                format=_text(audio, "format", inside),
                extra=_rest(raw, "input_audio"),
            )
        case "file":
            file = _object(raw, "file", where)
            return FilePart(
                filename=file.get("filename"),
                file_data=file.get("file_data"),
                file_id=file.get("file_id"),
                extra=_rest(raw, "file"),
            )
        case _:
            return OtherPart(type=kind, raw=raw)


def _text(raw: Mapping[str, Any], key: str, where: str) -> str:
    value = raw.get(key)
    if isinstance(value, str):
        return value
    raise RequestError(f"{where}.{key} must be a string.", param=f"{where}.{key}")


def _object(raw: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = raw.get(key)
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise RequestError(f"{where}.{key} must be an object.", param=f"{where}.{key}")


def _rest(raw: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    rest = {key: value for key, value in raw.items() if key != "type" and key not in known}
    return rest or NOTHING


def content_to_openai(content: Content) -> str | list[dict[str, Any]]:
    """Canonical content in OpenAI's words."""
    if isinstance(content, str):
        return content
    return [_part_to_openai(part) for part in content]


def _part_to_openai(part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text, **part.extra}
        case ImagePart():
            image = (
                {"url": part.url}
                if part.detail is None
                else {
                    "url": part.url,
                    "detail": part.detail,
                }
            )
            return {"type": "image_url", "image_url": image, **part.extra}
        case AudioPart():
            audio = {"data": part.data, "format": part.format}
            return {"type": "input_audio", "input_audio": audio, **part.extra}
        case FilePart():
            named = {
                "filename": part.filename,
                "file_data": part.file_data,
                "file_id": part.file_id,
            }
            file = {key: value for key, value in named.items() if value is not None}
            return {"type": "file", "file": file, **part.extra}
        case OtherPart():
            return dict(part.raw)
        case _:
            assert_never(part)


def text_of(content: Content | None, *, separator: str = "") -> str:
    """The text in content: itself, or its text parts joined; other parts do not count."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return separator.join(part.text for part in content if isinstance(part, TextPart))
