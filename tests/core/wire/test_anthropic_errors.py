"""Refusals of Anthropic: AE-10, N-12, AE-20 and the table of its error types."""

import json
from typing import Any

import pytest

from woollama.core.errors import ProviderError
from woollama.core.wire.anthropic import ANTHROPIC, STREAM_ABOVE_TOKENS

NOW = 1_750_000_000.0


def refusal(
    status: int, type: str, message: str = "No.", *, headers: Any = None, **fields: Any
) -> ProviderError:
    body = {
        "type": "error",
        "error": {"type": type, "message": message, **fields},
        "request_id": "req_body",
    }
    return ANTHROPIC.codec.decode_error(
        status, headers or {}, json.dumps(body).encode(), now=lambda: NOW
    )


@pytest.mark.parametrize(
    ("status", "type", "kind", "retryable"),
    [
        (400, "invalid_request_error", "invalid_request", False),
        (401, "authentication_error", "authentication", False),
        (402, "billing_error", "billing", False),
        (403, "permission_error", "permission", False),
        (404, "not_found_error", "not_found", False),
        (409, "conflict_error", "conflict", True),
        (413, "request_too_large", "invalid_request", False),
        (429, "rate_limit_error", "rate_limit", True),
        (500, "api_error", "server_error", True),
        (504, "timeout_error", "timeout", True),
        (529, "overloaded_error", "overloaded", True),
    ],
)
def test_the_kind_and_type_of_every_refusal(
    status: int, type: str, kind: str, retryable: bool
) -> None:
    error = refusal(status, type)
    assert (kind, status, type, "No.", retryable) == (
        error.kind,
        error.peer_status,
        error.type,
        error.message,
        error.retryable,
    )
    assert "req_body" == error.request_id


def test_ae_10_the_wait_and_the_advice_to_retry_are_read() -> None:
    waiting = {"retry-after": "12", "request-id": "req_1", "x-should-retry": "false"}
    error = refusal(429, "rate_limit_error", headers=waiting)
    assert (12.0, "req_1", False) == (error.retry_after, error.request_id, error.retryable)
    again = refusal(400, "invalid_request_error", headers={"x-should-retry": "true"})
    assert again.retryable


def test_ae_10_the_rate_limits_are_kept() -> None:
    left = {"anthropic-ratelimit-requests-remaining": "0", "server": "x"}
    error = refusal(529, "overloaded_error", headers=left)
    assert {"anthropic-ratelimit-requests-remaining": "0"} == error.headers


def test_the_code_in_the_details_is_the_errors_code() -> None:
    detailed = refusal(403, "permission_error", details={"error_code": "org_not_enrolled"})
    assert "org_not_enrolled" == detailed.code
    assert "own" == refusal(403, "x", code="own", details={"error_code": "other"}).code
    assert refusal(403, "permission_error", details={"error_code": 7}).code is None


@pytest.mark.parametrize(
    "message",
    [
        "adaptive thinking is not supported on this model",
        "thinking.type: Input tag 'Adaptive' does not match any of the expected tags",
    ],
)
def test_n_12_p_22_thinking_that_is_refused_gets_a_hint(message: str) -> None:
    error = refusal(400, "invalid_request_error", message)
    assert error.hint is not None
    assert "before Claude 4.6" in error.hint
    assert str(error) == f"{message} {error.hint}"


def test_p_22_another_400_gets_none() -> None:
    assert refusal(400, "invalid_request_error", "max_tokens: Field required").hint is None
    assert refusal(403, "permission_error", "adaptive thinking is not for you").hint is None


@pytest.mark.parametrize("status", [408, 504])
def test_ae_20_a_wait_that_was_too_long_gets_the_advice_to_stream(status: int) -> None:
    assert 21_333 == STREAM_ABOVE_TOKENS
    hint = refusal(status, "timeout_error").hint
    assert hint is not None
    assert "stream" in hint
    assert "21333" in hint


def test_an_answer_that_is_not_the_apis_is_read_all_the_same() -> None:
    error = ANTHROPIC.codec.decode_error(502, {}, b"<html>Bad Gateway", now=lambda: NOW)
    assert ("server_error", "<html>Bad Gateway") == (error.kind, error.message)
