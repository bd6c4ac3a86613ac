"""What ``POST /api/chat`` refuses, in the server's order and, where known, in its words.

Stricter than the server in one way: what it would ignore in silence is refused here, unknown fields
and a history whose calls and results do not belong together, because each is a fault of the sender.
Unknown ``options`` are taken, as there (OL-22).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import msgspec

__all__ = ["ChatBody", "decode_chat", "fault_of"]

Number = int | float

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_THINK = (True, False, "low", "medium", "high", "max")
_DURATION = re.compile(r"-?(\d+(\.\d+)?(ns|us|\u00b5s|ms|s|m|h))+|0")
_INTEGERS = (
    "draft_num_predict",
    "main_gpu",
    "num_batch",
    "num_ctx",
    "num_gpu",
    "num_keep",
    "num_predict",
    "num_thread",
    "repeat_last_n",
    "seed",
    "top_k",
)
_FLOATS = (
    "frequency_penalty",
    "min_p",
    "presence_penalty",
    "repeat_penalty",
    "temperature",
    "top_p",
    "typical_p",
)
_OPTIONS: Mapping[str, tuple[Any, str]] = MappingProxyType(
    {
        # The server cuts the fraction off where it wants an integer.
        **dict.fromkeys(_INTEGERS, (Number, "integer")),
        **dict.fromkeys(_FLOATS, (Number, "float32")),
        "stop": (list[str], "array"),
        "use_mmap": (bool, "boolean"),
    }
)


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class CalledFunction(_Strict, frozen=True):
    """The function of a call; ``arguments`` is an object (OL-4)."""

    name: str
    arguments: dict[str, Any]
    index: int = 0


class Call(_Strict, frozen=True):
    """A call of an earlier turn."""

    function: CalledFunction
    id: str = ""


class ChatMessage(_Strict, frozen=True):
    """One message; ``images`` are base64 without a prefix (OL-7)."""

    role: str
    content: str = ""
    thinking: str = ""
    images: list[bytes] = []
    tool_calls: list[Call] = []
    tool_name: str = ""
    tool_call_id: str = ""


class OfferedFunction(_Strict, frozen=True):
    """A function that may be called."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False


class OfferedTool(_Strict, frozen=True):
    """A tool that may be used; the server knows functions only."""

    function: OfferedFunction
    type: str = "function"


class ChatBody(_Strict, frozen=True):
    """The body of ``POST /api/chat``; ``stream`` is true when absent (OL-1)."""

    model: str = ""
    messages: list[ChatMessage] = []
    stream: bool = True
    format: Any = ""
    keep_alive: Number | str | None = None
    tools: list[OfferedTool] = []
    options: dict[str, Any] = {}
    think: Any = None
    truncate: bool = True
    shift: bool = True
    logprobs: bool = False
    top_logprobs: int = 0


_bodies = msgspec.json.Decoder(ChatBody)


def decode_chat(body: bytes) -> ChatBody | str:
    """The body, or the words of the refusal (status 400)."""
    if not body.strip():
        return "missing request body"
    try:
        return _bodies.decode(body)
    except msgspec.DecodeError as error:
        return f"json: {error}"


def fault_of(body: ChatBody, abilities: Collection[str]) -> str | None:
    """The words of the refusal (status 400), or None.

    Args:
        body: whose model is there.
        abilities: what the model can: ``tools``, ``thinking``.
    """
    checks = (
        _field_faults(body),
        _ability_faults(body, abilities),
        _option_faults(body.options),
        _history_faults(body.messages),
    )
    return next(chain.from_iterable(checks), None)


def _field_faults(body: ChatBody) -> Iterator[str]:
    if not isinstance(body.format, dict) and body.format not in ("", "json"):
        yield f'invalid format: {body.format!r}; expected "json" or a valid JSON Schema object'
    if isinstance(body.keep_alive, str) and _DURATION.fullmatch(body.keep_alive) is None:
        yield f"time: invalid duration {body.keep_alive!r}"
    if not 0 <= body.top_logprobs <= 20:
        yield "top_logprobs must be between 0 and 20"
    think = body.think
    if think is not None and not (isinstance(think, bool | str) and think in _THINK):
        yield (
            f"invalid think value: {think!r} "
            '(must be "high", "medium", "low", "max", true, or false)'
        )


def _ability_faults(body: ChatBody, abilities: Collection[str]) -> Iterator[str]:
    asked = {"thinking": body.think, "tools": body.tools}
    for name, value in asked.items():
        if value and name not in abilities:
            yield f'"{body.model}" does not support {name}'


def _option_faults(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        wanted, word = _OPTIONS.get(name, (Any, ""))
        try:
            msgspec.convert(value, wanted | None)
        except msgspec.ValidationError:
            yield f'option "{name}" must be of type {word}'


def _history_faults(messages: Sequence[ChatMessage]) -> Iterator[str]:
    unanswered: list[Call] = []
    for i, message in enumerate(messages):
        role = message.role.lower()
        if role not in _ROLES:
            yield f"messages[{i}]: invalid role {message.role!r}"
        if role != "assistant" and (message.tool_calls or message.thinking):
            yield f"messages[{i}]: only an assistant calls tools and thinks"
        if role != "tool" and (message.tool_name or message.tool_call_id):
            yield f"messages[{i}]: only a tool's result names a call"
        if role != "tool" and unanswered:
            yield f"messages[{i}]: {unanswered[0].function.name!r} was called and has no result"
        if role == "tool":
            answered = (at for at, call in enumerate(unanswered) if _answers(message, call))
            at = next(answered, None)
            if at is None:
                yield f"messages[{i}]: no call before it has this result"
            else:
                del unanswered[at]
        unanswered += message.tool_calls
    if unanswered:
        yield f"{unanswered[0].function.name!r} was called and has no result"


def _answers(message: ChatMessage, call: Call) -> bool:
    # The name is what ties them, an id is newer (OL-5).
    if message.tool_call_id and call.id and message.tool_call_id != call.id:
        return False
    return message.tool_name == call.function.name
