"""A connection to one MCP server, opened and greeted: over the pipes of a child, or over HTTP."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from woollama.core.errors import TransportError
from woollama.core.transport.http import tls_context
from woollama.core.transport.network import proxy_for
from woollama.server.instance import INSTANCE_HEADER
from woollama.server.mcp.entries import HttpServer, Protocol, StdioServer
from woollama.server.mcp.faults import ServerFault, Unforeseen, Unreachable, innermost
from woollama.server.mcp.federation import header_trail
from woollama.server.mcp.health import ChildLog
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.link import Streams
from woollama.server.mcp.session import Connection
from woollama.server.mcp.stdio import child_environment, open_stdio
from woollama.server.mcp.translation import HTTP_FAULT

__all__ = ["open_connection"]

_SHORT_S = 5.0
"""For what answers at once: notices, and the goodbye to a session."""

_SAID_LIMIT_BYTES = 300
_BODY_LIMIT_BYTES = 65536
_FAULT_CODE = -32000
_JSON = {"content-type": "application/json"}
_GONE = 404
_DENIED = frozenset({401, 403})

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_connection(
    server: StdioServer | HttpServer,
    *,
    mode: Protocol,
    instance_id: str,
    environ: Mapping[str, str],
    lineage: Mapping[str, str],
    limits: McpLimits,
    log: ChildLog,
) -> AsyncGenerator[Connection]:
    """Connects, greets, and ends it all in order.

    Args:
        server: which one.
        mode: in the place of its own, when more is known by now.
        instance_id: ours.
        environ: the environment, of which a child gets little.
        lineage: what our children are to know of us, as variables.
        limits: of every server; the deadline of connecting is the caller's.
        log: gets a child's stderr.

    Raises:
        ServerFault: the connection could not be made, or what the caller raised of these.
    """
    try:
        async with AsyncExitStack() as stack:
            if isinstance(server, StdioServer):
                env = child_environment(environ, {**lineage, **server.env})
                streams = await stack.enter_async_context(
                    open_stdio(server, env=env, limits=limits, log=log)
                )
                connection = Connection(
                    streams,
                    instance_id=instance_id,
                    limits=limits,
                    http=False,
                    hears=lambda: True,
                )
            else:
                guard = await stack.enter_async_context(_open_http(server, instance_id, limits))
                streams = await stack.enter_async_context(
                    streamable_http_client(
                        server.url, http_client=guard.client, max_sse_event_size=None
                    )
                )
                connection = Connection(
                    cast("Streams", streams),
                    instance_id=instance_id,
                    limits=limits,
                    http=True,
                    hears=lambda: guard.hears,
                )
            await stack.enter_async_context(connection.session)
            await connection.greet(mode)
            yield connection
    except ServerFault:
        raise
    except Exception as error:
        # Foreign code: whatever its task groups raise ends this connection and nothing else.
        raise _plain(error) from error


def _plain(error: BaseException) -> ServerFault:
    """The cause, out of however many groups, in a sentence without what anybody sent."""
    leaf = innermost(error)
    if isinstance(leaf, ServerFault):
        return leaf
    if isinstance(leaf, OSError | TransportError | MCPError):
        return Unreachable(str(leaf))
    return Unforeseen(leaf)


@asynccontextmanager
async def _open_http(
    server: HttpServer, instance_id: str, limits: McpLimits
) -> AsyncGenerator["_Guard"]:
    secure = server.url.startswith("https:")
    inner = httpx2.AsyncHTTPTransport(
        verify=tls_context() if secure else False,
        proxy=proxy_for(server.url),
        trust_env=False,
        # A hundred calls that hang are not to keep the next one waiting.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=16),
    )
    guard = _Guard(inner, instance_id)
    # How long an answer may take is the caller's matter: a tool may work for minutes.
    timeout = httpx2.Timeout(limits.connect_timeout_s, read=None, pool=None)
    headers = {"user-agent": "woollama", INSTANCE_HEADER: instance_id, **server.headers}
    async with httpx2.AsyncClient(
        transport=guard, headers=headers, timeout=timeout, trust_env=False
    ) as guard.client:
        yield guard


class _Message(msgspec.Struct):
    id: Any = msgspec.UNSET


class _Guard(httpx2.AsyncBaseTransport):
    """Turns what goes wrong with one request into an answer to that request.

    An exception would end the SDK's connection, with every call that is under way in it; and of a
    refusal it would not tell the status.

    Attributes:
        hears: whether a stream for notices of the older protocol is open.
        client: what the SDK sends with.
    """

    client: httpx2.AsyncClient

    def __init__(self, inner: httpx2.AsyncBaseTransport, instance_id: str) -> None:
        self._inner = inner
        self._instance_id = instance_id
        self.hears = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See ``AsyncBaseTransport``; raises nothing of httpx2's."""
        if _is_brief(request):
            limits = {**request.extensions.get("timeout", {}), "read": _SHORT_S}
            request.extensions = {**request.extensions, "timeout": limits}
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            return _fault(503, "unreachable", f"it cannot be reached: {_reason(error)}")
        except httpx2.TransportError as error:
            return _fault(502, "cut", f"it broke the connection: {_reason(error)}")
        if self._instance_id in header_trail(response.headers.get(INSTANCE_HEADER)):
            await response.aclose()
            return _fault(508, "loop", "it is this woollama itself: a loop; remove the entry")
        if response.status_code >= 400:
            try:
                return await _explained(request, response)
            finally:
                await response.aclose()
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Stream(response, self if request.method == "GET" else None),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _Stream(httpx2.AsyncByteStream):
    """A body that ends where the connection broke: the SDK then ends the one call."""

    def __init__(self, response: httpx2.Response, guard: _Guard | None) -> None:
        self._response = response
        self._guard = guard
        if guard is not None:
            guard.hears = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in cast("httpx2.AsyncByteStream", self._response.stream):
                yield chunk
        except httpx2.TransportError as error:
            _log.debug("a body broke off: %s", type(error).__name__)

    async def aclose(self) -> None:
        """The peer sees it."""
        if self._guard is not None:
            self._guard.hears = False
        await self._response.aclose()


