"""Which item of a Responses reply an event speaks of: its ``output_index``, or what stands for it.

Ids of one item may differ between events (RE-16), so the index decides; servers that send none
(llama.cpp) are read by id, and what has neither belongs to the item that was begun last.
"""

from collections.abc import Mapping
from typing import Any

from woollama.core.wire.responses_texts import ENTRY, Budget
from woollama.core.wire.shapes import count_in, text_in

__all__ = ["Places"]


class Places:
    """The items of one reply by place, each of one kind."""

    def __init__(self, budget: Budget) -> None:
        """No item yet; each one known costs something of ``budget``."""
        self._budget = budget
        self._kinds: dict[int, str] = {}
        self._by_id: dict[str, int] = {}
        self._finished: set[int] = set()
        self._complete = 0
        self._last = -1

    def comes_early(self, event: Mapping[str, Any]) -> bool:
        """Whether the event is the first of its item, and no event spoke of some lower place."""
        place = count_in(event, "output_index")
        while self._complete in self._kinds:
            self._complete += 1
        return place is not None and place > self._complete and place not in self._kinds

    def begun(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """The place of an item that begins; note what it is called."""
        place = count_in(event, "output_index")
        return self._note(self._new() if place is None else place, item)

    def finished(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """The place of an item that is finished."""
        place = count_in(event, "output_index")
        if place is None:
            place = self._of_id(item)
        if place is None:
            place = self._last_open(text_in(item, "type"))
        self._finished.add(place)
        return self._note(place, item)

    def spoken_of(self, event: Mapping[str, Any], kind: str) -> int:
        """The place that a piece of text or arguments belongs to."""
        place = count_in(event, "output_index")
        if place is None:
            place = self._by_id.get(text_in(event, "item_id"))
        if place is None:
            place = self._last_open(kind)
        return self._note(place, {"type": kind, "id": event.get("item_id")})

    def of_output(self, position: int, item: Mapping[str, Any]) -> int:
        """The place of an item of the terminal output, so that it is not read a second time."""
        place = self._of_id(item)
        if place is None:
            kind = self._kinds.get(position)
            place = position if kind in {None, text_in(item, "type")} else self._new()
        return self._note(place, item)

    def _of_id(self, item: Mapping[str, Any]) -> int | None:
        kind = text_in(item, "type")
        for key in ("id", "call_id"):
            place = self._by_id.get(text_in(item, key))
            if place is not None and self._kinds[place] == kind:
                return place
        return None

    def _note(self, place: int, item: Mapping[str, Any]) -> int:
        if place not in self._kinds:
            self._budget.spend(ENTRY)
            self._kinds[place] = text_in(item, "type")
            self._last = max(self._last, place)
        for key in ("id", "call_id"):
            name = text_in(item, key)
            if name and name not in self._by_id:
                self._budget.spend(ENTRY + len(name))
                self._by_id[name] = place
        return place

    def _last_open(self, kind: str) -> int:
        place = self._last
        if self._kinds.get(place) == kind and place not in self._finished:
            return place
        return self._new()

    def _new(self) -> int:
        return self._last + 1
