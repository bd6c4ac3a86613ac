"""One line for each request: what the route learns of it, and the middleware that writes it.

No prompt, no reply and no key is ever in it (promise P-60): only names, numbers and ids. Bodies are
written when the operator asked for them with ``--log-bodies``, and then by lines of their own.
"""

import itertools
import logging
import os
from collections.abc import Awaitable
from time import perf_counter, time
from types import MappingProxyType
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from woollama.core.errors import WoollamaError

__all__ = ["REQUEST_ID_HEADER", "RequestLog", "RequestLogging", "request_log"]

REQUEST_ID_HEADER = b"x-request-id"
OWN_ID_HEADER = b"x-woollama-request-id"
"""Ours, beside a provider's id that is passed on under ``x-request-id``."""

BODY_LIMIT_BYTES = 64 * 1024
"""How much of a body ``--log-bodies`` writes."""

_KEY = "woollama.request_log"
_WORD_LIMIT = 200
_QUIET = frozenset({"/healthz", "/readyz", "/"})
_log = logging.getLogger("woollama.requests")
_LEVEL_NAMES = MappingProxyType(
    {level: logging.getLevelName(level) for level in (logging.DEBUG, logging.INFO, logging.WARNING)}
)
_PATTERN = MappingProxyType(
    logging.LogRecord(_log.name, logging.INFO, __file__, 0, "", None, None).__dict__
)


class RequestLog:
    """What is known of one request; the route fills in what it learns.

    Attributes:
        id: ours, unique to this request.
        method, path: as the client asked; the query is left out, it can hold a key.
        model: as the client named it.
        provider: where it went.
        prompt_tokens, completion_tokens: as the provider counted them.
        peer_id: the provider's own id of the request.
        error: the kind of what went wrong.
        status: the HTTP status; None when the client left before there was one.
        ended: whether the reply was sent to its end.
        first_byte_s, total_s: from the request's head to the first byte of the reply's body, and to
            the end; in seconds.
        headers: sent with the reply, whoever answers.
    """

    __slots__ = (
        "began",
        "completion_tokens",
        "ended",
        "error",
        "first_byte_s",
        "headers",
        "id",
        "method",
        "model",
        "path",
        "peer_id",
        "prompt_tokens",
        "provider",
        "status",
        "total_s",
    )

    def __init__(self, id: str, method: str, path: str) -> None:
        """The middleware makes these."""
        self.id = id
        self.method = method
        self.path = path
        self.model: str | None = None
        self.provider: str | None = None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.peer_id: str | None = None
        self.error: str | None = None
        self.status: int | None = None
        self.ended = False
        self.began = perf_counter()
        self.first_byte_s: float | None = None
        self.total_s: float | None = None
        self.headers: list[tuple[bytes, bytes]] = []

    def count(self, prompt_tokens: int | None, completion_tokens: int | None) -> None:
        """The provider's token counts; what is no number is not taken."""
        self.prompt_tokens = prompt_tokens if isinstance(prompt_tokens, int) else None
        self.completion_tokens = completion_tokens if isinstance(completion_tokens, int) else None

    def fail(self, error: WoollamaError) -> None:
        """What went wrong: its kind; never its message, which can quote the peer."""
        self.error = error.kind
        self.peer_id = error.request_id or self.peer_id

    @property
    def outcome(self) -> str | None:
        """``left``: the client, before an answer; ``cut``: the answer was not sent to its end."""
        if self.ended:
            return None
        return "left" if self.status is None else "cut"

    def fields(self) -> dict[str, Any]:
        """Everything that is known, for a line of JSON; times in milliseconds."""
        known: dict[str, Any] = {
            "id": self.id,
            "method": self.method,
            "path": self.path[:_WORD_LIMIT],
            "status": self.status,
            "model": None if self.model is None else self.model[:_WORD_LIMIT],
            "provider": self.provider,
            "first_byte_ms": _milliseconds(self.first_byte_s),
            "total_ms": _milliseconds(self.total_s),
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "peer_id": self.peer_id,
            "error": self.error,
            "outcome": self.outcome,
        }
        return {key: value for key, value in known.items() if value is not None}

    def __str__(self) -> str:
        """The line for people."""
        status = "-" if self.status is None else self.status
        line = f"{self.id} {self.method} {_word(self.path)} {status}"
        if self.model is not None:
            line += f" model={_word(self.model)}"
        if self.provider is not None:
            line += f" provider={self.provider}"
        if self.first_byte_s is not None:
            line += f" first={self.first_byte_s * 1000:.1f}ms"
        if self.total_s is not None:
            line += f" total={self.total_s * 1000:.1f}ms"
        if self.prompt_tokens is not None or self.completion_tokens is not None:
            line += f" tokens={_count(self.prompt_tokens)}+{_count(self.completion_tokens)}"
        if self.peer_id is not None:
            line += f" peer={_word(self.peer_id)}"
        if self.error is not None:
            line += f" error={_word(self.error)}"
        return line if self.ended else f"{line} {self.outcome}"


