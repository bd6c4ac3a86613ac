"""Texts of a Responses reply, which come up to four times, read once (RE-1).

One text arrives as deltas, in a ``done`` event, in its finished item and in the terminal output. A
later source adds what follows the text so far; one that does not begin with it adds nothing.
"""

import heapq
from collections.abc import Callable, Mapping
from typing import Any

from woollama.core.canonical import Delta
from woollama.core.errors import ReplyError
from woollama.core.wire.shapes import list_in, object_of, text_in

__all__ = ["ENTRY", "LIMIT_CHARACTERS", "Budget", "Received", "TextChannel", "reasoning_texts"]

LIMIT_CHARACTERS = 64 * 1024 * 1024
"""The most that is kept of one reply."""


ENTRY = 256
"""What remembering one more item or part counts for."""


class Budget:
    """What a reply may still make us keep."""

    def __init__(self) -> None:
        """Starts at ``LIMIT_CHARACTERS``."""
        self._left = LIMIT_CHARACTERS

    def spend(self, characters: int) -> None:
        """Count what is going to be kept.

        Raises:
            ReplyError: nothing is left.
        """
        self._left -= characters
        if self._left < 0:
            raise ReplyError(f"The reply is longer than {LIMIT_CHARACTERS} characters.")


class Received:
    """One text as far as it is known."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._pieces: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        """Append a delta."""
        self._pieces.append(text)
        self._size += len(text)

    @property
    def text(self) -> str:
        """All of it."""
        whole = "".join(self._pieces)
        self._pieces = [whole]
        return whole

    def rest_of(self, whole: str) -> str:
        """What ``whole`` says beyond this; empty when it says something else."""
        if len(whole) <= self._size or not whole.startswith(self.text):
            return ""
        return whole[self._size :]


class TextChannel:
    """All texts of one kind in the order of their items, whatever order they arrive in.

    What belongs behind an item that is still open is held back until that one is closed.
    """

    def __init__(
        self, make: Callable[[str], Delta], budget: Budget, *, separator: str = ""
    ) -> None:
        """A channel that has said nothing.

        Args:
            make: turns a text into a delta.
            budget: that of the reply.
            separator: goes between the parts.
        """
        self._make = make
        self._budget = budget
        self._separator = separator
        self._received: dict[tuple[int, int], Received] = {}
        self._open: set[int] = set()
        self._order: list[int] = []
        self._held: dict[int, list[tuple[int, str]]] = {}
        self._last: tuple[int, int] | None = None

    def open(self, item: int) -> None:
        """Texts of this item are to come."""
        if item not in self._open:
            self._open.add(item)
            heapq.heappush(self._order, item)

    def add(self, item: int, part: int, text: str, out: list[Delta]) -> None:
        """Take in a delta."""
        if not text:
            return
        self._budget.spend(len(text))
        received = self._received.get((item, part))
        if received is None:
            self._budget.spend(ENTRY)
            received = self._received[item, part] = Received()
        received.add(text)
        if self._is_behind_an_open_one(item):
            self._held.setdefault(item, []).append((part, text))
        else:
            self._say(item, part, text, out)

    def settle(self, item: int, part: int, whole: str, out: list[Delta]) -> None:
        """Take in a text from a later source."""
        received = self._received.get((item, part))
        self.add(item, part, whole if received is None else received.rest_of(whole), out)

    def close(self, item: int, out: list[Delta]) -> None:
        """The item is finished."""
        self._open.discard(item)
        self._release(out)

    def close_all(self, out: list[Delta]) -> None:
        """The reply is finished."""
        self._open.clear()
        self._release(out)

    def _is_behind_an_open_one(self, item: int) -> bool:
        while self._order and self._order[0] not in self._open:
            heapq.heappop(self._order)
        return bool(self._order) and self._order[0] < item

    def _release(self, out: list[Delta]) -> None:
        for item in sorted(self._held):
            if self._is_behind_an_open_one(item):
                return
            for part, text in self._held.pop(item):
                self._say(item, part, text, out)

    def _say(self, item: int, part: int, text: str, out: list[Delta]) -> None:
        if self._separator and self._last not in {None, (item, part)}:
            text = self._separator + text
        self._last = (item, part)
        out.append(self._make(text))


def reasoning_texts(
    item: Mapping[str, Any], source: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """Where the thinking of a reasoning item is read from, and its parts, empty ones included.

    Args:
        item: a ``reasoning`` item.
        source: ``summary`` or ``content``; None takes the summary when it says something, else
            the raw text (RE-7).
    """
    if source is None:
        source = "summary" if any(_texts(item, "summary")) else "content"
    return source, _texts(item, source)


def _texts(item: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(text_in(object_of(part), "text") for part in list_in(item, key))
