"""Function calls of a Responses reply: opened early, filled piecemeal, read once."""

from collections.abc import Callable, Mapping
from typing import Any

from woollama.core.canonical import Delta, ToolCallDelta
from woollama.core.wire.arguments import arguments_text
from woollama.core.wire.responses_texts import Budget, Received
from woollama.core.wire.shapes import text_in

__all__ = ["ItemCalls"]


class _Call:
    def __init__(self) -> None:
        self.position: int | None = None
        self.id = ""
        self.name = ""
        self.arguments = Received()


class ItemCalls:
    """The calls of one reply, numbered in the order in which they appear."""

    def __init__(self, new_id: Callable[[], str], budget: Budget) -> None:
        """No call yet; ``new_id`` names those without an id (C-7)."""
        self._new_id = new_id
        self._budget = budget
        self._calls: dict[int, _Call] = {}
        self._opened = 0

    @property
    def any(self) -> bool:
        """Whether the reply calls a function."""
        return self._opened > 0

    def open(self, item: int, raw: Mapping[str, Any], out: list[Delta]) -> None:
        """Take in an item that has begun; its arguments are still to come."""
        call = self._named(item, raw)
        if call.id and call.name:
            self._say(call, out)

    def add(self, item: int, text: str, out: list[Delta]) -> None:
        """Take in a delta of the arguments."""
        if not text:
            return
        self._budget.spend(len(text))
        call = self._calls.setdefault(item, _Call())
        call.arguments.add(text)
        if call.position is not None:
            out.append(ToolCallDelta(call.position, arguments=text))

    def settle(self, item: int, whole: str, out: list[Delta]) -> None:
        """Take in the arguments from a later source."""
        call = self._calls.setdefault(item, _Call())
        self.add(item, call.arguments.rest_of(whole), out)

    def finish(self, item: int, raw: Mapping[str, Any], out: list[Delta]) -> None:
        """Take in a finished item; the canonical id is ``call_id``, not ``id`` (RE-5)."""
        call = self._named(item, raw)
        if call.position is None:
            call.id = call.id or f"call_{self._new_id()}"
            self._say(call, out)
        self.settle(item, arguments_text(raw.get("arguments")), out)

    def _named(self, item: int, raw: Mapping[str, Any]) -> _Call:
        call = self._calls.setdefault(item, _Call())
        call.id = call.id or text_in(raw, "call_id")
        call.name = call.name or text_in(raw, "name")
        return call

    def _say(self, call: _Call, out: list[Delta]) -> None:
        if call.position is None:
            call.position = self._opened
            self._opened += 1
            out.append(ToolCallDelta(call.position, call.id, call.name, call.arguments.text))
