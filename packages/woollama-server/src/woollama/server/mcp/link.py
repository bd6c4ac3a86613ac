"""Where the SDK's session meets JSON-RPC: results are caught here before it sieves them.

The session checks each result against the revision that is spoken: it drops fields that it does not
know, and refuses a whole list of tools for one that is odd. So results that are passed on are taken
from under it, and it is given something harmless in their place.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY

__all__ = ["Catch", "Link", "Streams", "catching"]

Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]


class Catch:
    """Takes a result from under the session; ``stand_in`` is what the session sees of it."""

    def __init__(
        self,
        stand_in: Callable[[dict[str, Any]], dict[str, Any]],
        capabilities: Mapping[str, Any] | None,
    ) -> None:
        """Made by ``catching``."""
        self.stand_in = stand_in
        self.capabilities = capabilities
        self.result: dict[str, Any] = {}


_catch: ContextVar[Catch | None] = ContextVar("woollama_mcp_catch", default=None)
"""The catch of the request that this task is making; empty outside of one."""


@contextmanager
def catching(
    stand_in: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    capabilities: Mapping[str, Any] | None = None,
) -> Generator[Catch]:
    """Within it, this task's requests leave their result in what is given.

    Args:
        stand_in: what the session is to see of a result.
        capabilities: what the protocol of 2026 is told of the client with each request; None is
            what the connection was greeted with.
    """
    catch = Catch(stand_in, capabilities)
    token = _catch.set(catch)
    try:
        yield catch
    finally:
        _catch.reset(token)


class Link(JSONRPCDispatcher[TransportContext]):
    """The SDK's JSON-RPC, which also says when it has ended and what was answered."""

    def __init__(self, streams: Streams) -> None:
        """The streams are closed when it ends."""
        super().__init__(*streams, on_stream_exception=_skip)
        self.ended = anyio.Event()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """See ``Dispatcher``; what is returned within ``catching`` is the stand-in."""
        catch = _catch.get()
        if catch is not None and catch.capabilities is not None:
            params = _with_capabilities(params, catch.capabilities)
        result = await super().send_raw_request(method, params, opts, **more)
        if catch is None:
            return result
        catch.result = result
        return catch.stand_in(result)

    async def run(self, *args: Any, **more: Any) -> None:
        """See ``Dispatcher``."""
        try:
            await super().run(*args, **more)
        finally:
            self.ended.set()


def _with_capabilities(
    params: Mapping[str, Any] | None, capabilities: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    meta: object = (params or {}).get("_meta")
    if not isinstance(meta, Mapping) or CLIENT_CAPABILITIES_META_KEY not in meta:
        return params
    told = cast("Mapping[str, Any]", meta)
    # A plain dict: what writes messages knows no other mapping.
    mine = {**told, CLIENT_CAPABILITIES_META_KEY: dict(capabilities)}
    return {**(params or {}), "_meta": mine}


async def _skip(_error: Exception) -> None:
    """Our transports give no exceptions in the place of messages."""
