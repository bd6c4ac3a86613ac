"""An ASGI application on a loopback port, in the running loop."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from woollama.core.scopes import open_tasks


def settings(app: ASGIApp, **more: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=1,
        **more,  # pyright: ignore[reportArgumentType]
    )


class _Server(uvicorn.Server):
    """Tells when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def serve(app: ASGIApp, port: int = 0) -> AsyncGenerator[str]:
    """``http://127.0.0.1:PORT`` of the application, until the context is left."""
    # With its protocol named, asyncio turns Nagle's delay off.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        server = _Server(settings(app))
        async with open_tasks() as tasks:
            tasks.start_soon(server.serve, [listener])
            await server.ready.wait()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
