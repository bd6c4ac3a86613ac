"""One HTTP/1.1 connection to a server: a request goes out, its reply comes in, then the next.

RFC 9112. llhttp reads the replies; what it leaves to its user is here: bodies that end with their
connection (6.3), interim replies (RFC 9110, 15.2), the longest head, back pressure, and when a
connection may carry another request.
"""

import asyncio
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from woollama.core.transport.alarm import Alarm

__all__ = ["Connection", "NotHttp"]

HEAD_LIMIT_BYTES = 64 * 1024
"""The longest head of a reply."""

UNREAD_LIMIT_BYTES = 256 * 1024
"""How much of a body waits for its reader before no more is taken from the server."""

_ONE_WRITE_BYTES = 64 * 1024
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class NotHttp(Exception):
    """The server sent something that is no HTTP reply; the message says what is wrong with it."""


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time.

    Attributes:
        loop: the event loop it lives on.
        exchanges: how many requests it has been given.
        answered: whether the server has sent anything for the present one.
        begun: whether the head of the reply is here.
        status: the reply's status.
        headers: the reply's headers as they came, name by name.
        lost: done when the connection is gone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Not connected yet: the event loop does that."""
        self.loop: asyncio.AbstractEventLoop = loop
        self._transport = cast("asyncio.Transport", None)
        self._parser: HttpResponseParser | None = _parser_for(self)
        self._waiter: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None
        self._pieces: list[bytes] = []
        self._unread_bytes = 0
        self._head_bytes = 0
        self._alarm = Alarm(loop, self._give_up)
        self._busy = self._whole = self._keep = self._paused = False
        self.exchanges: int = 0
        self.answered: bool = False
        self.begun: bool = False
        self.status: int = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.lost: asyncio.Future[None] = loop.create_future()

    # Its user's side

    def send(self, head: bytes, body: bytes) -> None:
        """Begins an exchange: the request's head, blank line included, and its body."""
        self._busy = True
        self._failure = None
        self._head_bytes = 0
        self._whole = self._keep = self.answered = self.begun = False
        self.exchanges += 1
        self.headers = []
        if len(body) <= _ONE_WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        if self.lost.done():
            self._fail(ConnectionResetError())

    async def arrival(self) -> None:
        """Waits for something new: the reply's head, a piece of its body, its end.

        Raises:
            NotHttp, OSError, TimeoutError: the exchange has failed, and nothing more comes.
        """
        if self._failure is not None:
            raise self._failure
        waiter = self._waiter = self.loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def take(self) -> bytes | None:
        """What has come of the body since the last look: empty at its end, None when not yet.

        Raises:
            NotHttp, OSError, TimeoutError: the exchange has failed.
        """
        pieces = self._pieces
        if pieces:
            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            self._unread_bytes = 0
            if self._paused:
                self._resume()
            return data
        if self._whole:
            return b""
        if self._failure is not None:
            raise self._failure
        return None

    def give_up_at(self, due: float | None) -> None:
        """Whoever still waits then is told of a ``TimeoutError``.

        Args:
            due: in the event loop's time; None: never.
        """
        self._alarm.set(due)

    def finish(self) -> bool:
        """Ends the exchange, and the connection with it unless it may carry another.

        Returns:
            Whether it may: the reply is here to its end, the request was taken to its end, and
            neither side said that this was the last.
        """
        self._busy = False
        self._alarm.set(None)
        self._pieces.clear()
        self._unread_bytes = 0
        if self._is_reusable():
            if self._paused:
                self._resume()
            return True
        # At once, whatever is under way: so the server sees that we have left.
        self._transport.abort()
        return False

    def abort(self) -> None:
        """Ends the connection, whatever is under way."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it ends: nothing can be sent any more."""
        return self._transport.is_closing()

    def _is_reusable(self) -> bool:
        transport = self._transport
        return (
            self._whole
            and self._keep
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
        )

    # The event loop's

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes of the reply; between two exchanges nobody has asked for any."""
        parser = self._parser
        if not self._busy or parser is None:
            self._transport.abort()
            return
        self.answered = True
        try:
            parser.feed_data(data)
        except HttpParserUpgrade:
            self._keep = False
            self._fail(NotHttp("it changes the protocol, which nobody asked for"))
        except HttpParserError as error:
            self._keep = False
            self._fail(NotHttp(_reason(error)))
        if not self.begun:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._fail(NotHttp(_TOO_LONG))
        elif self._waiter is not None:
            self._wake()
        if self._unread_bytes > UNREAD_LIMIT_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; that is the end of a body which nothing else ends."""
        self._parser = None  # it refers to us
        self._alarm.close()
        if self._busy and not self._whole:
            if self.begun and exc is None and not self._is_framed():
                self._whole = True
                self._wake()
            else:
                self._fail(exc if exc is not None else ConnectionResetError())
        if not self.lost.done():
            self.lost.set_result(None)

    def _is_framed(self) -> bool:
        return any(name.lower() in _FRAMING for name, _ in self.headers)

    # The parser's: exceptions in these come back from `feed_data`

    def on_message_begin(self) -> None:
        """Another reply, of which nobody knows the request, or the one after an interim reply."""
        if self._whole:
            raise NotHttp("it sends more than one reply")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer behind a chunked body, of which no use is made."""
        if self.begun:
            return
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > HEAD_LIMIT_BYTES:
            raise NotHttp(_TOO_LONG)
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is here."""
        self.status = cast("HttpResponseParser", self._parser).get_status_code()
        self.begun = self.status >= 200

    def on_body(self, body: bytes) -> None:
        """A piece of the body, free of its chunks' framing."""
        self._pieces.append(body)
        self._unread_bytes += len(body)

    def on_message_complete(self) -> None:
        """The end of the reply, or of an interim one, which is passed over."""
        if self.begun:
            self._whole = True
            self._keep = cast("HttpResponseParser", self._parser).should_keep_alive()
        else:
            self.headers = []

    def _give_up(self) -> None:
        self._fail(TimeoutError())

    def _resume(self) -> None:
        self._paused = False
        self._transport.resume_reading()

    def _fail(self, failure: BaseException) -> None:
        if self._failure is None and not self._whole:
            self._failure = failure
            waiter = self._waiter
            if waiter is not None and not waiter.done():
                waiter.set_exception(failure)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


_TOO_LONG = f"its head is longer than {HEAD_LIMIT_BYTES} bytes"


def _parser_for(connection: Connection) -> HttpResponseParser:
    parser = HttpResponseParser(connection)
    # As forgiving as other clients are, where it cannot mean two things: line ends without CR,
    # spaces behind the size of a chunk.
    parser.set_dangerous_leniencies(
        lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser


def _reason(error: HttpParserError) -> str:
    # What a callback raised is behind the parser's own.
    inner = error.__context__
    return str(inner if isinstance(inner, NotHttp) else error)
