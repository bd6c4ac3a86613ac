"""Errors in every shape that providers give them (wire README, section 7)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.errors import ProviderError
from woollama.core.wire.faults import kept_headers, payload_error, reply_error, retry_after_s

NOW = 1_750_000_000.0


def now() -> float:
    return NOW


def refusal(status: int, body: Any = b"", **headers: str) -> ProviderError:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply_error(status, named, data, now)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "authentication", False),
        (402, "billing", False),
        (403, "permission", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "conflict", True),
        (413, "invalid_request", False),
        (418, "invalid_request", False),
        (422, "invalid_request", False),
        (429, "rate_limit", True),
        (499, "canceled", False),
        (500, "server_error", True),
        (502, "server_error", True),
        (503, "overloaded", True),
        (504, "timeout", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_has_its_kind(status: int, kind: str, *, retryable: bool) -> None:
    error = refusal(status, {"error": {"message": "m"}})
    assert (kind, status, status, retryable) == (
        error.kind,
        error.status,
        error.peer_status,
        error.retryable,
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "openai"}}, "openai"),
        ([{"error": {"message": "gemini"}}], "gemini"),
        ({"error": "ollama"}, "ollama"),
        ({"response": {"error": {"message": "responses"}}}, "responses"),
        ({"detail": "fastapi"}, "fastapi"),
        ({"detail": [{"loc": ["a"], "msg": "no"}]}, '[{"loc":["a"],"msg":"no"}]'),
        ({"message": "mistral", "code": "x"}, "mistral"),
        ({"error": {"message": {"a": 1}}}, '{"a":1}'),
        ({"error": ["x"]}, '["x"]'),
        ("text as JSON", "text as JSON"),
        (b"plain text \n", "plain text"),
        (b"<html>" + b"x" * 1000, ("<html>" + "x" * 1000)[:500]),
        (b"\xff", "�"),
        (b"[" * 100_000, "[" * 500),
        (b"", "The provider answered status 400 and no message."),
        (b"7", "The provider answered status 400 and no message."),
        ([], "The provider answered status 400 and no message."),
        ({"error": {}}, "The provider answered status 400 and no message."),
        ({"error": {"message": " "}}, "The provider answered status 400 and no message."),
    ],
)
def test_a_message_is_found_in_every_shape(body: Any, message: str) -> None:
    assert message == refusal(400, body).message


def test_the_peers_own_words_are_kept() -> None:
    body = {"error": {"message": "m", "type": "t", "code": 7, "param": "p"}}
    error = refusal(400, body, x_request_id="r-1", x_ratelimit_limit_tokens="9", server="s")
    assert ("t", "7", "p", "r-1", body) == (
        error.type,
        error.code,
        error.param,
        error.request_id,
        error.payload,
    )
    assert {"x-request-id": "r-1", "x-ratelimit-limit-tokens": "9"} == error.headers


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"request_id": "a"}, {}, "a"),
        ({"x_request_id": "x", "request_id": "a"}, {"request_id": "b"}, "x"),
        ({}, {"request_id": "b"}, "b"),
        ({}, {"request_id": 3}, None),
    ],
)
def test_the_peers_id_of_the_request_is_found(
    headers: Mapping[str, str], body: Any, expected: str | None
) -> None:
    assert expected == refusal(400, body, **headers).request_id


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        ({"error": {"code": "insufficient_quota"}}, None, False),
        ({"error": {"code": "credit_balance_exhausted"}}, None, False),
        ({"error": {"code": "rate_limit_exceeded"}}, None, True),
        ({"error": {"code": "insufficient_quota"}}, "true", True),
        ({}, "false", False),
        ({}, "maybe", True),
    ],
)
def test_oc_34_whether_to_ask_again_is_the_peers_to_say(
    body: Any, header: str | None, *, expected: bool
) -> None:
    headers = {} if header is None else {"x_should_retry": header}
    assert expected is refusal(429, body, **headers).retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Sun, 15 Jun 2025 15:06:50 GMT"}, 10.0),
        ({"retry-after": "Sun, 15 Jun 2025 15:06:30 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Sun, 99 Jun 2025 15:06:30 GMT"}, None),
    ],
)
def test_oc_33_the_asked_wait_is_read_in_every_form(
    headers: Mapping[str, str], seconds: float | None
) -> None:
    assert seconds == retry_after_s(headers, now)


@given(st.text())
def test_no_header_breaks_the_reading_of_a_wait(text: str) -> None:
    found = retry_after_s({"retry-after": text, "retry-after-ms": text}, now)
    assert found is None or 0 <= found < float("inf")


@pytest.mark.parametrize(
    ("payload", "kind", "status", "peer"),
    [
        ({"error": {"type": "overloaded_error"}}, "overloaded", 502, None),
        ({"error": {"code": "rate_limit_exceeded"}}, "rate_limit", 502, None),
        ({"error": {"type": "strange", "code": "slow_down"}}, "rate_limit", 502, None),
        ({"error": {"type": "strange"}}, "server_error", 502, None),
        ({"error": {"code": 429}}, "rate_limit", 429, 429),
        ({"error": {"status_code": 400, "code": "tool_use_failed"}}, "invalid_request", 400, 400),
        ({"error": {"message": "m"}, "status_code": 503}, "overloaded", 503, 503),
        ({"error": {"code": 200}}, "server_error", 502, None),
        ({"error": {"code": True}}, "server_error", 502, None),
        ({"error": {"status": "RESOURCE_EXHAUSTED"}}, "server_error", 502, None),
        ("text", "server_error", 502, None),
        (None, "server_error", 502, None),
    ],
)
def test_an_error_inside_a_stream_gets_its_kind_from_its_words(
    payload: Any, kind: str, status: int, peer: int | None
) -> None:
    error = payload_error(payload)
    assert (kind, status, peer) == (error.kind, error.status, error.peer_status)


def test_an_error_without_a_word_says_so() -> None:
    assert "The provider answered an error and no message." == payload_error({}).message


def test_only_headers_that_concern_a_caller_are_kept() -> None:
    headers = {
        "retry-after": "1",
        "retry-after-ms": "1",
        "x-should-retry": "true",
        "x-request-id": "a",
        "request-id": "b",
        "x-ratelimit-remaining-requests": "c",
        "anthropic-ratelimit-tokens-limit": "d",
        "x-generation-id": "e",
    }
    others = {"set-cookie": "s", "server": "n", "content-type": "t", "authorization": "k"}
    assert headers == kept_headers({**headers, **others})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "code", "type", "param", "response", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 400, 429, 500]))
def test_no_payload_breaks_the_reading_of_an_error(payload: Any, status: int | None) -> None:
    error = payload_error(payload, status=status)
    assert error.message
    assert 400 <= error.status < 600
    assert isinstance(str(error), str)


@given(st.binary(max_size=200))
def test_no_body_breaks_the_reading_of_an_error(body: bytes) -> None:
    assert reply_error(500, {}, body, now).message
