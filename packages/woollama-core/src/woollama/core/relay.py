"""The same dialect on both sides: the request's bytes pass, and so do the reply's.

Only top-level keys of the request are looked at, each value as the raw JSON that came: unknown
fields, large numbers and the order of everything inside survive (RU-15, RU-16).
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from woollama.core.errors import CannotEncode, RequestError
from woollama.core.exchange import open_reply
from woollama.core.providers import Target
from woollama.core.providers.target import check_effort
from woollama.core.retries import NO_RETRIES, Retries, enter_with_retries
from woollama.core.transport.base import Timeouts, Transport, WireResponse
from woollama.core.wire import WireRequest
from woollama.core.wire.codec import JSON_HEADERS

__all__ = ["RawBody", "chat_fields", "dropped_fields", "open_relay", "raw_body", "whole_body"]

T = TypeVar("T")

RawBody = dict[str, msgspec.Raw]
"""A JSON object's top-level keys with their values as raw JSON."""

_raw_bodies = msgspec.json.Decoder(RawBody)
_whole_bodies = msgspec.json.Decoder(dict[str, Any])
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()
_NULL = msgspec.Raw(b"null")
_NOTHING = frozenset({b"null", b"{}", b"[]", b'""'})
_NEEDED = frozenset({"model", "messages", "stream"})
_OLLAMA = ("options", "keep_alive")
_CAPS = ("max_completion_tokens", "max_tokens")  # the first wins, as on the way in


def raw_body(body: bytes) -> RawBody:
    """The top level of a request's body.

    Raises:
        RequestError: it is not a JSON object; says what it is instead.
    """
    return _read(body, _raw_bodies)


def whole_body(body: bytes) -> dict[str, Any]:
    """A request's body in full.

    Raises:
        RequestError: as ``raw_body``; also where it holds a number too large to be read.
    """
    return _read(body, _whole_bodies)


def _read(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    if not body.strip():
        raise RequestError("The request body is empty; it must be a JSON object.")
    try:
        if not body.isascii():
            # Raw values are not looked into: what is no UTF-8 shall not reach the provider.
            body.decode()
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        said = "must be a JSON object" if "`object`" in str(error) else "cannot be read"
        raise RequestError(f"The request body {said}: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "an escape in it is half of a character" if _is_half(body) else error
        raise RequestError(f"The request body is not valid JSON: {reason}.") from error
    except RecursionError as error:
        raise RequestError("The request body is nested too deeply.") from error


def _is_half(body: bytes) -> bool:
    """Whether an escape of a surrogate stands alone, which other readers of JSON let pass."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        pass
    return False


def open_relay(
    target: Target,
    fields: Mapping[str, Any],
    path: str,
    *,
    transport: Transport,
    api_key: str | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - an immutable value
    retries: Retries = NO_RETRIES,
) -> AbstractAsyncContextManager[WireResponse]:
    """Sends ``fields`` to ``<base_url><path>`` with the target's model in them.

    Args:
        target: who is asked.
        fields: the top level of the client's body; for chat what ``chat_fields`` made of it.
        path: below the provider's base URL, ``/chat/completions``.
        transport: how the bytes travel.
        api_key: the caller's own key.
        timeouts: how long to wait.
        retries: how often to ask again before the first byte.

    Raises:
        ConfigError: by the call itself: a key is needed and there is none.
        ProviderError: the reply's status says no.
        TransportError: there was no reply.
    """
    wire = WireRequest(
        method="POST",
        url=f"{target.provider.base_url.rstrip('/')}{path}",
        headers=JSON_HEADERS,
        body=_encoder.encode({**target.settings.extra_body, **fields, "model": target.model}),
    )
    wire = target.authorize(wire, api_key)
    opener = partial(open_reply, target, wire, transport=transport, timeouts=timeouts)
    return _Relay(opener, retries) if retries.attempts > 1 else opener()


class _Relay(AbstractAsyncContextManager[WireResponse]):
    def __init__(
        self, opener: Callable[[], AbstractAsyncContextManager[WireResponse]], retries: Retries
    ) -> None:
        self._opener = opener
        self._retries = retries

    async def __aenter__(self) -> WireResponse:
        self._exchange, response = await enter_with_retries(self._opener, self._retries)
        return response

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._exchange.__aexit__(kind, error, trace)


def chat_fields(target: Target, body: RawBody) -> dict[str, Any]:
    """The top level of a chat request with the target's settings applied (RU-16).

    A default effort is added and one outside the model's list refused, the output cap is renamed,
    declared defaults are filled in, what ``drop_params`` lists is left out.

    Raises:
        RequestError: an effort the model does not take.
        CannotEncode: fields that only Ollama's own API has (RU-18).
    """
    settings, declared = target.settings, target.declared
    fields: dict[str, Any] = dict(body)
    for name in dropped_fields(target, body):
        del fields[name]
    for name in _OLLAMA:
        if name in fields and bytes(fields.pop(name)) not in _NOTHING:
            raise CannotEncode(
                f"{target.name} is asked by Chat Completions, which has no place for {name!r}.",
                param=name,
                hint="Only a provider of kind 'ollama' takes it.",
            )
    if settings.output_field != _CAPS[-1]:
        caps = [fields.pop(name) for name in _CAPS if name in fields]
        _fill(fields, settings.output_field, next((cap for cap in caps if cap != _NULL), None))
    if declared.efforts or declared.effort:
        _fill(fields, "reasoning_effort", check_effort(target, _effort(fields)))
    _fill(fields, "temperature", declared.temperature)
    _fill(fields, "seed", declared.seed)
    _fill(fields, "prompt_cache_key", settings.cache_key)
    for name in settings.drop_params - _NEEDED:
        fields.pop(name, None)
    return fields


def dropped_fields(target: Target, body: RawBody) -> tuple[str, ...]:
    """The client's fields that ``drop_params`` leaves out, by the names the client gave them."""
    drop = target.settings.drop_params - _NEEDED
    if not drop:
        return ()
    cap = target.settings.output_field
    return tuple(name for name in body if name in drop or (name in _CAPS and cap in drop))


def _fill(fields: dict[str, Any], name: str, value: object) -> None:
    # Null is the same as absent, as everywhere.
    if value is not None and fields.get(name, _NULL) == _NULL:
        fields[name] = value


def _effort(fields: Mapping[str, Any]) -> str | None:
    raw = fields.get("reasoning_effort", _NULL)
    if raw == _NULL:
        return None
    try:
        return _text.decode(raw)
    except msgspec.DecodeError as error:
        raise RequestError(
            "'reasoning_effort' must be a string.", param="reasoning_effort"
        ) from error
