"""The whole application behind its door, on a free port in this process, by a real HTTP server."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec

from woollama.core.directory import Directory
from woollama.core.patterns import NativePatterns, PatternCatalog
from woollama.core.providers import ModelRegistry, Provider
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.runs import RunLimits
from woollama.core.runs.plan import Link
from woollama.core.runs.toolset import ToolSource
from woollama.core.scopes import open_tasks
from woollama.core.transport import Timeouts
from woollama.core.transport.default import make_transport
from woollama.server.app import make_app
from woollama.server.binding import open_binding
from woollama.server.door import behind_door
from woollama.server.mcp.tools import McpTools
from woollama.server.plugins.running import RunningPlugins
from woollama.server.runners import find_runner
from woollama.server.sections import ServerSettings
from woollama.server.services import Services
from woollama.server.settings import Settings

HI = [{"role": "user", "content": "hi"}]
ASKED = {"model": "up/m-1", "messages": HI}


class Daemon:
    """A running daemon and a client on it.

    Attributes:
        client: an HTTP client whose base URL is the daemon's.
        services: what it works with.
    """

    def __init__(self, url: str, client: httpx2.AsyncClient, services: Services) -> None:
        self.url = url
        self.client = client
        self.services = services

    async def chat(self, **fields: Any) -> httpx2.Response:
        """A chat request to ``up/m-1`` with further fields."""
        return await self.client.post("/v1/chat/completions", json={**ASKED, **fields})

    async def chat_raw(self, body: bytes) -> httpx2.Response:
        """A chat request whose body is these bytes."""
        return await self.client.post("/v1/chat/completions", content=body)


@asynccontextmanager
async def serving(
    *providers: Provider,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - an immutable value
    retries: Retries = NO_RETRIES,
    body_limit_bytes: int = 1 << 20,
    reasoning: str = "reasoning_content",
    recipes: Path | None = None,
    tools: ToolSource | None = None,
    limits: RunLimits = RunLimits(),  # noqa: B008 - an immutable value
) -> AsyncGenerator[Daemon]:
    """A daemon that knows these providers, and the recipes of a file with these tools."""
    server = ServerSettings(address="127.0.0.1:0", uds=False, body_limit_bytes=body_limit_bytes)
    settings = Settings(server=server, config_dir=Path("/nowhere"))
    transport = make_transport()
    stop, ready = anyio.Event(), anyio.Event()
    async with aclosing(transport), open_tasks() as tasks:
        registry = ModelRegistry(providers)
        link = Link(transport=transport, timeouts=timeouts, retries=retries)
        native = [
            NativePatterns((path,), registry, tools=tools, limits=limits, link=lambda _target: link)
            for path in ([] if recipes is None else [recipes])
        ]
        services = Services(
            directory=Directory(registry, PatternCatalog(native)),
            plugins=RunningPlugins(),
            tools=tools if isinstance(tools, McpTools) else McpTools(()),
            tasks=tasks,
            fresh_s=60.0,
            transport=transport,
            own_transports={},
            timeouts=timeouts,
            retries=retries,
            reasoning=reasoning,
            body_limit_bytes=body_limit_bytes,
            instance_id="test",
        )
        with open_binding(settings, {}) as binding:
            app = behind_door(make_app(services), settings, binding.address)

            async def run() -> None:
                await find_runner("hypercorn")(app, binding, server, on_ready=ready.set, stop=stop)

            async with open_tasks() as running:
                running.start_soon(run)
                with anyio.fail_after(10):
                    await ready.wait()
                url = f"http://{binding.address}"
                async with httpx2.AsyncClient(base_url=url, timeout=10, trust_env=False) as client:
                    with anyio.fail_after(30):
                        yield Daemon(url, client, services)
                stop.set()
        tasks.cancel_scope.cancel()


def frames(body: bytes) -> Sequence[Any]:
    """The data of an event stream: decoded JSON, or the word ``[DONE]``."""
    found: list[Any] = []
    for block in body.split(b"\n\n"):
        if block.startswith(b"data: "):
            data = block[6:]
            found.append("[DONE]" if data == b"[DONE]" else msgspec.json.decode(data))
    return found


def text_of_frames(found: Iterable[Any]) -> str:
    """The text of a chunk stream."""
    chunks = [frame["choices"] for frame in found if frame != "[DONE]"]
    return "".join(choice["delta"].get("content") or "" for part in chunks for choice in part)