def _is_brief(request: httpx2.Request) -> bool:
    """Whether it is answered at once: a notice, or the goodbye."""
    if request.method != "POST":
        return request.method == "DELETE"
    try:
        return msgspec.json.decode(request.content, type=_Message).id is msgspec.UNSET
    except msgspec.DecodeError:
        return False


async def _explained(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """A refusal with its status in it; one that is JSON-RPC already stays as it is."""
    status = response.status_code
    if status == _GONE and "mcp-session-id" in request.headers:
        return _fault(status, "gone", "it does not know our session any more")
    if status in _DENIED:
        text = f"it refused us (HTTP {status}); check the 'headers' of its entry in mcp.json"
        return _fault(status, "denied", text)
    body = b""
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _BODY_LIMIT_BYTES:
                break
    except httpx2.HTTPError as error:
        _log.debug("a refusal broke off: %s", type(error).__name__)
    if _is_rpc_error(body):
        return httpx2.Response(status, headers=_JSON, content=body)
    said = " ".join(body[:_SAID_LIMIT_BYTES].decode("utf-8", "replace").split())
    return _fault(status, "status", f"HTTP {status}: {said}" if said else f"HTTP {status}")


def _is_rpc_error(body: bytes) -> bool:
    try:
        message: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return False
    return isinstance(message, dict) and "error" in message and "jsonrpc" in message


def _fault(status: int, word: str, text: str) -> httpx2.Response:
    error = {"code": _FAULT_CODE, "message": text, "data": {HTTP_FAULT: word}}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    return httpx2.Response(status, headers=_JSON, content=body)


def _reason(error: httpx2.TransportError) -> str:
    return str(error) or type(error).__name__
