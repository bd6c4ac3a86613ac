"""The client at the other end: its body, and the reply or the events we send it.

Plain ASGI, without a request or response object: this is the hot path.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

from starlette.types import Receive, Send

from woollama.core.errors import RequestError, WoollamaError
from woollama.server.surface.chat import error_event

__all__ = ["EventStream", "read_request", "send_bytes"]

KEEP_ALIVE_S = 15.0
"""How long a stream is silent before a comment shows that it lives."""

_COMMENT = b": keep-alive\n\n"
_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


async def read_request(receive: Receive, *, limit_bytes: int) -> bytes:
    """The whole request body.

    Raises:
        RequestError: 413, it is longer than ``limit_bytes``.
        ConnectionError: the client left before it was complete.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and message["type"] == "http.request":
        if len(body) > limit_bytes:
            raise _too_large(limit_bytes)
        return body
    pieces = [body]
    size = len(body)
    while message.get("more_body", False):
        message = await receive()
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        pieces.append(piece)
    if message["type"] == "http.disconnect":
        raise ConnectionError("the client left before its request was complete")
    return b"".join(pieces)


def _too_large(limit_bytes: int) -> RequestError:
    return RequestError(
        f"The request body is longer than {limit_bytes} bytes.",
        status=413,
        code="request_too_large",
        hint="Raise body_limit_bytes under [server] in woollama.toml if it has to be.",
    )


def header_pairs(headers: Mapping[str, str]) -> Iterable[tuple[bytes, bytes]]:
    """Headers as ASGI writes them."""
    return ((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())


async def send_bytes(
    send: Send, body: bytes, *, headers: Mapping[str, str], status: int = 200
) -> None:
    """A whole JSON body."""
    pairs = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *header_pairs(headers),
    ]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


class EventStream(AbstractContextManager["EventStream"]):
    """A stream of events to the client; it begins with the first write.

    While it is entered, and nothing else is written, comments keep it alive. The provider has said
    yes: a client that waits longer than ``KEEP_ALIVE_S`` for the first event is told so by the
    beginning of the stream.

    Attributes:
        begun: whether the status has left: from then on a failure is an event.
    """

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        """Nothing has been sent; ``headers`` are read when it begins."""
        self._send = send
        self._headers = headers
        self._writing = False
        self._wrote = 0.0
        self._ticker: asyncio.TimerHandle | None = None
        self._comment: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.begun = False

    def __enter__(self) -> Self:
        """Nothing is sent yet."""
        self._wrote = self._loop.time()
        self._ticker = self._loop.call_later(KEEP_ALIVE_S, self._tick)
        return self

    def __exit__(self, *_error: object) -> None:
        """No comment is sent any more."""
        if self._ticker is not None:
            self._ticker.cancel()
        if self._comment is not None:
            self._comment.cancel()

    def write(self, data: bytes) -> Coroutine[Any, Any, None]:
        """Whole events."""
        return self._put(data) if self._comment is None else self._put_next(data)

    async def end(self, data: bytes = b"") -> None:
        """The last events and the end of the body."""
        if self._comment is not None:
            await self._comment_sent()
        self._writing = True
        if not self.begun:
            await self._begin()
        await self._send({"type": "http.response.body", "body": data})

    async def fail(self, error: WoollamaError) -> None:
        """The error as the last event; no ``[DONE]`` follows."""
        await self.end(error_event(error))

    async def _put_next(self, data: bytes) -> None:
        await self._comment_sent()
        await self._put(data)

    async def _put(self, data: bytes) -> None:
        self._writing = True
        if not self.begun:
            await self._begin()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._wrote = self._loop.time()
        self._writing = False

    async def _begin(self) -> None:
        self.begun = True
        pairs = [*_STREAM_HEADERS, *header_pairs(self._headers)]
        await self._send({"type": "http.response.start", "status": 200, "headers": pairs})

    def _tick(self) -> None:
        wait_s = KEEP_ALIVE_S
        if not self._writing:
            wait_s -= self._loop.time() - self._wrote
            if wait_s <= 0:
                self._comment = self._loop.create_task(self._put(_COMMENT))
                wait_s = KEEP_ALIVE_S
        self._ticker = self._loop.call_later(wait_s, self._tick)

    async def _comment_sent(self) -> None:
        # A server's `send` is not called by two at once.
        comment, self._comment = self._comment, None
        if comment is not None:
            await comment
