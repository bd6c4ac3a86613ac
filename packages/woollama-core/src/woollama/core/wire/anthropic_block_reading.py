"""The content blocks of an Anthropic Messages reply, put together from their events."""

from collections.abc import Callable, Mapping
from typing import Any

from woollama.core.canonical import (
    Delta,
    OpaqueDelta,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from woollama.core.errors import ReplyError
from woollama.core.wire.anthropic_blocks import DIALECT
from woollama.core.wire.arguments import arguments_text
from woollama.core.wire.framing import LIMIT_BYTES
from woollama.core.wire.shapes import text_in

__all__ = ["BlockReading"]

_LIMIT_OPEN = 1000


class _Block:
    """A block between its start and its stop. ``call`` counts tool calls, None for other kinds."""

    def __init__(self, kind: object, call: int | None = None) -> None:
        self.kind = kind
        self.call = call
        self.spoken = False
        self.kept: list[str] = []
        self.signature = ""


class BlockReading:
    """Gives the deltas of text, thinking and tool calls; blocks of other kinds are skipped (C-9).

    Server tools look like calls, but are run on the other side (AE-8). Thinking with its signature
    is given once more as an opaque delta when its block ends: ``replay_reasoning`` decides later
    whether it is sent back (RU-12).
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        """Reads the blocks of one reply; ``new_id`` names calls without an id (C-7)."""
        self._new_id = new_id
        self._open: dict[int, _Block] = {}
        self._calls = 0
        self._reasoned = False
        self._size = 0

    @property
    def called(self) -> bool:
        """Whether the reply calls a tool."""
        return self._calls > 0

    def start(self, index: int, raw: Mapping[str, Any], out: list[Delta]) -> None:
        """A block begins; in a whole reply it has everything already."""
        self.stop(index, out)
        match raw.get("type"):
            case "text":
                _text(raw, out)
            case "thinking":
                block = self._opened(index, _Block("thinking"))
                self._think(block, text_in(raw, "thinking"), out)
                self._sign(block, text_in(raw, "signature"))
            case "redacted_thinking":
                block = self._opened(index, _Block("redacted_thinking"))
                self._keep(block, text_in(raw, "data"))
            case "tool_use":
                block = self._opened(index, _Block("tool_use", self._calls))
                self._calls += 1
                identity = text_in(raw, "id") or f"toolu_{self._new_id()}"
                out.append(ToolCallDelta(self._calls - 1, identity, text_in(raw, "name")))
                self._keep(block, arguments_text(raw.get("input")) or "{}")
            case _:
                pass

    def delta(self, index: int, raw: Mapping[str, Any], out: list[Delta]) -> None:
        """A piece of a block; text and thinking are taken even when their block never began."""
        block = self._open.get(index)
        match raw.get("type"):
            case "text_delta":
                _text(raw, out)
            case "thinking_delta" if block is None or block.kind == "thinking":
                block = block or self._opened(index, _Block("thinking"))
                self._think(block, text_in(raw, "thinking"), out)
            case "signature_delta" if block is not None:
                self._sign(block, text_in(raw, "signature"))
            case "input_json_delta" if block is not None and block.call is not None:
                piece = text_in(raw, "partial_json")
                if piece:
                    block.spoken = True
                    out.append(ToolCallDelta(block.call, arguments=piece))
            case _:
                pass

    def stop(self, index: int, out: list[Delta]) -> None:
        """The block has ended. A call that was given no pieces has what it began with (AE-5)."""
        block = self._open.pop(index, None)
        if block is None:
            return
        kept = "".join(block.kept)
        self._size -= len(kept) + len(block.signature)
        if block.call is not None:
            if not block.spoken:
                out.append(ToolCallDelta(block.call, arguments=kept))
        elif block.kind == "redacted_thinking":
            out.append(OpaqueDelta(DIALECT, "item", {"type": "redacted_thinking", "data": kept}))
        elif block.signature:
            signed = {"type": "thinking", "thinking": kept, "signature": block.signature}
            out.append(OpaqueDelta(DIALECT, "item", signed))

    def flush(self, out: list[Delta]) -> None:
        """The reply has ended: so have its blocks, whether the server said so or not."""
        for index in sorted(self._open):
            self.stop(index, out)

    def _opened(self, index: int, block: _Block) -> _Block:
        if len(self._open) >= _LIMIT_OPEN:
            raise ReplyError(f"The reply has more than {_LIMIT_OPEN} open blocks.")
        self._open[index] = block
        return block

    def _keep(self, block: _Block, piece: str) -> None:
        self._grow(len(piece))
        block.kept.append(piece)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > LIMIT_BYTES:
            raise ReplyError(f"The reply is longer than {LIMIT_BYTES} bytes.")

    def _think(self, block: _Block, piece: str, out: list[Delta]) -> None:
        if not piece:
            return
        # Blocks of thinking are joined with a blank line; an omitted one has no text (AE-4).
        apart = "\n\n" if self._reasoned and not block.spoken else ""
        block.spoken = self._reasoned = True
        self._keep(block, piece)
        out.append(ReasoningDelta(apart + piece))

    def _sign(self, block: _Block, signature: str) -> None:
        if signature:
            self._grow(len(signature) - len(block.signature))
            block.signature = signature


def _text(raw: Mapping[str, Any], out: list[Delta]) -> None:
    text = text_in(raw, "text")
    if text:
        out.append(TextDelta(text))
