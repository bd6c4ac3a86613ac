"""What both APIs of OpenAI's family refuse alike, and the words in which they do it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from woollama.core.testing.fake import FakeReply, FakeRequest, json_reply

__all__ = [
    "Effort",
    "Name",
    "Refused",
    "Strict",
    "check_model",
    "check_strict_schema",
    "openai_error",
    "refuse_key",
    "shaped",
    "texts_of",
]

Name = Annotated[str, Meta(pattern=r"\A[a-zA-Z0-9_-]{1,64}\Z")]
"""The name of a function or schema."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_TYPES: Mapping[int, str] = MappingProxyType({429: "rate_limit_error", 500: "server_error"})
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_TEXT_KEYS = frozenset({"arguments", "content", "instructions", "output", "refusal", "text"})

T = TypeVar("T")


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shape of a request that takes no field it does not know."""


class Refused(Exception):
    """The refusal that a check came to."""

    def __init__(self, reply: FakeReply) -> None:
        """``reply`` says it."""
        super().__init__(reply)
        self.reply = reply


def openai_error(
    status: int,
    message: str,
    *,
    type: str | None = None,
    param: str | None = None,
    code: str | None = None,
) -> FakeReply:
    """``{"error": {message, type, param, code}}``."""
    if type is None:
        type = _TYPES.get(status, "invalid_request_error")
    error = {"message": message, "type": type, "param": param, "code": code}
    return json_reply(status, {"error": error}, {"x-request-id": "req_1"})


def refuse_key(request: FakeRequest, key: str | None) -> FakeReply | None:
    """The refusal of a request whose key is not where both APIs read it, or is another one."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not given:
        return openai_error(401, "Missing bearer authentication in header")
    if key is not None and given != key:
        return openai_error(401, "Incorrect API key provided.", code="invalid_api_key")
    return None


def shaped(value: Any, shape: type[T], place: str = "") -> T:
    """``value`` in its shape.

    Args:
        value: decoded JSON.
        shape: a ``Strict``.
        place: where ``value`` stands in the body, ``input[0]``; empty is the body itself.

    Raises:
        Refused: it has another shape; the error names the field.
    """
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise Refused(_shape_error(error, place)) from error


def _shape_error(error: msgspec.ValidationError, place: str) -> FakeReply:
    reason, _, inside = str(error).partition(" - at `$")
    place = (place + inside.rstrip("`")).lstrip(".")
    unknown, missing = _UNKNOWN.match(reason), _MISSING.match(reason)
    found = unknown or missing
    if found is None:
        wrong = "invalid_type" if ", got `" in reason else "invalid_value"
        return openai_error(400, f"Invalid value for '{place}': {reason}.", param=place, code=wrong)
    place = f"{place}.{found[1]}".lstrip(".")
    if unknown:
        message, code = f"Unknown parameter: '{place}'.", "unknown_parameter"
    else:
        message, code = f"Missing required parameter: '{place}'.", "missing_required_parameter"
    return openai_error(400, message, param=place, code=code)


def check_model(model: str, models: Collection[str]) -> None:
    """Refuses a model that is not there; no models is any.

    Raises:
        Refused: 404.
    """
    if models and model not in models:
        message = f"The model '{model}' does not exist or you do not have access to it."
        raise Refused(openai_error(404, message, param="model", code="model_not_found"))


def check_strict_schema(schema: Any, what: str, param: str) -> None:
    """Refuses a schema that strict mode cannot keep: each property required, no others allowed.

    Args:
        schema: of a function's parameters or a response.
        what: whose, for the message: ``function 'f'``.
        param: where it stands.

    Raises:
        Refused: 400 (RE-13).
    """
    for inside in _schemas(schema):
        if inside.get("type") != "object" and "properties" not in inside:
            continue
        properties = cast("Mapping[str, Any]", inside.get("properties", {}))
        if inside.get("additionalProperties") is not False:
            fault = "'additionalProperties' is required to be supplied and to be false."
        elif set(cast("Sequence[str]", inside.get("required", ()))) != set(properties):
            fault = "'required' is required to be supplied and to name every key in properties."
        else:
            continue
        raise Refused(
            openai_error(
                400,
                f"Invalid schema for {what}: {fault}",
                param=param,
                code="invalid_function_parameters",
            )
        )


def _schemas(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, list):
        return [found for item in cast("list[Any]", value) for found in _schemas(item)]
    if not isinstance(value, Mapping):
        return []
    schema = cast("Mapping[str, Any]", value)
    return [schema, *(found for item in schema.values() for found in _schemas(item))]


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a conversation, in whatever messages, items and parts they stand."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from texts_of(item)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if isinstance(item, str):
                if key in _TEXT_KEYS:
                    yield item
            else:
                yield from texts_of(item)
