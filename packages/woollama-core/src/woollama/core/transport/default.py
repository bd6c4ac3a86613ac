"""The façade's own transport: one for each running event loop, closed with it (ruling RU-2).

This is the only mutable state of a module in the core. Embedders who pass ``transport=`` never
touch it.
"""

import asyncio
from collections.abc import AsyncGenerator

from anyio.lowlevel import RunVar, checkpoint

from woollama.core.transport.base import Transport

__all__ = ["default_transport", "make_transport"]

_kept: RunVar[tuple[Transport, AsyncGenerator[None]] | None] = RunVar("woollama_transport", None)


def make_transport() -> Transport:
    """A transport for the running loop: the fast one on asyncio when its extra is installed."""
    from importlib.util import find_spec

    if _on_asyncio() and find_spec("httptools") is not None:
        # HTTP libraries cost most of the import time of this package: loaded on first use.
        from woollama.core.transport.fast import FastTransport

        return FastTransport()
    from woollama.core.transport.http import HttpTransport

    return HttpTransport()


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def default_transport() -> Transport:
    """The running loop's transport, made on first use."""
    kept = _kept.get()
    if kept is not None:
        return kept[0]
    transport = make_transport()
    keeper = _keep(transport)
    # A suspended generator: the loop's own shutdown of generators closes it, and with it the
    # transport. Nothing else tells a library that a loop is about to end.
    await anext(keeper)
    _kept.set((transport, keeper))
    return transport


async def _keep(transport: Transport) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        # Both hold on to their loop; held by it in turn, none of the three would ever go.
        _kept.set(None)
        await transport.aclose()
        await checkpoint()
