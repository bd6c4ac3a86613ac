"""Text of a case as bytes: parts, long strings, and the words that stand for ports and places."""

import base64
from collections.abc import Mapping
from typing import Any, cast

from tests.cases.schema import Part, Send

__all__ = ["bytes_of", "fill", "parts_of", "repeated"]


def parts_of(send: Send) -> tuple[Part, ...]:
    """The parts of what is to be sent."""
    parts = send if isinstance(send, tuple) else (send,)
    return tuple(Part(text=part) if isinstance(part, str) else part for part in parts)


def bytes_of(part: Part) -> bytes:
    """The bytes of one part."""
    data = part.text.encode() + part.latin1.encode("latin-1") + base64.b64decode(part.b64)
    return data * part.repeat


def fill(text: str, words: Mapping[str, str]) -> str:
    """``text`` with each word (``@PORT@``, ``@BASE:up@`` …) replaced."""
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text


def repeated(tree: Any) -> Any:
    """``tree`` with each ``{"$repeat": {"text": t, "n": k}}`` replaced by the long string."""
    match tree:
        case {"$repeat": {"text": str(text), "n": int(times)}}:
            return text * times
        case dict():
            return {key: repeated(value) for key, value in cast("dict[str, Any]", tree).items()}
        case list():
            return [repeated(value) for value in cast("list[Any]", tree)]
        case _:
            return tree
