"""A request in no wire's words: OpenAI-shaped, typed, complete."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from woollama.core.canonical.messages import Message, message_from_openai
from woollama.core.canonical.value import NOTHING, Value
from woollama.core.errors import RequestError

__all__ = [
    "ChatRequest",
    "FunctionTool",
    "NamedTool",
    "OtherChoice",
    "OtherTool",
    "Params",
    "Tool",
    "ToolChoice",
    "request_from_openai",
    "tool_to_openai",
]

Number = int | float


class FunctionTool(Value, frozen=True, kw_only=True):
    """A function the model may call. ``parameters`` is its JSON Schema, unchanged."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    strict: bool | None = None
    extra: Mapping[str, Any] = NOTHING


class OtherTool(Value, frozen=True, kw_only=True):
    """A tool of a type we do not know, kept as it came."""

    type: str
    raw: Mapping[str, Any]


Tool = FunctionTool | OtherTool


class NamedTool(Value, frozen=True, kw_only=True):
    """The choice of one function by name."""

    name: str


class OtherChoice(Value, frozen=True, kw_only=True):
    """A tool choice of a shape we do not know, kept as it came."""

    raw: Mapping[str, Any]


ToolChoice = Literal["auto", "none", "required"] | NamedTool | OtherChoice


class Params(Value, frozen=True, kw_only=True):
    """What steers the reply. None is: not asked for.

    ``max_tokens`` is the one output cap: ``max_completion_tokens`` is read too and wins.
    ``options`` and ``keep_alive`` are Ollama's. Everything else is OpenAI's.
    """

    temperature: Number | None = None
    top_p: Number | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: Mapping[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    prompt_cache_key: str | None = None
    metadata: Mapping[str, Any] | None = None
    user: str | None = None
    stream_options: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None
    keep_alive: str | Number | None = None

    def asked(self) -> dict[str, Any]:
        """The parameters that were asked for, by name, in the order above."""
        return {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }


class ChatRequest(Value, frozen=True, kw_only=True):
    """One request.

    Attributes:
        model: the provider's own name of the model; a ``provider/`` prefix is resolved before.
        messages: the whole conversation.
        tools: what may be called; empty is the same as none.
        tool_choice: None is: not asked for.
        params: what steers the reply.
        stream: whether the caller wants the reply as it comes.
        extra: top-level fields we do not know, as they came.
        extra_body: fields merged into the wire body last; they win (wire rule C-4).
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    params: Params = Params()
    stream: bool = False
    extra: Mapping[str, Any] = NOTHING
    extra_body: Mapping[str, Any] = NOTHING


_OWN = frozenset(
    {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "stream",
        "extra_body",
        "stop",
        "max_tokens",
        "max_completion_tokens",
    }
)
_PARAMS = frozenset(Params.__struct_fields__)
_NOT_ASKED = Params()


def request_from_openai(body: Mapping[str, Any]) -> ChatRequest:
    """A Chat Completions body, decoded from JSON, to canonical. Null is the same as absent.

    Raises:
        RequestError: a field has the wrong type; ``param`` names it.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestError("'model' must be a string that names a model.", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list | Sequence) or isinstance(messages, str):
        raise RequestError("'messages' must be a list of messages.", param="messages")
    items = cast("Sequence[object]", messages)
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise RequestError("'stream' must be true or false.", param="stream")
    return ChatRequest(
        model=model,
        messages=tuple(message_from_openai(item, f"messages[{i}]") for i, item in enumerate(items)),
        tools=_tools(body.get("tools")),
        tool_choice=_tool_choice(body.get("tool_choice")),
        params=_params(body),
        stream=bool(stream),
        extra=_unknown(body) or NOTHING,
        extra_body=_mapping(body.get("extra_body"), "extra_body") or NOTHING,
    )


def _unknown(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in body.items()
        if value is not None and key not in _OWN and key not in _PARAMS
    }


def _mapping(value: object, name: str) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Mapping):
        return cast("Mapping[str, Any] | None", value)
    raise RequestError(f"'{name}' must be an object, not {type(value).__name__}.", param=name)


def _params(body: Mapping[str, Any]) -> Params:
    asked = {key: body[key] for key in _PARAMS & body.keys() if body[key] is not None}
    cap = body.get("max_completion_tokens")
    if not asked and cap is None:
        return _NOT_ASKED
    if cap is not None:
        asked["max_tokens"] = cap
    stop = asked.get("stop")
    if isinstance(stop, str):
        asked["stop"] = (stop,)
    try:
        return msgspec.convert(asked, Params)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`") or "a parameter"
        if name == "max_tokens" and cap is not None:
            name = "max_completion_tokens"
        raise RequestError(f"'{name}': {reason}.", param=name) from error


def _tools(value: object) -> tuple[Tool, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RequestError("'tools' must be a list of tools.", param="tools")
    items = cast("Sequence[object]", value)
    return tuple(_tool(item, f"tools[{i}]") for i, item in enumerate(items))


def _tool(value: object, where: str) -> Tool:
    raw = _mapping(value, where) or {}
    kind = raw.get("type")
    if kind != "function":
        if not isinstance(kind, str):
            raise RequestError(f"{where}.type must be 'function'.", param=where)
        return OtherTool(type=kind, raw=raw)
    function = _mapping(raw.get("function"), f"{where}.function") or {}
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise RequestError(f"{where}.function.name must be a string.", param=where)
    known = ("name", "description", "parameters", "strict")
    return FunctionTool(
        name=name,
        description=function.get("description"),
        parameters=_mapping(function.get("parameters"), f"{where}.function.parameters"),
        strict=function.get("strict"),
        extra={key: value for key, value in function.items() if key not in known} or NOTHING,
    )


def _tool_choice(value: object) -> ToolChoice | None:
    match value:
        case None:
            return None
        case "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return "required"
        case Mapping():
            raw = cast("Mapping[str, Any]", value)
        case _:
            raise RequestError(
                "'tool_choice' must be 'auto', 'none', 'required' or an object that names a "
                f"function, not {value!r}.",
                param="tool_choice",
            )
    function = raw.get("function")
    if raw.get("type") == "function" and isinstance(function, Mapping):
        name = cast("Mapping[str, Any]", function).get("name")
        if isinstance(name, str):
            return NamedTool(name=name)
    return OtherChoice(raw=raw)


def tool_to_openai(tool: Tool) -> dict[str, Any]:
    """A tool as Chat Completions writes it."""
    if not isinstance(tool, FunctionTool):
        return dict(tool.raw)
    named = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }
    function = {key: value for key, value in named.items() if value is not None}
    return {"type": "function", "function": {**function, **tool.extra}}
