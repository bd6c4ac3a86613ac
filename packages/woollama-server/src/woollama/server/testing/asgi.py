"""A client of an ASGI application: requests without a socket."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import anyio
import msgspec
from starlette.types import ASGIApp, Message

from woollama.core.canonical import NOTHING, Value

__all__ = ["Answer", "AsgiClient"]


class Answer(Value, frozen=True, kw_only=True):
    """What came back.

    Attributes:
        status: the HTTP status.
        headers: names in lower case.
        chunks: the body in the pieces in which it left.
        complete: whether the body came to its end; a server cuts the connection when it did not.
    """

    status: int
    headers: Mapping[str, str] = NOTHING
    chunks: tuple[bytes, ...] = ()
    complete: bool = True

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks)

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            DecodeError: it is none.
        """
        return msgspec.json.decode(self.body)


class AsgiClient:
    """Calls an application as a client on this machine would."""

    def __init__(self, app: ASGIApp, *, headers: Mapping[str, str] = NOTHING) -> None:
        """``headers`` go with every request."""
        self._app = app
        self._headers = {"host": "127.0.0.1", **headers}

    async def get(self, path: str, *, headers: Mapping[str, str | None] = NOTHING) -> Answer:
        """A GET; see ``request``."""
        return await self.request("GET", path, headers=headers)

    async def post(
        self, path: str, json: Any, *, headers: Mapping[str, str | None] = NOTHING
    ) -> Answer:
        """A POST of JSON; see ``request``."""
        body = msgspec.json.encode(json)
        typed = {"content-type": "application/json", **headers}
        return await self.request("POST", path, body=body, headers=typed)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str | None] = NOTHING,
    ) -> Answer:
        """One request; returns when the application has done with it.

        Args:
            method: in capitals.
            path: as it stands in a request line: percent-encoded, with its query.
            body: of the request.
            headers: over those of every request; None takes one away.

        Raises:
            Exception: what the application raised.
        """
        target, _, query = path.partition("?")
        named = {**self._headers, "content-length": str(len(body)), **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(target),
            "raw_path": target.encode("latin-1"),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in named.items()
                if value is not None
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        exchange = _Exchange(body)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            exchange.done.set()
        return exchange.answer()


class _Exchange:
    """The two sides of one request."""

    def __init__(self, body: bytes) -> None:
        self.done = anyio.Event()
        self._request: list[Message] = [{"type": "http.request", "body": body}]
        self._start: Message | None = None
        self._chunks: list[bytes] = []
        self._complete = False

    async def receive(self) -> Message:
        if self._request:
            return self._request.pop()
        # The client stays until it has its answer.
        await self.done.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body":
            if message.get("body"):
                self._chunks.append(bytes(message["body"]))
            self._complete = not message.get("more_body", False)
            if self._complete:
                self.done.set()

    def answer(self) -> Answer:
        assert self._start is not None, "the application gave no answer"
        return Answer(
            status=self._start["status"],
            headers={
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in self._start.get("headers", ())
            },
            chunks=tuple(self._chunks),
            complete=self._complete,
        )
