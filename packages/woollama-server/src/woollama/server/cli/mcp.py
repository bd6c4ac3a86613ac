"""``woollama mcp``: an MCP server on the standard streams, for a client that starts it."""

from collections.abc import Awaitable, Callable

import anyio
import click
from anyio import to_thread

from woollama.core.scopes import open_tasks
from woollama.server.cli.start import begin
from woollama.server.lifespan import open_services
from woollama.server.log_output import open_logging
from woollama.server.mcp.sdk import load_sdk
from woollama.server.mcp.surface_sources import Sources
from woollama.server.routes.mcp import sources_of
from woollama.server.runners import run, stop_on_signals
from woollama.server.settings import Settings

__all__ = ["mcp"]


@click.command()
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="From which level on to log; the log goes to stderr.",
)
def mcp(log_level: str | None) -> None:
    """Serve models, prompts and tools to the MCP client that starts this.

    The protocol is spoken on the standard streams; nothing is listened on.
    """
    settings = begin({} if log_level is None else {"server.log_level": log_level})
    with open_logging(settings.server):
        run(lambda: _serve(settings))


async def _serve(settings: Settings) -> None:
    stop = anyio.Event()
    async with stop_on_signals(stop), open_services(settings) as services, open_tasks() as tasks:
        tasks.start_soon(_end_with, stop, tasks.cancel_scope)
        # In a thread, so that the servers of tools can begin meanwhile.
        serve_streams = await to_thread.run_sync(_load)
        await serve_streams(sources_of(services))
        tasks.cancel_scope.cancel()


async def _end_with(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()


def _load() -> Callable[[Sources], Awaitable[None]]:
    load_sdk()
    from woollama.server.mcp.surface_streams import serve_streams

    return serve_streams
