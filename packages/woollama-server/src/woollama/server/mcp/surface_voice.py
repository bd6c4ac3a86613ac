"""What a client hears of a call while it runs: progress, when it asked for it, and log messages."""

from collections.abc import Mapping
from time import monotonic
from typing import Any, get_args
from weakref import WeakKeyDictionary

from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types import (
    LOG_LEVEL_META_KEY,
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
)

from woollama.server.mcp.surface_results import Context, is_modern, mapping_in

__all__ = ["Levels", "Voice", "connection_of", "meta_of"]

_LOGGER = "woollama.chat"
_LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_DEFAULT = _LEVELS.index("info")
_PAUSE_S = 0.1
"""The least time between two pieces of text: clients draw each of them."""


def connection_of(ctx: Context) -> Connection:
    """The client's connection, which lives as long as the client is there."""
    # The SDK gives handlers no other way to something that outlives the request.
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]


class Levels:
    """Which log messages each client of the older protocol wants."""

    def __init__(self) -> None:
        """All from ``info`` on."""
        self._levels: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()

    async def set(
        self, ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams
    ) -> EmptyResult:
        """The handler of ``logging/setLevel``."""
        self._levels[connection_of(ctx)] = _LEVELS.index(params.level)
        return EmptyResult()

    def asked(self, ctx: Context) -> LoggingLevel | None:
        """The level that a client of the older protocol has set; None: it has not."""
        index = self._levels.get(connection_of(ctx))
        return None if index is None else _LEVELS[index]

    def wants(self, ctx: Context, level: LoggingLevel) -> bool:
        """Whether a message of this level is sent for this request."""
        if is_modern(ctx.protocol_version):
            return level in allowed_log_levels(ctx.protocol_version, meta_of(ctx))
        return _LEVELS.index(level) >= self._levels.get(connection_of(ctx), _DEFAULT)


class Voice:
    """Speaks to the client of one request; says nothing to one that does not want to hear it."""

    def __init__(self, ctx: Context, levels: Levels) -> None:
        """Has not spoken yet."""
        self._ctx = ctx
        self._levels = levels
        self._steps = 0
        self._text = ""
        self._spoke = 0.0
        self.wants_progress: bool = meta_of(ctx).get("progressToken") is not None

    async def step(self, message: str) -> None:
        """One step of what is done; text that waits goes before it."""
        if self.wants_progress:
            await self.flush()
            await self._send(message)

    async def text(self, piece: str) -> None:
        """A piece of an answer; pieces that follow close upon each other go together."""
        if not self.wants_progress:
            return
        self._text += piece
        if monotonic() - self._spoke >= _PAUSE_S:
            await self.flush()

    async def flush(self) -> None:
        """Sends the text that waits."""
        if self._text:
            piece, self._text = self._text, ""
            await self._send(piece)

    async def pass_on(self, progress: float, total: float | None, message: str | None) -> None:
        """Another server's progress, as it is."""
        await self._ctx.session.report_progress(progress, total, message)

    def with_level(self, meta: dict[str, Any]) -> dict[str, Any]:
        """A call's ``_meta`` that also tells a server of the newer protocol what to log."""
        level = self._levels.asked(self._ctx)
        return meta if level is None else {LOG_LEVEL_META_KEY: level, **meta}

    async def pass_on_log(self, params: Mapping[str, Any]) -> None:
        """Another server's log message, as it is, for clients that want its level."""
        message = LoggingMessageNotificationParams.model_validate(params)
        if self._levels.wants(self._ctx, message.level):
            await self._ctx.session.send_notification(
                LoggingMessageNotification(params=message), related_request_id=self._ctx.request_id
            )

    async def log(self, level: LoggingLevel, data: Mapping[str, Any]) -> None:
        """A log message, for clients that want this level."""
        await self.pass_on_log({"level": level, "logger": _LOGGER, "data": dict(data)})

    async def _send(self, message: str) -> None:
        self._steps += 1
        self._spoke = monotonic()
        await self._ctx.session.report_progress(self._steps, None, message)


def meta_of(ctx: Context) -> Mapping[str, Any]:
    """The request's ``_meta`` as it came."""
    return mapping_in((ctx.params or {}).get("_meta"))
