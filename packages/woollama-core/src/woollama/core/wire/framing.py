"""Object or stream? By the first byte that is not white space (wire rule C-14).

``ReplyDecoder`` is the one way from bytes to deltas for every dialect; a dialect brings a
``Reading`` that knows its payloads, and a ``Splitter`` that knows how its streams are cut.
"""

from typing import Any, Protocol

import msgspec

from woollama.core.canonical import Delta, ToolCallDelta
from woollama.core.errors import InferenceError, ReplyError, TruncatedReply

__all__ = [
    "LIMIT_ARGUMENTS",
    "LIMIT_BYTES",
    "LIMIT_STREAM_BYTES",
    "Reading",
    "ReplyDecoder",
    "Splitter",
    "parse",
    "too_many_arguments",
]

LIMIT_BYTES = 64 * 1024 * 1024
"""The largest reply that comes as one object."""

LIMIT_STREAM_BYTES = 512 * 1024 * 1024
"""The longest stream: one token may cost a kilobyte of it."""

LIMIT_ARGUMENTS = 16 * 1024 * 1024
"""The most characters of arguments that a stream may write for all its calls."""

_SHOWN = 500  # bytes of a reply that was not understood
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_CUT = "Input data was truncated"
"""What msgspec says of good JSON that ends too early."""
_decoder = msgspec.json.Decoder()


def parse(data: bytes) -> Any:
    """JSON to plain values.

    Raises:
        TruncatedReply: it is the beginning of JSON.
        ReplyError: it is not JSON, or nested beyond reason.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        # Good JSON that stops too early is a reply that was cut off (C-15).
        fault = TruncatedReply if str(error) == _CUT else ReplyError
        raise fault(
            f"The provider answered something that is not JSON ({error}).",
            payload=data[:_SHOWN].decode(errors="replace"),
        ) from error


def too_many_arguments() -> ReplyError:
    """The refusal of arguments without end, for the caller to raise."""
    return ReplyError(f"The arguments of the calls are longer than {LIMIT_ARGUMENTS} characters.")


class Splitter(Protocol):
    """Cuts a stream into payloads."""

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that ``data`` completes."""
        ...

    def finish(self) -> list[bytes]:
        """What the input ended in."""
        ...


class Reading(Protocol):
    """What one dialect's payloads mean. Deltas are appended to ``out``, also before a raise."""

    def whole(self, payload: Any, out: list[Delta]) -> None:
        """A reply that came as one object, ``Finish`` included."""
        ...

    def event(self, data: bytes, out: list[Delta]) -> bool:
        """One payload of a stream; True when nothing that follows can matter."""
        ...

    def end(self, out: list[Delta]) -> None:
        """The input has ended, or ``event`` answered True.

        Raises:
            TruncatedReply: without the terminal mark.
        """
        ...


class ReplyDecoder:
    """A ``Decoder`` made of a splitter and a reading."""

    def __init__(self, reading: Reading, splitter: Splitter, *, objects: bool = True) -> None:
        """Starts before the first byte.

        Args:
            reading: the dialect's.
            splitter: the dialect's.
            objects: False where a stream's own payloads begin with ``{`` (JSON lines).
        """
        self._reading = reading
        self._splitter = splitter
        self._objects = objects
        self._object: bytearray | None = None
        self._head: bytes = b""
        self._undecided = True
        self._seen = False
        self._fault: InferenceError | None = None
        self._ended = False
        self._read = 0
        self._arguments = 0

    @property
    def done(self) -> bool:
        """Whether the terminal mark or a fault has been read."""
        return self._ended or self._fault is not None

    def feed(self, data: bytes) -> tuple[Delta, ...]:
        """See ``Decoder.feed``."""
        if self._fault is not None:
            raise self._fault
        if self._ended:
            return ()
        if self._undecided:
            data = self._decide(data)
        if not data:
            return ()
        if self._object is not None:
            self._object += data
            self._limit(len(self._object), LIMIT_BYTES)
            return ()
        self._read += len(data)
        self._limit(self._read, LIMIT_STREAM_BYTES)
        if not self._seen and len(self._head) < _SHOWN:
            self._head += data[: _SHOWN - len(self._head)]
        out: list[Delta] = []
        try:
            self._events(self._splitter.feed(data), out)
            self._count(out)
        except InferenceError as error:
            return self._failed(error, out)
        return tuple(out)

    def finish(self) -> tuple[Delta, ...]:
        """See ``Decoder.finish``."""
        if self._fault is not None:
            raise self._fault
        out: list[Delta] = []
        if self._object is not None:
            self._reading.whole(parse(bytes(self._object)), out)
            return tuple(out)
        if not self._ended:
            self._events(self._splitter.finish(), out)
        if not self._seen:
            raise self._nothing()
        self._reading.end(out)
        return tuple(out)

    def _decide(self, data: bytes) -> bytes:
        head = (self._head + data).removeprefix(_BOM)
        text = head.lstrip(_SPACE)
        if not text or _BOM.startswith(head):
            # White space before the first byte is a server's sign of life (OC-20).
            self._head = head if head.strip(_SPACE) else b""
            return b""
        self._undecided = False
        self._head = b""
        if self._objects and text[:1] in {b"{", b"["}:
            self._object = bytearray()
        return text

    def _limit(self, size: int, limit: int) -> None:
        if size > limit:
            self._fault = ReplyError(f"The reply is longer than {limit} bytes.")
            raise self._fault

    def _count(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            if isinstance(delta, ToolCallDelta):
                self._arguments += len(delta.arguments)
        if self._arguments > LIMIT_ARGUMENTS:
            raise too_many_arguments()

    def _events(self, payloads: list[bytes], out: list[Delta]) -> None:
        for payload in payloads:
            self._seen = True
            if self._reading.event(payload, out):
                self._ended = True
                return

    def _failed(self, error: InferenceError, out: list[Delta]) -> tuple[Delta, ...]:
        self._fault = error
        if not out:
            raise error
        return tuple(out)

    def _nothing(self) -> ReplyError:
        text = self._head.decode(errors="replace").strip()
        if not text or getattr(self._splitter, "foreign", None) is False:
            return TruncatedReply("The provider's reply is empty.")
        return ReplyError(
            "The provider answered text that is neither JSON nor a stream of events.",
            payload=text,
        )
