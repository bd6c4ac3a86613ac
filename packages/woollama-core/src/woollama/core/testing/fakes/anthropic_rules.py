"""What ``POST /v1/messages`` refuses: a wrong shape, and parts that do not belong together.

Stricter than the server where that shows a fault of the sender: an effort wants adaptive thinking
beside it (N-20).
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from woollama.core.testing.fakes.anthropic_shapes import (
    Adaptive,
    AnyChoice,
    AssistantTurn,
    Document,
    Manual,
    MessagesBody,
    NamedChoice,
    OutputConfig,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserTurn,
)

__all__ = ["NEW_VERSION", "VERSIONS", "decode_body", "fault_of", "signature_of"]

NEW_VERSION = "2026-10-21"
"""The API version without sampling parameters (AE-1)."""

VERSIONS = ("2023-06-01", NEW_VERSION)
"""The API versions that the fake speaks."""

_decoder = msgspec.json.Decoder(MessagesBody)


def decode_body(data: bytes) -> MessagesBody | str:
    """The body, or what is wrong with its shape."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        return f"{place.strip('.`') or 'body'}: {reason}"
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return f"The request body is not valid JSON: {error}"


def signature_of(thinking: str) -> str:
    """The fake's signature under a text of thinking."""
    return b64encode(hashlib.sha256(thinking.encode()).digest()).decode()


def fault_of(body: MessagesBody, version: str, *, adaptive: bool) -> str | None:
    """What is wrong with a body of good shape; None when nothing is.

    Args:
        body: the request.
        version: one of ``VERSIONS``.
        adaptive: whether the model knows adaptive thinking (N-12).
    """
    faults = (
        *_version(body, version),
        *_thinking(body, adaptive=adaptive),
        *_tools(body),
        *_history(body),
    )
    return next(iter(faults), None)


def _version(body: MessagesBody, version: str) -> Iterator[str]:
    if version != NEW_VERSION:
        return
    for name in ("temperature", "top_p", "top_k"):
        if getattr(body, name) is not UNSET:
            yield f"{name}: Extra inputs are not permitted"
    for i, message in enumerate(body.messages):
        for j, block in enumerate(_blocks(message)):
            where = f"messages[{i}].content[{j}]"
            if isinstance(message, AssistantTurn) and isinstance(block, Document):
                yield f"{where}: document blocks are not permitted in assistant messages"
            if isinstance(message, UserTurn) and isinstance(block, Text) and block.citations:
                yield f"{where}.citations: Extra inputs are not permitted"


def _thinking(body: MessagesBody, *, adaptive: bool) -> Iterator[str]:
    thinking = body.thinking
    if isinstance(thinking, Adaptive) and not adaptive:
        yield "adaptive thinking is not supported on this model"
    if isinstance(thinking, Manual) and thinking.budget_tokens >= body.max_tokens:
        yield "max_tokens must be greater than thinking.budget_tokens"
    output = body.output_config
    effort = output.effort if isinstance(output, OutputConfig) else None
    if effort is not None and not isinstance(thinking, Adaptive):
        yield "output_config.effort: adaptive thinking is required beside an effort"


def _tools(body: MessagesBody) -> Iterator[str]:
    tools = body.tools if isinstance(body.tools, list) else []
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique"
    for i, tool in enumerate(tools):
        if tool.input_schema.get("type") != "object":
            yield f"tools[{i}].input_schema.type: Input should be 'object'"
    choice = body.tool_choice
    if not isinstance(choice, UnsetType) and not tools:
        yield "tool_choice: may only be specified while providing tools"
    if isinstance(choice, NamedChoice) and choice.name not in names:
        yield f"tool_choice: Tool {choice.name!r} not found in provided tools"
    if isinstance(choice, AnyChoice | NamedChoice) and isinstance(body.thinking, Manual):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _blocks(message: UserTurn | AssistantTurn) -> list[Any]:
    content = message.content
    return [Text(text=content)] if isinstance(content, str) else [*content]


def _history(body: MessagesBody) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for is_user, blocks in _turns(body):
        if is_user:
            yield from _results(blocks, waiting)
            waiting = []
            continue
        for block in blocks:
            if isinstance(block, Thinking) and block.signature != signature_of(block.thinking):
                yield "Invalid signature in thinking block"
            if isinstance(block, ToolUse):
                if block.id in seen:
                    yield f"tool_use ids must be unique: {block.id}"
                seen.add(block.id)
                waiting.append(block.id)
    if waiting:
        yield f"tool_use ids without tool_result blocks immediately after: {waiting}"


def _turns(body: MessagesBody) -> list[tuple[bool, list[Any]]]:
    # The server merges neighbours of one role.
    turns: list[tuple[bool, list[Any]]] = []
    for message in body.messages:
        is_user = isinstance(message, UserTurn)
        if not turns or turns[-1][0] is not is_user:
            turns.append((is_user, []))
        turns[-1][1].extend(_blocks(message))
    return turns


def _results(blocks: list[Any], waiting: list[str]) -> Iterator[str]:
    answered: list[str] = []
    said = False
    for block in blocks:
        if not isinstance(block, ToolResult):
            said = True
            continue
        if said:
            yield "tool_result blocks must come before other content"
        if block.tool_use_id not in waiting:
            yield f"unexpected tool_use_id in a tool_result block: {block.tool_use_id}"
        if block.tool_use_id in answered:
            yield f"each tool_use must have a single result: {block.tool_use_id}"
        answered.append(block.tool_use_id)
    missing = [identity for identity in waiting if identity not in answered]
    if missing:
        yield f"tool_use ids without tool_result blocks immediately after: {missing}"
