"""The stream of ``/chat`` to deltas (fabric v1.4.470, and back to v1.4.261).

Frames are ``data:`` lines of JSON with a ``type``: ``content``, ``usage``, ``error``, ``complete``;
others are skipped. ``complete`` comes behind errors too, so it alone is no success, and a stream
without it was cut. The content type is wrong in most versions and not looked at.
"""

from collections.abc import Callable

import msgspec

from woollama.core.canonical import Delta, Finish, Start, TextDelta, Usage, UsageDelta
from woollama.core.errors import ReplyError, TruncatedReply, WoollamaError
from woollama.core.wire.sse import EventSplitter
from woollama.server.fabric.faults import event_fault

__all__ = ["ChatDecoder"]


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class _Event(msgspec.Struct):
    type: str = ""
    content: str = ""
    usage: _Usage | None = None


_events = msgspec.json.Decoder(_Event)


class ChatDecoder:
    """Reads the answer to one prompt from bytes that are cut anywhere.

    Attributes:
        done: whether the answer has come to its end; what follows does not count.
    """

    def __init__(
        self, pattern: str, *, new_id: Callable[[], str], now: Callable[[], float]
    ) -> None:
        """Nothing has been read.

        Args:
            pattern: the one that runs, for errors.
            new_id: gives the reply its id; fabric has none.
            now: the Unix time.
        """
        self._pattern = pattern
        self._new_id = new_id
        self._now = now
        self._splitter = EventSplitter()
        self._begun = False
        self._usage: Usage | None = None
        self._fault: WoollamaError | None = None
        self.done = False

    def feed(self, data: bytes) -> tuple[Delta, ...]:
        """The deltas that ``data`` completes; a fault behind them is raised by the next call.

        Raises:
            RequestError: fabric misses a variable.
            ProviderError: fabric says that something went wrong.
            ReplyError: these are no events of fabric's.
        """
        if self._fault is not None:
            raise self._fault
        return self._read(self._splitter.feed(data))

    def finish(self) -> tuple[Delta, ...]:
        """The last deltas, once the input has ended.

        Raises:
            TruncatedReply: it ended before its ``complete``.
            ReplyError: it is complete and empty, or no stream of fabric's.
            RequestError: as ``feed``.
            ProviderError: as ``feed``.
        """
        if self._fault is not None:
            raise self._fault
        last = self._read(self._splitter.finish())
        if self._fault is not None:
            raise self._fault
        if self._splitter.foreign and not self._begun:
            raise ReplyError("What answers in the place of fabric sent no events.")
        if not self.done:
            raise TruncatedReply("fabric's answer ended before it was complete.")
        if not self._begun:
            # Up to v1.4.448 fabric keeps its errors to itself and ends like this.
            raise ReplyError(
                "fabric ended without an answer.",
                hint="Its log may say why; old versions of fabric do not tell their errors.",
            )
        usage = (UsageDelta(self._usage),) if self._usage is not None else ()
        return (*last, *usage, Finish("stop"))

    def _read(self, frames: list[bytes]) -> tuple[Delta, ...]:
        deltas: list[Delta] = []
        for frame in frames:
            if self.done:
                break
            try:
                deltas.extend(self._take(frame))
            except WoollamaError as fault:
                self.done = True
                if not deltas:
                    raise
                self._fault = fault
        return tuple(deltas)

    def _take(self, frame: bytes) -> tuple[Delta, ...]:
        try:
            event = _events.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            text = frame[:200].decode(errors="replace")
            raise ReplyError("fabric sent an event that is not its own.", payload=text) from error
        match event.type:
            case "content" if event.content:
                text = TextDelta(event.content)
                if self._begun:
                    return (text,)
                self._begun = True
                return (Start(self._new_id(), None, int(self._now())), text)
            case "usage" if event.usage is not None:
                used = event.usage
                self._usage = Usage(
                    prompt_tokens=used.input_tokens,
                    completion_tokens=used.output_tokens,
                    total_tokens=used.total_tokens,
                )
            case "error":
                raise event_fault(self._pattern, event.content or "an error without words")
            case "complete":
                self.done = True
            case _:
                pass
        return ()
