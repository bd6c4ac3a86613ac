"""``/fabric/*``: fabric's own API, byte for byte, behind a list of open routes (RU-61).

Of a request go on: method, path, query, content type and body; of a reply: status, body, and the
headers that say how to read and keep it. Our key takes the place of the client's.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, unquote

import anyio
from starlette.types import Receive, Scope, Send

from woollama.core.errors import ProviderError, RequestError, TransportError
from woollama.core.scopes import open_tasks
from woollama.core.transport import Timeouts, WireResponse
from woollama.core.wire.codec import WireRequest
from woollama.server.fabric.allowed import check_route, pattern_of_apply
from woollama.server.fabric.client import FabricClient
from woollama.server.fabric.config import FabricConfig
from woollama.server.fabric.expansion import check_expansion, check_values
from woollama.server.fabric.inspection import Prompt, read_apply, read_chat
from woollama.server.fabric.wire import decode_text, pattern_request

__all__ = ["FabricProxy"]

_log = logging.getLogger(__name__)

_KEPT = (b"content-type", b"content-length", b"cache-control", b"x-accel-buffering")


class FabricProxy:
    """The ASGI application below the prefix."""

    def __init__(
        self, client: FabricClient, config: FabricConfig, *, body_limit_bytes: int
    ) -> None:
        """Passes to ``client`` what ``config`` opens."""
        self._client = client
        self._expose = frozenset(config.expose)
        self._limit_bytes = body_limit_bytes
        self._timeouts = Timeouts(
            connect=5.0, first_byte=config.timeout_s, between=config.timeout_s, whole=None
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request.

        Raises:
            RequestError: its route is closed, or fabric must not get what it holds.
            TransportError: fabric gave no answer.
        """
        method = scope["method"]
        path = _path_below(scope)
        check_route(method, path, self._expose)
        body = await self._read(receive)
        query = scope["query_string"].decode("latin-1")
        await self._inspect(method, path, query, body)
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name == b"content-type"
        }
        target = f"{path}?{query}" if query else path

        def ask(base_url: str) -> WireRequest:
            return WireRequest(method=method, url=f"{base_url}{target}", headers=headers, body=body)

        async with (
            _while_connected(receive),
            self._client.open(ask, timeouts=self._timeouts) as response,
        ):
            await self._pass(response, send)

    async def _pass(self, response: WireResponse, send: Send) -> None:
        pairs = [
            (name, response.headers[name.decode()].encode("latin-1"))
            for name in _KEPT
            if name.decode() in response.headers
        ]
        start = {"type": "http.response.start", "status": response.status, "headers": pairs}
        await send(start)
        try:
            async for chunk in response.chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TransportError as error:
            # The body stays unfinished, and so the client sees the end of its connection.
            _log.warning("a reply of fabric's broke off: %s", await self._client.broken(error))
            return
        await send({"type": "http.response.body", "body": b""})

    async def _read(self, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client left before its request was complete")
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._limit_bytes:
                raise RequestError(
                    f"The request body is longer than {self._limit_bytes} bytes.",
                    status=413,
                    code="request_too_large",
                )
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def _inspect(self, method: str, path: str, query: str, body: bytes) -> None:
        """Refuses what fabric would read as a path, or expand."""
        # As fabric routes it: decoded once.
        plain = unquote(path)
        pattern = pattern_of_apply(plain) if method == "POST" else None
        if pattern is not None:
            # What stands in the query are variables, too; the body's win.
            await self._check(read_apply(body, pattern, parse_qsl(query, keep_blank_values=True)))
        elif method == "POST" and plain == "/chat":
            for prompt in read_chat(body):
                await self._check(prompt)

    async def _check(self, prompt: Prompt) -> None:
        check_values(prompt.variables)
        if not prompt.pattern or not prompt.variables:
            return
        try:
            text = await self._client.fetch(
                lambda base_url: pattern_request(base_url, prompt.pattern)
            )
        except ProviderError:
            # There is no such pattern; fabric says it in its own words.
            return
        check_expansion(prompt.pattern, decode_text(text), prompt.variables)


def _path_below(scope: Scope) -> str:
    """What stands behind the prefix in the request line, percent-encoded as it is there."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    whole = raw.partition(b"?")[0].decode("latin-1")
    prefix = scope.get("root_path", "")
    return whole.removeprefix(prefix)


@asynccontextmanager
async def _while_connected(receive: Receive) -> AsyncGenerator[None]:
    """Ends what is inside when the client leaves, and with it fabric's work."""
    async with open_tasks() as tasks:
        tasks.start_soon(_wait_for_end, receive, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


async def _wait_for_end(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
