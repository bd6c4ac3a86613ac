"""The error tree: whose fault, which status, what goes into OpenAI's error object."""

import copy
import pickle
from typing import Any

import pytest

from woollama.core import errors
from woollama.core.errors import (
    KINDS_BY_STATUS,
    CannotEncode,
    ConfigError,
    InferenceError,
    NotBuilt,
    ProviderError,
    ReplyError,
    RequestError,
    ToolError,
    ToolNotAllowed,
    TransportError,
    TruncatedReply,
    TurnLimit,
    UnknownModel,
    UnknownPattern,
    UnknownTool,
    WoollamaError,
    kind_of_status,
)

TREE = [
    (WoollamaError, Exception, 500, "server_error", "server_error"),
    (InferenceError, WoollamaError, 500, "server_error", "server_error"),
    (ConfigError, InferenceError, 400, "invalid_config", "invalid_request_error"),
    (RequestError, InferenceError, 400, "invalid_request", "invalid_request_error"),
    (UnknownModel, RequestError, 404, "not_found", "invalid_request_error"),
    (UnknownPattern, RequestError, 404, "not_found", "invalid_request_error"),
    (CannotEncode, RequestError, 400, "unsupported_parameter", "invalid_request_error"),
    (ProviderError, InferenceError, 502, "server_error", "server_error"),
    (TransportError, InferenceError, 502, "server_error", "server_error"),
    (ReplyError, InferenceError, 502, "bad_response", "server_error"),
    (TruncatedReply, ReplyError, 502, "incomplete_stream", "server_error"),
    (NotBuilt, InferenceError, 501, "not_built", "not_implemented"),
    (TurnLimit, InferenceError, 500, "server_error", "server_error"),
    (ToolError, WoollamaError, 500, "server_error", "server_error"),
    (ToolNotAllowed, ToolError, 403, "permission", "permission_error"),
    (UnknownTool, ToolError, 404, "not_found", "invalid_request_error"),
]


@pytest.mark.parametrize(("cls", "base", "status", "kind", "type"), TREE)
def test_each_error_has_its_place_status_and_words(
    cls: type[WoollamaError], base: type[Exception], status: int, kind: str, type: str
) -> None:
    error = cls("m")
    assert base is cls.__base__
    assert (status, kind) == (error.status, error.kind)
    if cls not in (UnknownModel, UnknownPattern, UnknownTool):
        assert type == error.type


def test_every_error_of_the_module_is_in_the_tree() -> None:
    listed = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert listed == {cls.__name__ for cls, *_ in TREE}


def test_ru_30_the_type_is_the_peers_own_word_where_it_gave_one() -> None:
    assert "overloaded_error" == ProviderError("m", type="overloaded_error").type
    assert "rate_limit_error" == ProviderError("m", kind="rate_limit", status=429).type
    assert "authentication_error" == ProviderError("m", kind="authentication", status=401).type


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *KINDS_BY_STATUS.items(),
        (418, "invalid_request"),
        (500, "server_error"),
        (599, "server_error"),
    ],
)
def test_a_status_stands_for_a_kind(status: int, kind: str) -> None:
    assert kind == kind_of_status(status)


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        ("rate_limit", True),
        ("overloaded", True),
        ("server_error", True),
        ("timeout", True),
        ("conflict", True),
        ("incomplete_stream", True),
        ("invalid_request", False),
        ("authentication", False),
        ("bad_response", False),
    ],
)
def test_a_kind_says_whether_to_ask_again(kind: str, *, retryable: bool) -> None:
    assert retryable is InferenceError("m", kind).retryable
    assert InferenceError("m", kind, retryable=not retryable).retryable is not retryable


def test_p_22_the_hint_is_behind_the_message() -> None:
    error = RequestError("It is wrong.", hint="Do this.")
    assert ("It is wrong. Do this.", "It is wrong.") == (str(error), error.message)


def test_an_error_is_openais_object() -> None:
    error = RequestError("m", hint="h", param="p", code="c")
    expected = {"message": "m h", "type": "invalid_request_error", "param": "p", "code": "c"}
    assert {"error": expected} == error.to_openai()


@pytest.mark.parametrize(
    ("given", "args"),
    [
        (("m",), ("m",)),
        (("m", "k"), ("m", "k")),
        (("m", None, 418), ("m", None, 418)),
        (("m", None, None, {"a": 1}), ("m", None, None, {"a": 1})),
        (("m", None, None, None), ("m",)),
    ],
)
def test_args_are_what_was_given(given: Any, args: Any) -> None:
    assert args == InferenceError(*given).args


@pytest.mark.parametrize("cls", [cls for cls, *_ in TREE])
def test_an_error_crosses_process_borders_whole(cls: type[WoollamaError]) -> None:
    error = cls(
        "m",
        payload={"a": [1]},
        type="t",
        code="c",
        param="p",
        peer_status=418,
        retryable=True,
        retry_after=1.5,
        request_id="r",
        headers={"x": "y"},
        hint="h",
    )
    error.add_note("a note")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (cls, error.args, vars(error)) == (type(again), again.args, vars(again))
