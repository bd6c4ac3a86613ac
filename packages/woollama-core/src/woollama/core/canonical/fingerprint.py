"""One word for a whole request: equal for equal requests, whoever is asked (A-11, P-25)."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from woollama.core.canonical.request import ChatRequest

__all__ = ["canonical_hash"]

_encoder = msgspec.json.Encoder(order="sorted")


def canonical_hash(request: ChatRequest) -> str:
    """SHA-256, in hexadecimal, of the request as JSON with sorted keys.

    It knows no dialect: a request has one hash, and only its wire form depends on who is asked.
    Fields at their default do not count, nor does the order of keys; that of lists does.

    Raises:
        TypeError: a field holds something that is no JSON.
    """
    import hashlib  # it loads OpenSSL

    return hashlib.sha256(_encoder.encode(_plain(request))).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        set_fields = {
            field.name: _plain(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
            if getattr(value, field.name) != field.default
        }
        # Two messages may differ in nothing but what they are.
        return {"is": type(value).__name__, **set_fields}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value
