"""Thinking that a server leaves between tags in the text, where its operator says so (C-10)."""

from collections.abc import Iterable

from woollama.core.canonical import Delta, Finish, ReasoningDelta, TextDelta
from woollama.core.wire.codec import Decoder

__all__ = ["ThinkTagDecoder", "ThinkTags"]

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Turns ``<think>…</think>`` inside text into thinking, wherever deltas are cut.

    White space right behind a tag goes with the tag. A closing tag without an opening one is text,
    since what came before it has been said already; thinking that is never closed is thinking.
    """

    def __init__(self) -> None:
        """Starts outside any tag."""
        self._inside = False
        self._held = ""
        self._after_tag = False

    def feed(self, deltas: Iterable[Delta]) -> tuple[Delta, ...]:
        """The deltas with their thinking apart; what may be the beginning of a tag is held back."""
        out: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, TextDelta):
                self._text(delta.text, out)
                continue
            if isinstance(delta, Finish):
                self._flush(out)
            out.append(delta)
        return tuple(out)

    def _text(self, text: str, out: list[Delta]) -> None:
        text = self._held + text
        while True:
            tag = _CLOSE if self._inside else _OPEN
            before, found, behind = text.partition(tag)
            if not found:
                break
            self._say(before, out)
            self._inside = not self._inside
            self._after_tag = True
            text = behind
        kept = _beginning_at_end(text, tag)
        self._held = text[len(text) - kept :]
        self._say(text[: len(text) - kept], out)

    def _flush(self, out: list[Delta]) -> None:
        held, self._held = self._held, ""
        self._say(held, out)

    def _say(self, text: str, out: list[Delta]) -> None:
        if self._after_tag:
            text = text.lstrip()
        if text:
            self._after_tag = False
            out.append(ReasoningDelta(text) if self._inside else TextDelta(text))


def _beginning_at_end(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` may be the beginning of ``tag``."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0


class ThinkTagDecoder:
    """A ``Decoder`` whose text is looked through for tags."""

    def __init__(self, decoder: Decoder) -> None:
        """Wraps the dialect's own decoder."""
        self._decoder = decoder
        self._tags = ThinkTags()

    @property
    def done(self) -> bool:
        """See ``Decoder.done``."""
        return self._decoder.done

    def feed(self, data: bytes) -> tuple[Delta, ...]:
        """See ``Decoder.feed``."""
        return self._tags.feed(self._decoder.feed(data))

    def finish(self) -> tuple[Delta, ...]:
        """See ``Decoder.finish``."""
        return self._tags.feed(self._decoder.finish())
