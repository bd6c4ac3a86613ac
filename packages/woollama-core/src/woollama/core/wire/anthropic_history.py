"""A conversation as Anthropic Messages wants it: system apart, turns merged, results first.

Source: the wire page ``anthropic-messages``; its rules N-3 and N-5 to N-9 act here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, assert_never, cast

from woollama.core.canonical import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.errors import CannotEncode
from woollama.core.wire.anthropic_blocks import DIALECT, BlockWriter
from woollama.core.wire.arguments import arguments_object

__all__ = ["RESULT_KEYS", "CallIds", "encode_history", "encode_system"]

RESULT_KEYS = ("cache_control", "toolset_name")
"""What a result block may carry beside the result."""

_CALL_KEYS = ("cache_control", "caller", "toolset_name")
_THINKING = frozenset({"thinking", "redacted_thinking"})
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """Ids of tool calls as the API takes them, the same in a call and its result (N-7, AE-22).

    Other providers' ids may hold other characters, be empty, or come again in a later turn; here
    each call of a conversation has its own.
    """

    def __init__(self) -> None:
        """No call has been seen."""
        self._taken: set[str] = set()
        self._waiting: dict[str, list[str]] = {}
        self._last: dict[str, str] = {}

    def call(self, identity: str) -> str:
        """The wire id of the next call, which canonically has ``identity``."""
        base = _legal(identity)
        wire, count = base, 1
        while wire in self._taken:
            count += 1
            wire = f"{base}_{count}"
        self._taken.add(wire)
        self._waiting.setdefault(identity, []).append(wire)
        self._last[identity] = wire
        return wire

    def result(self, identity: str) -> str:
        """The wire id of the call that the next result with ``identity`` belongs to."""
        waiting = self._waiting.get(identity)
        if waiting:
            return waiting.pop(0)
        return self._last.get(identity, _legal(identity))

    def answered(self) -> None:
        """The model has spoken again: calls without a result get none any more."""
        self._waiting.clear()


def _legal(identity: str) -> str:
    return _FOREIGN.sub("_", identity) or "call"


def encode_system(messages: Iterable[Message], writer: BlockWriter) -> str | list[Any] | None:
    """The top-level ``system`` (N-3): text joined with a blank line, or blocks if any has parts.

    Raises:
        CannotEncode: a part is not text.
    """
    found = [(i, m.content) for i, m in enumerate(messages) if isinstance(m, SystemMessage)]
    texts = [content for _, content in found if isinstance(content, str)]
    if len(texts) == len(found):
        return "\n\n".join(text for text in texts if text.strip()) or None
    blocks: list[Any] = []
    for i, content in found:
        where = f"messages[{i}].content"
        if not isinstance(content, str) and not all(isinstance(p, TextPart) for p in content):
            raise CannotEncode(
                f"The dialect {DIALECT!r} takes only text as instructions ({where}).",
                "unsupported_content",
                param="messages",
            )
        blocks.extend(writer.blocks(content, where))
    return blocks or None


def encode_history(
    messages: Iterable[Message], writer: BlockWriter, *, replay: bool
) -> list[dict[str, Any]]:
    """The turns of ``messages``, roles alternating, without the system messages.

    Args:
        messages: the whole conversation.
        writer: writes the content.
        replay: put the thinking that came from this dialect back in front (RU-12); without it
            thinking is never sent (N-13).

    Raises:
        CannotEncode: content that has no block.
    """
    ids = CallIds()
    turns: list[_Turn] = []
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        match message:
            case SystemMessage():
                continue
            case UserMessage():
                blocks = writer.blocks(message.content, f"{where}.content")
                _say(turns, "user", blocks)
            case ToolMessage():
                _turn(turns, "user").results.append(_result(message, where, writer, ids))
            case AssistantMessage():
                _say(turns, "assistant", _assistant(message, where, writer, ids, replay=replay))
            case _:
                assert_never(message)
    return [{"role": turn.role, "content": [*turn.results, *turn.blocks]} for turn in turns]


class _Turn:
    def __init__(self, role: str) -> None:
        self.role = role
        self.results: list[dict[str, Any]] = []
        self.blocks: list[dict[str, Any]] = []


def _turn(turns: list[_Turn], role: str) -> _Turn:
    if not turns or turns[-1].role != role:
        turns.append(_Turn(role))
    return turns[-1]


def _say(turns: list[_Turn], role: str, blocks: list[dict[str, Any]]) -> None:
    if blocks:
        _turn(turns, role).blocks.extend(blocks)


def _assistant(
    message: AssistantMessage, where: str, writer: BlockWriter, ids: CallIds, *, replay: bool
) -> list[dict[str, Any]]:
    ids.answered()
    blocks = writer.blocks(message.content, f"{where}.content")
    # The wire has no word for a refusal of an earlier turn; it was said, so it stays text.
    blocks.extend(writer.blocks(message.refusal, f"{where}.refusal"))
    blocks.extend(_call(call, ids) for call in message.tool_calls)
    return [*_thinking(message), *blocks] if replay and blocks else blocks


def _thinking(message: AssistantMessage) -> list[dict[str, Any]]:
    kept = (
        dict(cast("Mapping[str, Any]", block))
        for block in message.opaque.get(DIALECT, ())
        if isinstance(block, Mapping)
    )
    return [block for block in kept if block.get("type") in _THINKING]


def _call(call: ToolCall, ids: CallIds) -> dict[str, Any]:
    own: Any = (call.extra_content or {}).get(DIALECT)
    own = cast("Mapping[str, Any]", own) if isinstance(own, Mapping) else {}
    return {
        "type": "tool_use",
        "id": ids.call(call.id),
        "name": call.name,
        "input": arguments_object(call.arguments),
        **{key: own[key] for key in _CALL_KEYS if key in own},
    }


def _result(message: ToolMessage, where: str, writer: BlockWriter, ids: CallIds) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": ids.result(message.tool_call_id),
    }
    content = message.content
    if not isinstance(content, str):
        content = writer.blocks(content, f"{where}.content")
    if content and not (isinstance(content, str) and not content.strip()):
        block["content"] = content
    if message.is_error:
        block["is_error"] = True
    return {**block, **{key: message.extra[key] for key in RESULT_KEYS if key in message.extra}}
