"""The façade's own transport: one for each running event loop, closed with it (ruling RU-2).

This is the only mutable state of a module in the core. Embedders who pass ``transport=`` never
touch it.
"""

from collections.abc import AsyncGenerator
from importlib.util import find_spec

from anyio.lowlevel import RunVar, checkpoint

from woollama.core.transport.base import Transport

__all__ = ["default_transport", "make_transport"]

_transport: RunVar[Transport] = RunVar("woollama_transport")
_keeper: RunVar[AsyncGenerator[None]] = RunVar("woollama_transport_keeper")


def make_transport() -> Transport:
    """A transport for the running loop: the fast one on asyncio when its extra is installed."""
    from sniffio import current_async_library

    if current_async_library() == "asyncio" and find_spec("aiohttp") is not None:
        # HTTP libraries cost most of the import time of this package: loaded on first use.
        from woollama.core.transport.fast import FastTransport

        return FastTransport()
    from woollama.core.transport.http import HttpTransport

    return HttpTransport()


async def default_transport() -> Transport:
    """The running loop's transport, made on first use."""
    transport = _transport.get(None)
    if transport is None:
        transport = make_transport()
        _transport.set(transport)
        keeper = _keep(transport)
        # A suspended generator: the loop's own shutdown of generators closes it, and with it the
        # transport. Nothing else tells a library that a loop is about to end.
        await anext(keeper)
        _keeper.set(keeper)
    return transport


async def _keep(transport: Transport) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await transport.aclose()
        await checkpoint()
