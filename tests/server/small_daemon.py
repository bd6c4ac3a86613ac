"""A daemon in a process of its own: ``small_daemon.py KIND [for-ever] [no-httptools]``.

It prints its port when it serves and ``stopping`` when it was told to stop. Its answer
begins at once and ends when the daemon stops, or never.
"""

import os
import sys

import anyio
from starlette.types import Receive, Scope, Send

if "no-httptools" in sys.argv:
    sys.modules["httptools"] = None  # pyright: ignore[reportArgumentType] - so it cannot be found

from woollama.core.scopes import open_tasks
from woollama.server.binding import open_binding
from woollama.server.door import behind_door
from woollama.server.log_output import open_logging
from woollama.server.runners import find_runner, run, stop_on_signals
from woollama.server.settings import load_settings


async def main() -> None:
    kind, *rest = sys.argv[1:]
    flags = {"server.kind": kind, "server.port": 0, "server.drain_timeout_s": 60}
    settings = load_settings(os.environ, flags)
    stop = anyio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await (anyio.sleep_forever() if "for-ever" in rest else stop.wait())
        await send({"type": "http.response.body", "body": b"ended"})

    async def tell() -> None:
        await stop.wait()
        sys.stdout.write("stopping\n")
        sys.stdout.flush()

    with open_logging(settings.server), open_binding(settings, os.environ) as binding:

        def ready() -> None:
            sys.stdout.write(f"{binding.address.port}\n")
            sys.stdout.flush()

        async with stop_on_signals(stop), open_tasks() as tasks:
            tasks.start_soon(tell)
            serve = find_runner(settings.server.kind)
            guarded = behind_door(app, settings, binding.address)
            await serve(guarded, binding, settings.server, on_ready=ready, stop=stop)


if __name__ == "__main__":
    run(main)
