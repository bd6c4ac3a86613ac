"""A daemon's `/mcp` that passes the fixtures on under their own names: `serve_fixtures.py FOLDER`.

The conformance suite calls tools by fixed names, so here the server's name is left out of them, and
they may be longer. All else is the daemon's own: configuration, door, HTTP server. Prints its port.
"""

import os
import sys

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.routing import Route

from woollama.server.binding import open_binding
from woollama.server.door import behind_door
from woollama.server.lifespan import open_services
from woollama.server.log_output import open_logging
from woollama.server.mcp.surface import open_surface
from woollama.server.routes.mcp import sources_of
from woollama.server.runners import find_runner, run, stop_on_signals
from woollama.server.settings import load_settings


def bare(source_name: str) -> str:
    return source_name.partition(".")[2]


async def main() -> None:
    settings = load_settings(os.environ, {"server.port": int(sys.argv[1])})
    stop = anyio.Event()
    with open_logging(settings.server), open_binding(settings, os.environ) as binding:

        def ready() -> None:
            sys.stdout.write(f"{binding.address.port}\n")
            sys.stdout.flush()

        async with stop_on_signals(stop), open_services(settings) as services:
            sources = msgspec.structs.replace(sources_of(services), rename=bare, name_limit=64)
            async with open_surface(sources) as surface, surface.open_http() as endpoint:
                app = Starlette(routes=[Route("/mcp", endpoint)])
                guarded = behind_door(app, settings, binding.address)
                serve = find_runner("hypercorn")
                await serve(guarded, binding, settings.server, on_ready=ready, stop=stop)


if __name__ == "__main__":
    run(main)
