"""Watching a chat stream that passes as bytes: whole frames, its end, its errors (RU-15).

Nothing is decoded unless a frame may hold an error. What is cut inside a frame waits for the rest
of it, so that a comment of ours never falls into a frame and a failing frame never leaves.
"""

import re
from typing import Any, cast

import msgspec

from woollama.core.errors import InferenceError, ReplyError, TruncatedReply
from woollama.core.wire.faults import payload_error
from woollama.core.wire.sse import LIMIT_BYTES, EventSplitter

__all__ = ["ChatPassage", "check_completion"]

_DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\][^\r\n]*[\r\n]*")
_FINISHED = re.compile(rb'"finish_reason":\s*"')


class ChatPassage:
    """Lets the frames of one Chat Completions stream pass.

    Attributes:
        ended: whether ``[DONE]`` has passed: what follows does not count.
        fault: the error to end with, behind what has passed.
    """

    def __init__(self) -> None:
        """Nothing has passed."""
        self.ended = False
        self.fault: InferenceError | None = None
        self._rest = b""
        self._finished = False

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that may leave now: whole frames, up to an error or the end.

        Raises:
            ReplyError: one frame is longer than ``LIMIT_BYTES``.
        """
        if self._rest:
            chunk = self._rest + chunk
            self._rest = b""
        if not chunk.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            cut = _last_boundary(chunk)
            chunk, self._rest = chunk[:cut], chunk[cut:]
            if len(self._rest) > LIMIT_BYTES:
                raise ReplyError(f"One event of the reply is longer than {LIMIT_BYTES} bytes.")
        return self._look(chunk) if chunk else b""

    def finish(self) -> bytes:
        """The bytes of a last frame without its blank line, blank line included.

        Raises:
            TruncatedReply: neither ``[DONE]`` nor a finish reason passed (OC-26).
        """
        rest = self._look(self._rest) if self._rest.strip() else b""
        self._rest = b""
        if self.fault is None and not self.ended and not self._finished:
            raise TruncatedReply("stream ended before a finish reason")
        return rest + b"\n\n" if rest and not self.ended else rest

    def _look(self, frames: bytes) -> bytes:
        if b'"error"' in frames:
            frames = self._until_error(frames)
        if b"[DONE]" in frames:
            mark = _DONE.search(frames)
            if mark is not None:
                self.ended = True
                return frames[: mark.start()] + b"\n\ndata: [DONE]\n\n" if mark.start() else mark[0]
        if not self._finished and b'"finish_reason"' in frames:
            self._finished = _FINISHED.search(frames) is not None
        return frames

    def _until_error(self, frames: bytes) -> bytes:
        at = 0
        for frame in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)|(?<=\r\r)", frames):
            if b'"error"' in frame:
                self.fault = _error_in(frame)
                if self.fault is not None:
                    return frames[:at]
            at += len(frame)
        return frames


def _last_boundary(chunk: bytes) -> int:
    ends = ((b"\n\n", 2), (b"\r\n\r\n", 4), (b"\r\r", 2))
    found = (chunk.rfind(mark) + length for mark, length in ends if mark in chunk)
    return max(found, default=0)


def _error_in(frame: bytes) -> InferenceError | None:
    splitter = EventSplitter()
    for data in (*splitter.feed(frame), *splitter.finish()):
        try:
            payload: Any = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        if isinstance(payload, dict) and cast("dict[str, Any]", payload).get("error"):
            return payload_error(payload)
    return None


class _Head(msgspec.Struct):
    error: msgspec.Raw = msgspec.Raw(b"null")
    choices: msgspec.Raw = msgspec.Raw(b"null")


_heads = msgspec.json.Decoder(_Head)


def check_completion(body: bytes) -> None:
    """Whether a whole reply is one: a JSON object without an error in it (OC-28, OC-37).

    Raises:
        ProviderError: it holds the provider's error.
        ReplyError: it is not a JSON object with ``choices``.
    """
    try:
        head = _heads.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReplyError(
            f"The provider answered something that is not a completion ({error}).",
            payload=body[:500].decode(errors="replace"),
        ) from error
    if bytes(head.error) not in {b"null", b'""', b"{}"}:
        raise payload_error(msgspec.json.decode(body))
    if bytes(head.choices) == b"null":
        raise ReplyError(
            "The provider's reply has no 'choices'.", payload=msgspec.json.decode(body)
        )
