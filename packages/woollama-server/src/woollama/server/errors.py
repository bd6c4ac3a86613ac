"""What a client is told when something goes wrong: OpenAI's error object, whatever the cause.

Three doors lead here: the boundary round the whole application, the handlers that Starlette calls
for unknown routes, and ``error_response`` for a route that answers one itself.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from math import ceil
from types import MappingProxyType
from typing import Any, cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from woollama.core.errors import RequestError, WoollamaError, kind_of_status
from woollama.server.logs import RequestLog, request_log
from woollama.server.tracebacks import describe_exception

__all__ = ["EXCEPTION_HANDLERS", "ErrorBoundary", "error_response", "send_error"]

_log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder()

_HOP_BY_HOP = frozenset({"connection", "content-length", "content-type", "transfer-encoding"})


def _parts(error: WoollamaError) -> tuple[bytes, dict[str, str]]:
    headers = {
        name.lower(): value
        for name, value in error.headers.items()
        if name.lower() not in _HOP_BY_HOP
    }
    if error.retry_after is not None:
        headers.setdefault("retry-after", str(ceil(error.retry_after)))
    return _encoder.encode(error.to_openai()), headers


def error_response(error: WoollamaError) -> Response:
    """The error as a response: its status, ``{"error": {…}}``, and the headers it carries."""
    body, headers = _parts(error)
    return Response(body, error.status, headers, media_type="application/json")


async def send_error(send: Send, error: WoollamaError, *, close: bool = False) -> None:
    """The same without Starlette; ``close`` also asks for the end of the connection (HTTP/1)."""
    body, headers = _parts(error)
    pairs = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    pairs += [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    if close:
        pairs.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


class ErrorBoundary:
    """The one place that catches everything: before the reply begins it becomes an error object.

    An unexpected exception is a 500 that says nothing of it; the log has its traceback, without the
    messages, under the request's id. After the reply has begun nothing can be said any more: the
    body stays unfinished, which the server shows the client by closing the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Serves ``app``."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; a lifespan passes with its exceptions."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception as caught:  # noqa: BLE001 - the one top-level handler
            log = request_log(scope)
            error = _as_told(caught, log)
            if error is None:
                return
            log.fail(error)
            if log.status is None:
                close = "connection" in error.headers and scope["http_version"].startswith("1")
                await send_error(send, error, close=close)


def _as_told(caught: Exception, log: RequestLog) -> WoollamaError | None:
    """What the client is told; None when it is not there to hear it."""
    cause = _alone(caught)
    if isinstance(cause, WoollamaError):
        return cause
    if _has_left(cause):
        return None
    _log.error("%s failed unexpectedly:\n%s", log.id, describe_exception(caught))
    return _unexpected(log)


def _alone(caught: Exception) -> Exception:
    """What a group of one holds: a task group of a library is no cause."""
    if not isinstance(caught, ExceptionGroup):
        return caught
    group = cast("ExceptionGroup[Exception]", caught)
    return _alone(group.exceptions[0]) if len(group.exceptions) == 1 else group


def _has_left(caught: Exception) -> bool:
    """Whether it says that the client left while its request was read."""
    # A refused or reset connection of ours is another matter, and a fault.
    return isinstance(caught, ClientDisconnect) or type(caught) is ConnectionError


def _unexpected(log: RequestLog) -> WoollamaError:
    message = f"woollama failed unexpectedly; its log says more under {log.id}."
    return WoollamaError(message, code="internal_error")


async def _unknown_route(request: Request, error: Exception) -> Response:
    """A route or a method that is not there, as Starlette tells it."""
    assert isinstance(error, HTTPException)
    told = RequestError(
        _message(error, request),
        kind=kind_of_status(error.status_code),
        status=error.status_code,
        code={404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code),
        headers=error.headers,
    )
    return await _own_error(request, told)


def _message(error: HTTPException, request: Request) -> str:
    path = request.url.path[:200]
    if error.status_code == 404:
        return f"There is no {path!r} here; the OpenAI API begins at /v1."
    if error.status_code == 405:
        return f"{path!r} does not take {request.method}; the Allow header says what it takes."
    return str(error.detail)


async def _own_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, WoollamaError)
    request_log(request.scope).fail(error)
    return error_response(error)


async def _other_error(request: Request, error: Exception) -> Response:
    # Starlette raises it again behind this answer, so the boundary sees it, too, and logs it.
    return error_response(_unexpected(request_log(request.scope)))


async def _client_left(_request: Request, error: Exception) -> Response:
    if not _has_left(error):
        raise error
    return Response(status_code=499)


Handler = Callable[[Request, Exception], Awaitable[Response]]

EXCEPTION_HANDLERS: Mapping[Any, Handler] = MappingProxyType(
    {
        HTTPException: _unknown_route,
        WoollamaError: _own_error,
        ConnectionError: _client_left,
        ClientDisconnect: _client_left,
        Exception: _other_error,
    }
)
"""For ``Starlette(exception_handlers=…)``; Starlette's own answers would be plain text."""
