"""One exchange of a dialect in a line: what is sent for a request, what a reply says."""

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from woollama.core.canonical import Delta, Reply, assemble, request_from_openai
from woollama.core.errors import CannotEncode, InferenceError, ProviderError
from woollama.core.wire import Decoder, Dialect, WireRequest, WireSettings

BASE_URL = "http://peer.test/v1"
HI: dict[str, Any] = {"role": "user", "content": "hi"}
NOW = 1_750_000_000.0
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def call(identity: str, name: str = "get_weather", arguments: str = "{}") -> dict[str, Any]:
    """A call in an assistant message."""
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def encode(
    dialect: Dialect,
    *,
    settings: WireSettings | None = None,
    base_url: str = BASE_URL,
    stream: bool = False,
    **fields: Any,
) -> WireRequest:
    """The wire request for a Chat Completions body; it says hi unless ``messages`` say more."""
    request = request_from_openai({"model": "m", "messages": [HI], **fields})
    return dialect.codec.encode(
        request, base_url=base_url, stream=stream, settings=settings or WireSettings()
    )


def body_of(dialect: Dialect, **fields: Any) -> dict[str, Any]:
    """The body that is sent."""
    return json.loads(encode(dialect, **fields).body)


def refused(dialect: Dialect, **fields: Any) -> CannotEncode:
    """The refusal of what cannot be said."""
    with pytest.raises(CannotEncode) as caught:
        encode(dialect, **fields)
    return caught.value


def decoder_of(dialect: Dialect) -> Decoder:
    """A decoder whose ids are made1, made2, …"""
    counter = itertools.count(1)
    return dialect.codec.decoder(new_id=lambda: f"made{next(counter)}", now=lambda: NOW)


def read(dialect: Dialect, chunks: Iterable[bytes]) -> tuple[list[Delta], InferenceError | None]:
    """The deltas of a reply, and the error it ended in."""
    decoder = decoder_of(dialect)
    deltas: list[Delta] = []
    try:
        for chunk in chunks:
            deltas.extend(decoder.feed(chunk))
            if decoder.done:
                break
        deltas.extend(decoder.finish())
    except InferenceError as error:
        return deltas, error
    return deltas, None


def deltas_of(dialect: Dialect, data: bytes) -> list[Delta]:
    """The deltas of a reply that ended well."""
    deltas, error = read(dialect, [data])
    assert error is None, error
    return deltas


def reply_of(dialect: Dialect, data: bytes) -> Reply:
    """The whole reply."""
    return assemble(deltas_of(dialect, data))


def failure_of(dialect: Dialect, data: bytes) -> InferenceError:
    """The error that a reply ended in."""
    _, error = read(dialect, [data])
    assert error is not None, "the reply ended well"
    return error


def error_of(
    dialect: Dialect, status: int, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error of a reply whose status says no; a body that is not bytes is JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return dialect.codec.decode_error(status, headers or {}, data, now=lambda: NOW)


def stream(*payloads: Any) -> bytes:
    """An event stream; texts go as they are, the others as JSON."""
    texts = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return "".join(f"data: {text}\n\n" for text in texts).encode()
