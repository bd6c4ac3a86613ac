"""Top-level fields of a request body that was not decoded further."""

import msgspec

from woollama.core.errors import RequestError
from woollama.core.relay import RawBody

__all__ = ["flag_field", "text_field"]

_texts = msgspec.json.Decoder(str)


def text_field(body: RawBody, name: str) -> str:
    """A required string.

    Raises:
        RequestError: it is missing, empty, or something else; says what it is.
    """
    raw = body.get(name)
    if raw is None:
        raise RequestError(f"{name!r} is missing; it must be a string.", param=name)
    try:
        text = _texts.decode(raw)
    except msgspec.DecodeError as error:
        shown = bytes(raw)[:40].decode(errors="replace")
        raise RequestError(f"{name!r} must be a string, not {shown}.", param=name) from error
    if not text:
        raise RequestError(f"{name!r} must not be empty.", param=name)
    return text


def flag_field(body: RawBody, name: str) -> bool:
    """An optional flag; null is the same as absent.

    Raises:
        RequestError: it is neither true nor false.
    """
    raw = bytes(body.get(name, b"null"))
    if raw not in {b"true", b"false", b"null"}:
        raise RequestError(f"{name!r} must be true or false.", param=name)
    return raw == b"true"
