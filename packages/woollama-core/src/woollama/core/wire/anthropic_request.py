"""What a client sent as an Anthropic Messages request, to canonical.

Everything that clients really send is taken; what canonical values have no place for stays in
``extra`` under its own name. Lost are the order of results and text inside one turn (results come
first, N-6), that of thinking, text and calls inside one reply (N-5), and the choice between one
text and a list of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from woollama.core.canonical import (
    NOTHING,
    AssistantMessage,
    ChatRequest,
    Content,
    FunctionCall,
    Message,
    Params,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.errors import RequestError
from woollama.core.wire.anthropic_blocks import (
    DIALECT,
    content_from_blocks,
    part_from_block,
    rest_of,
)
from woollama.core.wire.anthropic_tools import choice_from_wire, tools_from_wire
from woollama.core.wire.arguments import arguments_text
from woollama.core.wire.shapes import object_of

__all__ = ["request_from_wire"]

_READ = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_p",
    }
)
_NATIVE_NAMES: tuple[tuple[str, str], ...] = (
    ("stop", "stop_sequences"),
    ("user", "metadata.user_id"),
    ("reasoning_effort", "output_config.effort"),
)


def request_from_wire(body: Mapping[str, Any]) -> ChatRequest:
    """A Messages body, decoded from JSON. Null is the same as absent.

    Raises:
        RequestError: a field has the wrong type; ``param`` names it.
    """
    model, stream = body.get("model"), body.get("stream")
    if not isinstance(model, str) or not model:
        raise RequestError("'model' must be a string that names a model.", param="model")
    if stream is not None and not isinstance(stream, bool):
        raise RequestError("'stream' must be true or false.", param="stream")
    choice, parallel = choice_from_wire(body.get("tool_choice"))
    params, extra = _steering(body, parallel)
    return ChatRequest(
        model=model,
        messages=(*_system(body.get("system")), *_messages(body.get("messages"))),
        tools=tools_from_wire(body.get("tools")),
        tool_choice=choice,
        params=params,
        stream=bool(stream),
        extra=extra or NOTHING,
    )


def _steering(body: Mapping[str, Any], parallel: bool | None) -> tuple[Params, dict[str, Any]]:
    extra = {k: v for k, v in body.items() if v is not None and k not in _READ}
    metadata = dict(_object(body.get("metadata"), "metadata"))
    output = dict(_object(body.get("output_config"), "output_config"))
    asked = {
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "max_tokens": body.get("max_tokens"),
        "stop": body.get("stop_sequences"),
        "parallel_tool_calls": parallel,
        "reasoning_effort": output.pop("effort", None),
        "response_format": _format(output.pop("format", None)),
        "user": metadata.pop("user_id", None),
        "metadata": metadata or None,
    }
    thinking = body.get("thinking")
    if thinking is not None and not _is_effort(thinking, asked["reasoning_effort"]):
        extra["thinking"] = thinking
    if output:
        extra["output_config"] = output
    return _params({key: value for key, value in asked.items() if value is not None}), extra


def _is_effort(thinking: object, effort: object) -> bool:
    # An effort means adaptive thinking that is shown (N-11); only what differs is said apart.
    said = object_of(thinking)
    shown = said.get("display") in (None, "summarized")
    return effort is not None and said.get("type") == "adaptive" and shown


def _format(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    said = object_of(value)
    schema = said.get("schema")
    if said.get("type") != "json_schema" or not isinstance(schema, Mapping):
        raise RequestError(
            "'output_config.format' must be an object with 'type': 'json_schema' and 'schema'.",
            param="output_config.format",
        )
    named = {"name": "output", "schema": cast("Mapping[str, Any]", schema)}
    return {"type": "json_schema", "json_schema": named}


def _params(asked: Mapping[str, Any]) -> Params:
    try:
        return msgspec.convert(asked, Params)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`")
        for canonical, native in _NATIVE_NAMES:
            name = name.replace(canonical, native)
        raise RequestError(f"'{name}': {reason}.", param=name) from error


def _object(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return NOTHING
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise RequestError(f"{where} must be an object, not {type(value).__name__}.", param=where)


def _list(value: object, where: str) -> Sequence[object]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return cast("Sequence[object]", value)
    raise RequestError(f"{where} must be a list, not {type(value).__name__}.", param=where)


def _blocks(value: object, where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    for i, item in enumerate(_list(value, where)):
        place = f"{where}[{i}]"
        if not isinstance(item, Mapping):
            raise RequestError(f"{place} must be an object with a 'type'.", param=place)
        yield cast("Mapping[str, Any]", item), place


def _content(value: object, where: str) -> Content:
    if isinstance(value, str):
        return value
    return content_from_blocks(part_from_block(raw, at) for raw, at in _blocks(value, where))


def _system(value: object) -> tuple[Message, ...]:
    return () if value is None else (SystemMessage(content=_content(value, "system")),)


def _messages(value: object) -> Iterator[Message]:
    for i, item in enumerate(_list(value, "messages")):
        where = f"messages[{i}]"
        raw = _object(item, where)
        role = raw.get("role")
        content, place = raw.get("content"), f"{where}.content"
        match role:
            case "user":
                yield from _user(content, place)
            case "assistant":
                yield _assistant(content, place)
            case "system":
                # Not in the manual's prose, but a client sends it and the types have it.
                yield SystemMessage(content=_content(content, place))
            case _:
                raise RequestError(
                    f"{where}.role must be 'user', 'assistant' or 'system', not {role!r}.",
                    param=f"{where}.role",
                )


def _user(content: object, where: str) -> Iterator[Message]:
    if isinstance(content, str):
        yield UserMessage(content=content)
        return
    blocks = list(_blocks(content, where))
    results = [_result(raw, at) for raw, at in blocks if raw.get("type") == "tool_result"]
    yield from results
    if len(results) < len(blocks) or not blocks:
        others = ((raw, at) for raw, at in blocks if raw.get("type") != "tool_result")
        yield UserMessage(content=content_from_blocks(part_from_block(*other) for other in others))


def _result(raw: Mapping[str, Any], where: str) -> ToolMessage:
    identity, content = raw.get("tool_use_id"), raw.get("content")
    if not isinstance(identity, str):
        raise RequestError(
            f"{where}.tool_use_id must be the id of the call this is the result of.",
            param=f"{where}.tool_use_id",
        )
    return ToolMessage(
        tool_call_id=identity,
        content="" if content is None else _content(content, f"{where}.content"),
        is_error=raw.get("is_error") is True,
        extra=rest_of(raw, "tool_use_id", "content", "is_error"),
    )


def _assistant(content: object, where: str) -> AssistantMessage:
    if isinstance(content, str):
        return AssistantMessage(content=content)
    thoughts: list[Mapping[str, Any]] = []
    calls: list[ToolCall] = []
    others: list[tuple[Mapping[str, Any], str]] = []
    for raw, at in _blocks(content, where):
        match raw.get("type"):
            case "thinking" | "redacted_thinking":
                thoughts.append(raw)
            case "tool_use":
                calls.append(_call(raw, at))
            case _:
                others.append((raw, at))
    parts = content_from_blocks(part_from_block(raw, at) for raw, at in others)
    shown = [raw["thinking"] for raw in thoughts if isinstance(raw.get("thinking"), str)]
    return AssistantMessage(
        content=parts or None,
        tool_calls=tuple(calls),
        reasoning="\n\n".join(text for text in shown if text) or None,
        opaque={DIALECT: tuple(thoughts)} if thoughts else NOTHING,
    )


def _call(raw: Mapping[str, Any], where: str) -> ToolCall:
    match raw:
        case {"id": str(identity), "name": str(name)}:
            own = rest_of(raw, "id", "name", "input")
        case _:
            raise RequestError(f"{where} must have an 'id' and a 'name'.", param=where)
    return ToolCall(
        id=identity,
        function=FunctionCall(name=name, arguments=arguments_text(raw.get("input")) or "{}"),
        extra_content={DIALECT: own} if own else None,
    )
