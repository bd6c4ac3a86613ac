"""Errors as providers write them, in every shape known (wire README, section 7)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import msgspec

from woollama.core.canonical import NOTHING
from woollama.core.errors import ProviderError, kind_of_status

__all__ = ["KEPT_HEADERS", "kept_headers", "payload_error", "reply_error", "retry_after_s"]

KEPT_HEADERS = frozenset(
    {"retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id"}
)
"""The reply headers that are worth a caller's while, beside the rate limits."""

_KEPT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-", "x-generation-id")
_NO_CURE = frozenset({"insufficient_quota", "credit_balance_exhausted"})
_TEXT_LIMIT = 500
_BAD_GATEWAY = 502

_KIND_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "api_error": "server_error",
        "authentication_error": "authentication",
        "billing_error": "billing",
        "bio_policy": "invalid_request",
        "conflict_error": "conflict",
        "data_residency_mismatch": "invalid_request",
        "insufficient_quota": "rate_limit",
        "invalid_prompt": "invalid_request",
        "invalid_request_error": "invalid_request",
        "misalignment_policy_violation": "invalid_request",
        "not_found_error": "not_found",
        "overloaded_error": "overloaded",
        "permission_error": "permission",
        "rate_limit_error": "rate_limit",
        "rate_limit_exceeded": "rate_limit",
        "request_too_large": "invalid_request",
        "server_error": "server_error",
        "server_is_overloaded": "overloaded",
        "service_unavailable_error": "overloaded",
        "slow_down": "rate_limit",
        "timeout_error": "timeout",
        "too_many_requests": "rate_limit",
        "vector_store_timeout": "timeout",
    }
)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a reply that may be passed on; names in lower case on both sides."""
    return {
        name: value
        for name, value in headers.items()
        if name in KEPT_HEADERS or name.startswith(_KEPT_PREFIXES)
    }


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Seconds the peer asks to wait: ``retry-after-ms``, else ``retry-after`` (OC-33)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    from email.utils import parsedate_to_datetime  # a tenth of this package's import time

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now())
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


def reply_error(
    status: int, headers: Mapping[str, str], body: bytes, now: Callable[[], float]
) -> ProviderError:
    """The error of a reply whose HTTP status says no.

    Args:
        status: the HTTP status.
        headers: names in lower case.
        body: JSON of any known shape, text, HTML, or nothing.
        now: the Unix time, to read a date in ``Retry-After``.
    """
    try:
        payload: Any = msgspec.json.decode(body) if body.strip() else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        payload = body.decode(errors="replace").strip()
    return payload_error(payload, status=status, headers=headers, now=now)


def payload_error(
    payload: Any,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    now: Callable[[], float] | None = None,
) -> ProviderError:
    """The error in a payload; inside a stream there is no status, or the payload names it.

    Args:
        payload: decoded JSON, or text.
        status: the HTTP status unless it said 200.
        headers: names in lower case.
        now: the Unix time.
    """
    headers = headers if headers is not None else {}
    fields = _fields(payload)
    code = fields.get("code")
    if status is None:
        status = _status_in(payload, fields)
    # Gemini names the kind of fault in "status" (OC-35).
    words = (fields.get("type"), fields.get("status"))
    native = next((word for word in words if isinstance(word, str)), None)
    code_text = None if code is None else str(code)
    kind = _kind(status, native, code_text)
    param = fields.get("param")
    retry = headers.get("x-should-retry")
    retryable = None if code_text not in _NO_CURE else False
    if retry in {"true", "false"}:
        retryable = retry == "true"
    request_id = headers.get("x-request-id") or headers.get("request-id")
    if request_id is None and isinstance(payload, Mapping):
        named = cast("Mapping[str, Any]", payload).get("request_id")
        request_id = named if isinstance(named, str) else None
    return ProviderError(
        _message(fields, status),
        kind=kind,
        status=status if status is not None and status >= 400 else _BAD_GATEWAY,
        payload=payload,
        type=native,
        code=code_text,
        param=param if isinstance(param, str) else None,
        peer_status=status,
        retryable=retryable,
        retry_after=retry_after_s(headers, now) if now is not None else None,
        request_id=request_id,
        headers=kept_headers(headers),
    )


def _fields(payload: Any) -> Mapping[str, Any]:
    if isinstance(payload, list):
        items = cast("list[Any]", payload)
        payload = items[0] if items else None
    if isinstance(payload, str):
        return {"message": payload[:_TEXT_LIMIT]}
    if not isinstance(payload, Mapping):
        return {}
    found = cast("Mapping[str, Any]", payload)
    error = found.get("error")
    response = found.get("response")
    if isinstance(response, Mapping) and not error:
        error = cast("Mapping[str, Any]", response).get("error")
    if isinstance(error, Mapping):
        return cast("Mapping[str, Any]", error)
    if error:
        return {**found, "message": error}
    if "detail" in found:
        return {"message": found["detail"]}
    return found


def _status_in(payload: Any, fields: Mapping[str, Any]) -> int | None:
    outer = cast("Mapping[str, Any]", payload) if isinstance(payload, Mapping) else NOTHING
    for value in (fields.get("status_code"), outer.get("status_code"), fields.get("code")):
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    return None


def _kind(status: int | None, native: str | None, code: str | None) -> str:
    if status is not None:
        return kind_of_status(status)
    for word in (native, code):
        if word is not None and word in _KIND_WORDS:
            return _KIND_WORDS[word]
    return "server_error"


def _message(fields: Mapping[str, Any], status: int | None) -> str:
    message = fields.get("message")
    if isinstance(message, str) and message.strip():
        return message
    if message and not isinstance(message, str):
        return msgspec.json.encode(message).decode()[:_TEXT_LIMIT]
    said = f"status {status}" if status is not None else "an error"
    return f"The provider answered {said} and no message."
