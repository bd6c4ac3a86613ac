"""Watching a chat stream that passes as bytes: whole frames, its end, its errors (RU-15).

Nothing is decoded unless a frame may hold an error. What is cut inside a frame waits for the rest
of it, so that a comment of ours never falls into a frame and a failing frame never leaves.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from woollama.core.errors import InferenceError, ReplyError, TruncatedReply
from woollama.core.wire.faults import payload_error
from woollama.core.wire.framing import parse
from woollama.core.wire.sse import LIMIT_BYTES, EventSplitter

__all__ = ["ChatPassage", "CompletionHead", "check_completion"]

# A blank line, by its last bytes: the line before it may end in any of the three ways.
_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")
_LONGEST_END = 3
_LINE_ENDS = frozenset(b"\r\n")
_EVENT = re.compile(rb"(?:\xef\xbb\xbf)?(?:data|event|id|retry)?:")
_DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]")
_FINISHED = re.compile(rb'"finish_reason":\s*"')
_REASON = b'"finish_reason"'
_NO_REASON = (b'"finish_reason":null', b'"finish_reason": null')


class ChatPassage:
    """Lets the frames of one Chat Completions stream pass.

    Attributes:
        ended: whether ``[DONE]`` has passed: what follows does not count.
        fault: the error to end with, behind what has passed.
    """

    def __init__(self) -> None:
        """Nothing has passed."""
        self.ended: bool = False
        self.fault: InferenceError | None = None
        self._rest = bytearray()
        self._begun = False
        self._finished = False

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that may leave now: whole frames, up to an error or the end.

        Raises:
            ReplyError: one frame is longer than ``LIMIT_BYTES``, or the text is no event stream.
        """
        if self.ended or self.fault is not None:
            return b""
        if not self._rest and chunk.endswith(_ENDS):
            return self._look(chunk)
        rest = self._rest
        searched = max(0, len(rest) - _LONGEST_END)
        rest += chunk
        cut = _last_blank_line(rest, searched)
        if len(rest) - cut > LIMIT_BYTES:
            raise ReplyError(f"One event of the reply is longer than {LIMIT_BYTES} bytes.")
        frames = bytes(rest[:cut])
        del rest[:cut]
        return self._look(frames) if frames else b""

    def finish(self) -> bytes:
        """The bytes of a last frame without its blank line, blank line included.

        Raises:
            TruncatedReply: the frame is cut, or neither ``[DONE]`` nor a finish reason passed
                (OC-26).
            ReplyError: the text is no event stream.
        """
        rest = bytes(self._rest)
        self._rest.clear()
        last = b""
        if rest.strip() and not self.ended and self.fault is None:
            last = self._look(rest)
            for data in _events_in(last):
                if not data.startswith(b"[DONE]"):
                    parse(data)
        if not (self.ended or self._finished or self.fault is not None):
            raise TruncatedReply("stream ended before a finish reason")
        return last + b"\n\n" if last else b""

    def _look(self, frames: bytes) -> bytes:
        if not self._begun:
            # White space before the first event is a server's sign of life and no event (OC-20):
            # what leaves first decides how a failure is told.
            frames = frames.lstrip()
            if not frames:
                return b""
            self._begin(frames)
        if b'"error"' in frames or b"[DONE]" in frames:
            frames = self._until_end(frames)
        if not self._finished:
            self._finished = _has_reason(frames)
        return frames

    def _begin(self, frames: bytes) -> None:
        if not _EVENT.match(frames):
            raise ReplyError(
                "The provider answered text that is neither JSON nor a stream of events.",
                payload=frames[:500].strip().decode(errors="replace"),
            )
        self._begun = True

    def _until_end(self, frames: bytes) -> bytes:
        # Only the frames that hold a mark are looked at: a read can hold a whole stream.
        at = 0
        while (mark := _next_mark(frames, at)) >= 0:
            begin, at = _frame_round(frames, mark, at)
            frame = frames[begin:at]
            if b'"error"' in frame:
                self.fault = _error_in(frame)
                if self.fault is not None:
                    return frames[: begin + len(frame) - len(frame.lstrip(b"\r\n"))]
            if _DONE.search(frame):
                self.ended = True
                return frames[:at]
        return frames


def _next_mark(frames: bytes, at: int) -> int:
    """Where an error or the end may be, from ``at`` on; -1 when nowhere."""
    error, done = frames.find(b'"error"', at), frames.find(b"[DONE]", at)
    return min(error, done) if error >= 0 and done >= 0 else max(error, done)


def _frame_round(frames: bytes, mark: int, since: int) -> tuple[int, int]:
    """Begin and end of the frame that ``mark`` is in; it does not begin before ``since``."""
    begin, end = since, len(frames)
    for blank in _ENDS:
        # Each search ends where the one before has found something.
        before = frames.rfind(blank, max(0, begin - _LONGEST_END), mark)
        begin = max(begin, before + len(blank)) if before >= 0 else begin
        behind = frames.find(blank, mark, end)
        end = behind + len(blank) if behind >= 0 else end
    return begin, end


def _has_reason(frames: bytes) -> bool:
    # Servers write the key into each chunk, with null until the last: a regular expression at each
    # would cost more than all else here.
    at = frames.find(_REASON)
    while at >= 0 and frames.startswith(_NO_REASON, at):
        at = frames.find(_REASON, at + len(_REASON))
    return at >= 0 and _FINISHED.search(frames, at) is not None


def _last_blank_line(data: bytearray, searched: int) -> int:
    cut = 0
    for end in _ENDS:
        # Each search ends where the one before has found something.
        at = data.rfind(end, max(searched, cut - _LONGEST_END))
        if at >= 0:
            cut = max(cut, at + len(end))
    while cut < len(data) and data[cut] in _LINE_ENDS:
        cut += 1  # between two frames a line end belongs to neither
    return cut


def _events_in(frame: bytes) -> Iterable[bytes]:
    splitter = EventSplitter()
    return (*splitter.feed(frame), *splitter.finish())


def _error_in(frame: bytes) -> InferenceError | None:
    for data in _events_in(frame):
        try:
            payload: Any = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        if isinstance(payload, list) and payload:
            payload = cast("list[Any]", payload)[0]
        if not isinstance(payload, dict):
            continue
        body = cast("dict[str, Any]", payload)
        # As ``ChatReading`` tells an error (OC-28, OC-35, OC-37).
        if body.get("error") or (body.get("object") == "error" and "message" in body):
            return payload_error(body)
    return None


class CompletionHead(msgspec.Struct):
    """What is looked at of a completion that passes as bytes."""

    error: Any = None
    choices: msgspec.Raw = msgspec.Raw(b"null")
    usage: Any = None


_heads = msgspec.json.Decoder(CompletionHead)


def check_completion(body: bytes) -> CompletionHead:
    """Whether a whole reply is one: a JSON object without an error in it (OC-28, OC-37).

    Raises:
        ProviderError: it holds the provider's error.
        TruncatedReply: it stops in the middle.
        ReplyError: it is not a JSON object with ``choices``.
    """
    try:
        head = _heads.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        payload = parse(body)  # raises, unless it is JSON of another shape
        raise ReplyError(
            f"The provider answered something that is not a completion ({error}).", payload=payload
        ) from error
    if head.error:
        raise payload_error(msgspec.json.decode(body))
    if not bytes(head.choices).startswith(b"["):
        raise ReplyError(
            "The provider's reply has no list 'choices'.",
            payload=msgspec.json.decode(body),
            retryable=True,
        )
    return head
