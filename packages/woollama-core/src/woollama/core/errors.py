"""The error tree: whose fault it is, what a program can do about it, what the peer said.

    WoollamaError
    ├─ InferenceError                everything the façade of ``woollama.core`` can raise
    │  ├─ ConfigError          400   the operator's: names the file and the key
    │  ├─ RequestError         400   the caller's
    │  │  ├─ UnknownModel      404
    │  │  ├─ UnknownPattern    404
    │  │  └─ CannotEncode      400   the dialect has no words for this content
    │  ├─ ProviderError              the peer said no: its status, its payload, its Retry-After
    │  ├─ TransportError    502/504  no answer: connect, time limit, cut
    │  ├─ ReplyError           502   an answer that was not understood
    │  │  └─ TruncatedReply    502   it stopped before its terminal mark
    │  ├─ NotBuilt             501   a name whose feature is not there
    │  └─ TurnLimit            500   the loop did not end within max_turns
    └─ ToolError
       ├─ ToolNotAllowed       403
       └─ UnknownTool          404

``kind`` is the stable word for programs, ``type`` the word that OpenAI's error object carries.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

__all__ = [
    "KINDS_BY_STATUS",
    "CannotEncode",
    "ConfigError",
    "InferenceError",
    "NotBuilt",
    "ProviderError",
    "ReplyError",
    "RequestError",
    "ToolError",
    "ToolNotAllowed",
    "TransportError",
    "TruncatedReply",
    "TurnLimit",
    "UnknownModel",
    "UnknownPattern",
    "UnknownTool",
    "WoollamaError",
    "kind_of_status",
]

KINDS_BY_STATUS: Mapping[int, str] = MappingProxyType(
    {
        400: "invalid_request",
        401: "authentication",
        402: "billing",
        403: "permission",
        404: "not_found",
        408: "timeout",
        409: "conflict",
        413: "invalid_request",
        422: "invalid_request",
        429: "rate_limit",
        499: "canceled",
        503: "overloaded",
        504: "timeout",
        529: "overloaded",
    }
)

_TYPES_BY_KIND: Mapping[str, str] = MappingProxyType(
    {
        "authentication": "authentication_error",
        "billing": "billing_error",
        "not_built": "not_implemented",
        "permission": "permission_error",
        "rate_limit": "rate_limit_error",
    }
)

_RETRYABLE = frozenset(
    {"rate_limit", "overloaded", "server_error", "timeout", "conflict", "incomplete_stream"}
)


def kind_of_status(status: int) -> str:
    """The kind that an HTTP status stands for (wire README, section 7)."""
    known = KINDS_BY_STATUS.get(status)
    if known is not None:
        return known
    return "server_error" if status >= 500 else "invalid_request"


class WoollamaError(Exception):
    """Root of everything woollama raises on purpose.

    Attributes:
        message: one sentence for a person; ``str(error)`` adds the hint when there is one.
        kind: stable word for programs (``rate_limit``, ``not_found``, ``unsupported_parameter`` …).
        status: the HTTP status a server should answer with.
        payload: what the peer said, decoded JSON or text; never a secret.
        type: the word of OpenAI's error object; the peer's own when it gave one.
        code, param: as in OpenAI's error object.
        peer_status: the status the peer gave, None when the fault was found on our side.
        retryable: whether the same request may succeed later.
        retry_after: seconds the peer asked to wait.
        request_id: the peer's id of the request.
        headers: the peer's reply headers worth passing on, names in lower case.
        hint: advice on what to do.
    """

    default_kind: ClassVar[str] = "server_error"
    default_status: ClassVar[int] = 500

    def __init__(
        self,
        message: str,
        kind: str | None = None,
        status: int | None = None,
        payload: Any = None,
        *,
        type: str | None = None,
        code: str | None = None,
        param: str | None = None,
        peer_status: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        hint: str | None = None,
    ) -> None:
        """Only the message is required; the class supplies kind and status."""
        given = [message, kind, status, payload]
        while len(given) > 1 and given[-1] is None:
            given.pop()
        super().__init__(*given)
        self.message: str = message
        self.kind: str = kind if kind is not None else self.default_kind
        self.status: int = status if status is not None else self.default_status
        self.payload: Any = payload
        self.native_type: str | None = type
        self.code: str | None = code
        self.param: str | None = param
        self.peer_status: int | None = peer_status
        self.retryable: bool = retryable if retryable is not None else self.kind in _RETRYABLE
        self.retry_after: float | None = retry_after
        self.request_id: str | None = request_id
        self.headers: Mapping[str, str] = headers if headers is not None else {}
        self.hint: str | None = hint

    def __str__(self) -> str:
        """The message, and the hint behind it when there is one."""
        return f"{self.message} {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross process borders whole: the state is all there is."""
        return (_rebuild, (self.__class__, self.args, self.__dict__))

    @property
    def type(self) -> str:
        """The word for OpenAI's ``error.type``; the peer's own when it gave one."""
        if self.native_type:
            return self.native_type
        known = _TYPES_BY_KIND.get(self.kind)
        if known is not None:
            return known
        return "invalid_request_error" if 400 <= self.status < 500 else "server_error"

    def to_openai(self) -> dict[str, Any]:
        """OpenAI's error body: ``{"error": {message, type, param, code}}``."""
        body = {
            "message": str(self),
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return {"error": body}


def _rebuild(
    cls: type[WoollamaError], args: tuple[Any, ...], state: dict[str, Any]
) -> WoollamaError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InferenceError(WoollamaError):
    """Root of what the façade of ``woollama.core`` raises; catch this one."""


class ConfigError(InferenceError):
    """A configuration fault: names the file, the key and the fix."""

    default_kind = "invalid_config"
    default_status = 400


class RequestError(InferenceError):
    """The caller asked for something that cannot be done as asked."""

    default_kind = "invalid_request"
    default_status = 400


class UnknownModel(RequestError):
    """No provider, recipe or pattern has this model name."""

    default_kind = "not_found"
    default_status = 404


class UnknownPattern(RequestError):
    """No pattern has this name."""

    default_kind = "not_found"
    default_status = 404


class CannotEncode(RequestError):
    """The target's dialect has no words for a value; ``param`` names it (wire rule C-3)."""

    default_kind = "unsupported_parameter"
    default_status = 400


class ProviderError(InferenceError):
    """The provider answered, and the answer is no."""

    default_status = 502


class TransportError(InferenceError):
    """No answer: the connection failed, was cut, or a time limit passed."""

    default_status = 502


class ReplyError(InferenceError):
    """The provider answered something that its dialect does not explain."""

    default_kind = "bad_response"
    default_status = 502


class TruncatedReply(ReplyError):
    """The reply ended before its terminal mark (wire rule C-15)."""

    default_kind = "incomplete_stream"


class NotBuilt(InferenceError):
    """A name that is reserved for a feature which this installation does not have."""

    default_kind = "not_built"
    default_status = 501


class TurnLimit(InferenceError):
    """The tool loop did not come to an end within ``max_turns``."""

    default_status = 500


class ToolError(WoollamaError):
    """Root of faults at the tool seam; a tool that merely fails is a result instead."""


class ToolNotAllowed(ToolError):
    """The recipe's allow-list does not hold this tool."""

    default_kind = "permission"
    default_status = 403


class UnknownTool(ToolError):
    """No tool provider has a tool of this name."""

    default_kind = "not_found"
    default_status = 404
