"""``woollama serve``: the daemon."""

import os
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import click

from woollama.core import __version__
from woollama.server.app import make_app
from woollama.server.binding import BindError, Binding, open_binding
from woollama.server.cli.start import begin
from woollama.server.cli.terminal import complain
from woollama.server.collector import settle_collector
from woollama.server.door import behind_door
from woollama.server.lifespan import open_services
from woollama.server.log_output import open_logging
from woollama.server.plugins.selection import OVERRIDE
from woollama.server.runners import find_runner, run, stop_on_signals
from woollama.server.settings import Settings

__all__ = ["serve"]

_FLAGS = (
    ("address", "server.address"),
    ("host", "server.host"),
    ("port", "server.port"),
    ("uds", "server.uds"),
    ("kind", "server.kind"),
    ("log_format", "server.log_format"),
    ("log_level", "server.log_level"),
    ("log_bodies", "server.log_bodies"),
)


_CLOSING = """
What is not said here comes from woollama.toml; see also WOOLLAMA_ADDRESS and WOOLLAMA_TOKEN.
Ctrl-C and SIGTERM let answers that are under way come to their end.
"""


@click.command(epilog=_CLOSING)
@click.option(
    "--address", metavar="HOST:PORT", help="Where to listen; 127.0.0.1:9665 unless configured."
)
@click.option("--host", metavar="HOST", help="The host part alone.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port part alone; 0 takes a free one.",
)
@click.option("--uds", metavar="PATH", help="The Unix socket; `off` for none.")
@click.option(
    "--server",
    "kind",
    type=click.Choice(["hypercorn", "uvicorn"]),
    help="The HTTP server to run on.",
)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="How each line of the log is written."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    metavar="LEVEL",
    help="From which level on to log: debug, info, warning or error. Each request is a line of "
    "info.",
)
@click.option(
    "--log-bodies",
    is_flag=True,
    default=None,
    help="Log the bodies of requests and replies, which hold everything that users write.",
)
@click.option("--no-plugins", is_flag=True, help="Start without any plugin.")
@click.pass_context
def serve(context: click.Context, /, **given: Any) -> None:
    """Serve every model on one address: OpenAI's API on /v1, prompts on /w1, MCP on /mcp.

    Says on stderr where it listens, and then a line for each request.
    """
    settings = begin(_flags(given))
    environ = {**os.environ, OVERRIDE: "none"} if given["no_plugins"] else os.environ
    try:
        with open_logging(settings.server), open_binding(settings, os.environ) as binding:
            run(lambda: _serve(settings, binding, environ))
        if sys.stderr.isatty():
            click.echo(err=True)  # behind the ^C that the terminal has written
    except BindError as error:
        complain(str(error))
        context.exit(error.exit_code)


def _flags(given: Mapping[str, Any]) -> dict[str, Any]:
    flags = {key: given[name] for name, key in _FLAGS if given.get(name) is not None}
    if flags.get("server.uds") == "off":
        flags["server.uds"] = False
    return flags


async def _serve(settings: Settings, binding: Binding, environ: Mapping[str, str]) -> None:
    runner = find_runner(settings.server.kind)
    stop = anyio.Event()
    async with stop_on_signals(stop), open_services(settings, environ=environ) as services:
        app = behind_door(make_app(services, stop=stop), settings, binding.address)
        await runner(
            app,
            binding,
            settings.server,
            on_ready=lambda: _begin(settings, binding),
            stop=stop,
        )


def _begin(settings: Settings, binding: Binding) -> None:
    settle_collector()
    _say(settings, binding)


def _say(settings: Settings, binding: Binding) -> None:
    """Where it listens, for a person at a terminal; on stderr, where the log is, too."""
    lines = [f"woollama {__version__} on http://{binding.address}  (OpenAI API at /v1)"]
    if binding.uds is not None:
        lines.append(f"Unix socket {binding.uds}")
    lines.extend(binding.notices)
    if settings.server.log_bodies:
        lines.append("Bodies are logged: everything that users write.")
    # In one piece: who waits for the first line finds the others, too.
    print("\n".join(lines), file=sys.stderr, flush=True)
