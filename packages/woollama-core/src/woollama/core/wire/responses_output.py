"""The output items of a Responses reply, from whichever of their four sources comes first."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from woollama.core.canonical import Delta, OpaqueDelta, ReasoningDelta, RefusalDelta, TextDelta
from woollama.core.wire.arguments import arguments_text
from woollama.core.wire.responses_calls import ItemCalls
from woollama.core.wire.responses_items import NAME
from woollama.core.wire.responses_places import Places
from woollama.core.wire.responses_texts import Budget, TextChannel, reasoning_texts
from woollama.core.wire.shapes import count_in, list_in, object_of, text_in

__all__ = ["OutputReading"]

_PIECES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "output_text": ("message", "content_index", "text"),
        "refusal": ("message", "content_index", "refusal"),
        "reasoning_summary_text": ("reasoning", "summary_index", "text"),
        "reasoning_text": ("reasoning", "content_index", "text"),
        "function_call_arguments": ("function_call", "output_index", "arguments"),
    }
)
"""What events bring: the item it is a piece of, its part's index, the field of the whole."""


class OutputReading:
    """Emits each text and each call once (RE-1); items of other types are skipped (RE-11)."""

    def __init__(self, *, new_id: Callable[[], str], budget: Budget) -> None:
        """Reads the items of one reply."""
        self._text = TextChannel(TextDelta, budget)
        self._refusal = TextChannel(RefusalDelta, budget)
        self._reasoning = TextChannel(ReasoningDelta, budget, separator="\n\n")
        self._calls = ItemCalls(new_id, budget)
        self._places = Places(budget)
        self._sources: dict[int, str] = {}
        self._opaque: set[int] = set()
        self._finished: dict[int, Mapping[str, Any]] = {}

    @property
    def calls(self) -> bool:
        """Whether a function is called."""
        return self._calls.any

    def begin(self, event: Mapping[str, Any], item: Mapping[str, Any], out: list[Delta]) -> None:
        """An item has begun."""
        place = self._places.begun(event, item)
        match item.get("type"):
            case "message":
                self._text.open(place)
                self._refusal.open(place)
            case "reasoning":
                self._reasoning.open(place)
            case "function_call":
                self._calls.open(place, item, out)
            case _:
                return

    def piece(self, name: str, step: str, event: Mapping[str, Any], out: list[Delta]) -> bool:
        """A piece of an item, or the whole of a part; False when it is neither.

        Args:
            name: what it is a piece of, ``output_text`` or another.
            step: ``delta`` or ``done``.
            event: its fields.
            out: takes the deltas.
        """
        if name not in _PIECES or step not in {"delta", "done"}:
            return False
        kind, index, field = _PIECES[name]
        place = self._places.spoken_of(event, kind)
        part = count_in(event, index) or 0
        key = "delta" if step == "delta" else field
        if kind == "function_call":
            take = self._calls.add if step == "delta" else self._calls.settle
            take(place, arguments_text(event.get(key)), out)
            return True
        text = text_in(event, key)
        channel = self._refusal if name == "refusal" else self._text
        if kind == "reasoning":
            channel = self._reasoning
            source = index.removesuffix("_index")
            if text and self._sources.setdefault(place, source) != source:
                return True
        (channel.add if step == "delta" else channel.settle)(place, part, text, out)
        return True

    def finish(self, event: Mapping[str, Any], item: Mapping[str, Any], out: list[Delta]) -> None:
        """An item is finished."""
        early = self._places.comes_early(event) and item.get("type") != "function_call"
        place = self._places.finished(event, item)
        self._finished[place] = item
        if not early:
            self._read(place, item, out)

    def end(self, output: list[Any], out: list[Delta]) -> None:
        """The reply has ended with this output.

        Its items are the reply (R-15); where it has none, the finished ones are, by their
        ``output_index`` (R-16).
        """
        items = [object_of(item) for item in output]
        found = [(self._places.of_output(i, item), item) for i, item in enumerate(items)]
        for place, item in sorted(found or self._finished.items(), key=itemgetter(0)):
            self._read(place, item, out)
        for channel in (self._reasoning, self._text, self._refusal):
            channel.close_all(out)

    def _read(self, place: int, item: Mapping[str, Any], out: list[Delta]) -> None:
        match item.get("type"):
            case "message":
                self._read_message(place, item, out)
            case "reasoning":
                self._read_reasoning(place, item, out)
            case "function_call":
                self._calls.finish(place, item, out)
            case _:
                return

    def _read_message(self, place: int, item: Mapping[str, Any], out: list[Delta]) -> None:
        for i, value in enumerate(list_in(item, "content")):
            part = object_of(value)
            match part.get("type"):
                case "output_text":
                    self._text.settle(place, i, text_in(part, "text"), out)
                case "refusal":
                    self._refusal.settle(place, i, text_in(part, "refusal"), out)
                case _:
                    continue
        self._text.close(place, out)
        self._refusal.close(place, out)

    def _read_reasoning(self, place: int, item: Mapping[str, Any], out: list[Delta]) -> None:
        source, texts = reasoning_texts(item, self._sources.get(place))
        self._sources[place] = source
        for i, text in enumerate(texts):
            self._reasoning.settle(place, i, text, out)
        self._reasoning.close(place, out)
        if item.get("encrypted_content") and place not in self._opaque:
            self._opaque.add(place)
            out.append(OpaqueDelta(NAME, "item", item))