def request_log(scope: Scope) -> RequestLog:
    """The log of this request; a fresh one that nobody writes when there is no middleware."""
    log = scope.get(_KEY)
    if log is None:
        log = scope[_KEY] = RequestLog("req_none", scope["method"], scope["path"])
    return cast("RequestLog", log)


class RequestLogging:
    """The outermost layer: gives each request an id, times it, writes its line.

    The id is sent as ``x-request-id``; when the reply carries a provider's under that name, ours is
    in ``x-woollama-request-id``.
    """

    def __init__(self, app: ASGIApp, *, log_bodies: bool = False) -> None:
        """Serves ``app``."""
        self._app = app
        self._log_bodies = log_bodies
        # Unique among daemons by chance, within one by counting: no randomness for each request.
        self._prefix = f"req_{os.urandom(6).hex()}"
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or a lifespan or web socket, which pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        log = RequestLog(f"{self._prefix}{next(self._numbers):08x}", scope["method"], scope["path"])
        scope[_KEY] = log
        bodies = _Bodies(receive, send) if self._log_bodies else None
        if bodies is not None:
            receive, send = bodies.receive, bodies.send

        def send_noted(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.body":
                if log.first_byte_s is None and message.get("body"):
                    log.first_byte_s = perf_counter() - log.began
                log.ended = not message.get("more_body", False)
            elif message["type"] == "http.response.start":
                log.status = message["status"]
                message = {**message, "headers": _with_id(message.get("headers", ()), log)}
            return send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            log.total_s = perf_counter() - log.began
            if bodies is not None:
                bodies.write(log)
            _write(log)


def _with_id(headers: Any, log: RequestLog) -> list[tuple[bytes, bytes]]:
    pairs = list(headers)
    pairs += log.headers
    name = REQUEST_ID_HEADER
    for pair in pairs:
        if pair[0] == REQUEST_ID_HEADER:
            name = OWN_ID_HEADER
            break
    pairs.append((name, log.id.encode()))
    return pairs


def _write(log: RequestLog) -> None:
    level = logging.INFO
    if log.status is not None and log.status >= 500:
        level = logging.WARNING
    elif log.path in _QUIET and log.status == 200:
        level = logging.DEBUG
    if _log.isEnabledFor(level):
        _log.handle(_record(level, log))


def _record(level: int, log: RequestLog) -> logging.LogRecord:
    # Filled from a pattern: looking up the calling line and the thread for each request costs as
    # much as all the rest of its line.
    record = logging.LogRecord.__new__(logging.LogRecord)
    fields = record.__dict__ = _PATTERN.copy()
    fields["msg"] = log
    fields["levelno"] = level
    fields["levelname"] = _LEVEL_NAMES[level]
    now = fields["created"] = time()
    fields["msecs"] = now % 1 * 1000
    return record


class _Bodies:
    """What passes between client and application, kept to be written: ``--log-bodies``."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._request = bytearray()
        self._reply = bytearray()

    async def receive(self) -> Message:
        message = await self._receive()
        self._keep(self._request, message)
        return message

    async def send(self, message: Message) -> None:
        self._keep(self._reply, message)
        await self._send(message)

    def _keep(self, kept: bytearray, message: Message) -> None:
        kept += message.get("body", b"")[: BODY_LIMIT_BYTES - len(kept)]

    def write(self, log: RequestLog) -> None:
        for which, body in (("request", self._request), ("reply", self._reply)):
            if body:
                _log.info("%s %s body: %s", log.id, which, body.decode("utf-8", "replace"))


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else str(tokens)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _word(text: str) -> str:
    """One word, whatever a client sent: no space, no control character, no end of line."""
    if text.isprintable() and " " not in text and len(text) <= _WORD_LIMIT:
        return text
    return ascii(text[:_WORD_LIMIT]).replace(" ", "\\x20")
