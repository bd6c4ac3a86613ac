"""What Cerebras refuses of a request: every property it does not know, by its place (CB-1)."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, assert_never

import msgspec

__all__ = ["ChatBody", "Refusal", "decode_chat", "texts_of"]

_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`(?: - at `\$\.?(.*)`)?")
_INDEX = re.compile(r"\[(\d+)\]")
_OPENAI_MODELS = "gpt-oss"


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ImageUrl(_Strict, frozen=True):
    """An image by address or as data."""

    url: str
    detail: str | None = None


class Text(_Strict, frozen=True, tag_field="type", tag="text"):
    """A part that is text."""

    text: str


class Image(_Strict, frozen=True, tag_field="type", tag="image_url"):
    """A part that is an image; not every model takes one."""

    image_url: ImageUrl


class CalledFunction(_Strict, frozen=True):
    """The function of a call; ``arguments`` is text."""

    name: str
    arguments: str


class Call(_Strict, frozen=True):
    """A call of an earlier turn."""

    id: str
    function: CalledFunction
    type: Literal["function"]
    index: int | None = None


class System(_Strict, frozen=True, tag_field="role", tag="system"):
    """Instructions."""

    content: str | list[Text | Image]
    name: str | None = None


class Developer(_Strict, frozen=True, tag_field="role", tag="developer"):
    """Instructions, for the models of OpenAI only (OC-1)."""

    content: str | list[Text | Image]
    name: str | None = None


class User(_Strict, frozen=True, tag_field="role", tag="user"):
    """What the person said."""

    content: str | list[Text | Image]
    name: str | None = None


class Assistant(_Strict, frozen=True, tag_field="role", tag="assistant"):
    """What the model said; its thinking is ``reasoning`` and nothing else (CB-1)."""

    content: str | list[Text] | None = None
    reasoning: str | list[Text] | None = None
    tool_calls: list[Call] | None = None
    name: str | None = None


class Result(_Strict, frozen=True, tag_field="role", tag="tool"):
    """The result of a call."""

    tool_call_id: str
    content: str | list[Text]
    name: str | None = None


Message = System | Developer | User | Assistant | Result


class ChatBody(_Strict, frozen=True):
    """The body of ``POST /v1/chat/completions``."""

    model: str
    messages: list[Message]
    clear_thinking: bool | None = None
    disable_reasoning: bool | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    min_completion_tokens: int | None = None
    min_tokens: int | None = None
    model_parameters: dict[str, Any] | None = None
    n: int | None = None
    parallel_tool_calls: bool | None = None
    prediction: dict[str, Any] | None = None
    presence_penalty: float | None = None
    prompt_cache_key: str | None = None
    reasoning_effort: Literal["none", "low", "medium", "high"] | None = None
    reasoning_format: Literal["none", "parsed", "text_parsed", "raw", "hidden"] = "none"
    response_format: dict[str, Any] | None = None
    seed: int | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: dict[str, bool] | None = None
    temperature: float | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    top_logprobs: int | None = None
    top_p: float | None = None
    user: str | None = None


_bodies = msgspec.json.Decoder(ChatBody)


class Refusal(msgspec.Struct, frozen=True):
    """Why a body is refused with status 400."""

    message: str
    code: str = "wrong_api_format"


def decode_chat(body: bytes) -> ChatBody | Refusal:
    """The body, or why it is refused."""
    try:
        read = _bodies.decode(body)
    except msgspec.DecodeError as error:
        return Refusal(_unsupported(str(error), body))
    fault = next(_faults(read), None)
    return read if fault is None else Refusal(fault)


def _unsupported(said: str, body: bytes) -> str:
    found = _UNKNOWN.match(said)
    if found is None:
        return said
    name, place = found[1], found[2]
    path = [*_INDEX.sub(r".\1", place).split("."), name] if place else [name]
    if path[0] == "messages":
        role = msgspec.json.decode(body)["messages"][int(path[1])]["role"]
        path.insert(2, role)
    where = ".".join(path)
    return f"{where}: property '{where}' is unsupported"


def _faults(body: ChatBody) -> Iterator[str]:
    if body.disable_reasoning and body.model.startswith(_OPENAI_MODELS):
        yield f"disable_reasoning is not supported by {body.model}"
    if not body.messages:
        yield "messages: at least one message is required"
    unanswered: list[str] = []
    for i, message in enumerate(body.messages):
        if isinstance(message, Developer) and not body.model.startswith(_OPENAI_MODELS):
            yield f"messages.{i}.developer: the role is not supported by {body.model}"
        if not isinstance(message, Result):
            yield from _unanswered(unanswered)
            unanswered = _ids(message)
        elif message.tool_call_id in unanswered:
            unanswered.remove(message.tool_call_id)
        else:
            yield f"messages.{i}.tool.tool_call_id: no call before it has this id"
    yield from _unanswered(unanswered)


def _unanswered(ids: Sequence[str]) -> Iterator[str]:
    for identity in ids:
        yield f"messages: the call {identity!r} has no result"


def _ids(message: System | Developer | User | Assistant) -> list[str]:
    calls = message.tool_calls if isinstance(message, Assistant) else None
    return [call.id for call in calls or ()]


def texts_of(messages: Sequence[Message]) -> Iterator[str]:
    """All text that is sent, thinking included."""
    for message in messages:
        yield from _texts(message.content)
        if isinstance(message, Assistant):
            yield from _texts(message.reasoning)


def _texts(content: str | Sequence[Text | Image] | None) -> Iterator[str]:
    match content:
        case None:
            return
        case str():
            yield content
        case Sequence():
            yield from (part.text for part in content if isinstance(part, Text))
        case _:
            assert_never(content)
