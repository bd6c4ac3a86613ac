"""Hypercorn's HTTP/1.1 and HTTP/2 to ASGI, with our words for bad requests and our own tasks.

A request's messages wait in an ``_Inbox``: Hypercorn's own queue of ten is never emptied when the
application answers without reading, and the connection then hangs.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from time import time
from typing import Any

import h11
import msgspec
from hypercorn.config import Config
from hypercorn.events import RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Body, Request
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.typing import H11SendableEvent
from starlette.types import ASGIApp, Message, Scope

from woollama.core.errors import RequestError
from woollama.server.leaving import LEAVING, Leaving
from woollama.server.tracebacks import describe_exception

__all__ = ["Head", "HypercornConfig", "HypercornProtocol", "HypercornTasks"]

_log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder()

HEAD_LIMIT_BYTES = 64 * 1024
_UNREAD_LIMIT_BYTES = 256 * 1024
"""How much of a body waits for the application before the client has to wait, too."""

_FOREVER = 2**62


class Head(RawData):
    """The head of an answer."""


class HypercornConfig(Config):
    """Hypercorn's limits, and nothing said in its own name or log."""

    errorlog = None
    accesslog = None
    include_server_header = False
    h11_max_incomplete_size = HEAD_LIMIT_BYTES
    keep_alive_max_requests = _FOREVER

    def __init__(self) -> None:
        """Everything else as Hypercorn has it."""
        self._second = 0
        self._date: list[tuple[bytes, bytes]] = []

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """``Date`` only; written once a second."""
        now = int(time())
        if now != self._second:
            self._second = now
            self._date = [(b"date", formatdate(now, usegmt=True).encode())]
        return self._date


class HypercornProtocol(ProtocolWrapper):
    """Hypercorn's choice of protocol, with our words for requests that are no HTTP."""

    def __init__(self, *args: Any) -> None:
        """As ``ProtocolWrapper``, HTTP/1.1 first."""
        super().__init__(*args)
        self.protocol = _H1(*args)

    @property
    def is_h1(self) -> bool:
        """Whether it is still HTTP/1.1, and was not upgraded."""
        return isinstance(self.protocol, _H1)

    @property
    def has_unread(self) -> bool:
        """Whether the client may still be sending a body, or something that was not understood."""
        states = {h11.SEND_BODY, h11.ERROR}
        return isinstance(self.protocol, _H1) and self.protocol.connection.their_state in states


class _H1(H11Protocol):
    _headers: list[tuple[bytes, bytes]]
    _in_chunks = False

    async def _check_protocol(self, event: h11.Request) -> None:
        # Hypercorn decodes every header twice to find the few requests that change the protocol;
        # and to go through h11's headers themselves is slow.
        self._headers = [(name.lower(), value) for name, value in event.headers.raw_items()]
        if event.method == b"PRI" or b"upgrade" in dict(self._headers):
            await super()._check_protocol(event)

    async def _create_stream(self, request: h11.Request) -> None:
        # There are no web sockets here: who asks for one gets the answer to a plain GET.
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        begun = Request(
            stream_id=STREAM_ID,
            headers=self._headers,
            http_version=request.http_version.decode(),
            method=request.method.decode("ascii").upper(),
            raw_path=request.target,
            state=self.connection_state,
        )
        await self.stream.handle(begun)

    async def stream_send(self, event: StreamEvent) -> None:
        # A chunk leaves h11's states as they are, and to go through them for each costs more than
        # all else that is done for it here.
        in_chunks = self._in_chunks and self.connection.our_state is h11.SEND_BODY
        if in_chunks and isinstance(event, Body) and event.data:
            await self.send(RawData(b"%x\r\n%b\r\n" % (len(event.data), event.data)))
        else:
            await super().stream_send(event)

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        try:
            data = self.connection.send(event)
        except h11.LocalProtocolError:
            if self.connection.their_state != h11.ERROR:
                raise
            return
        if isinstance(event, h11.Response):
            # How the body is framed is h11's decision; it shows in the head that it wrote.
            self._in_chunks = b"\r\nTransfer-Encoding: chunked\r\n" in data
            await self.send(Head(data))
        else:
            await self.send(RawData(data))

    async def _send_error_response(self, status_code: int) -> None:
        message = {431: "The head of the request is too long.", 501: "This is not supported."}
        text = message.get(status_code, "This is no HTTP request that can be understood.")
        body = _encoder.encode(RequestError(text, status=status_code).to_openai())
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *self.config.response_headers("h11"),
        ]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


class HypercornTasks:
    """Where Hypercorn's protocols start the application: its ``TaskGroup``."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        """They end with the connection, whose group this is."""
        self._group = group

    async def spawn_app(
        self,
        app: ASGIApp,
        config: Config,
        scope: Scope,
        send: Callable[[Message | None], Awaitable[None]],
    ) -> Callable[[Message], Awaitable[None]]:
        """Starts the application for one request; what is returned brings it messages."""
        inbox = _Inbox()
        scope["extensions"][LEAVING] = inbox.leaving
        self._group.create_task(_answer(app, scope, inbox, send))
        return inbox.put

    def spawn(self, func: Callable[..., Any], *args: Any) -> None:
        """Starts a task of the protocol's own."""
        self._group.create_task(func(*args))


async def _answer(
    app: ASGIApp, scope: Scope, inbox: "_Inbox", send: Callable[[Message | None], Awaitable[None]]
) -> None:
    def send_noted(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            inbox.answered = True
        return send(message)

    try:
        await app(scope, inbox.get, send_noted)
    except Exception as error:  # noqa: BLE001 - what passed the boundary ends this request only
        _log.error("a request failed unexpectedly:\n%s", describe_exception(error))
    finally:
        inbox.close()
        await send(None)


class _Inbox:
    """A request's messages to the application. Once it is done nobody has to take them.

    Attributes:
        answered: whether the answer is complete: with that, too, Hypercorn says "disconnect".
        leaving: tells the application of the other kind.
    """

    def __init__(self) -> None:
        self.answered = False
        self.leaving = Leaving()
        self._messages: deque[Message] = deque()
        self._unread_bytes = 0
        self._arrived = asyncio.Event()
        self._taken: asyncio.Event | None = None
        self._left: Message | None = None
        self._closed = False

    async def put(self, message: Message) -> None:
        if self._closed:
            return
        self._arrived.set()
        if message["type"] == "http.disconnect":
            self._left = message
            if not self.answered:
                self.leaving.tell()
            return
        if self._messages and not message["body"]:
            # The end of the body goes with the piece before it, which nobody has taken.
            self._messages[-1]["more_body"] = message["more_body"]
            return
        self._messages.append(message)
        self._unread_bytes += len(message["body"])
        while self._unread_bytes > _UNREAD_LIMIT_BYTES and not self._closed:
            self._taken = asyncio.Event()
            await self._taken.wait()

    async def get(self) -> Message:
        while not self._messages:
            if self._left is not None:
                return self._left
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._unread_bytes -= len(message.get("body", b""))
        if self._taken is not None:
            self._taken.set()
        return message

    def close(self) -> None:
        self._closed = True
        self._messages.clear()
        if self._taken is not None:
            self._taken.set()
