"""What the tests of the MCP surface share: a whole daemon with its files, clients of both eras."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from woollama.core.scopes import open_tasks
from woollama.server.app import make_app
from woollama.server.binding import open_binding
from woollama.server.door import behind_door
from woollama.server.lifespan import open_services
from woollama.server.runners import find_runner
from woollama.server.sections import McpSettings, PluginSettings, ServerSettings
from woollama.server.services import Services
from woollama.server.settings import Settings

HERE = Path(__file__).parent
SCRIPTED = HERE.parent / "mcp" / "scripted_server.py"
FIXTURES = HERE / "fixtures.py"

Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
MODERN, LEGACY = "2026-07-28", "2025-11-25"

Files = Mapping[str, str | dict[str, Any]]


def scripted(*flags: str, **more: Any) -> dict[str, Any]:
    """An entry of mcp.json: a server of the older protocol that does what a test wants."""
    return {"command": sys.executable, "args": ["-S", str(SCRIPTED), *flags], **more}


def fixtures(*flags: str, **more: Any) -> dict[str, Any]:
    """An entry of mcp.json: a server of both eras with one tool for each thing there is."""
    return {"command": sys.executable, "args": [str(FIXTURES), *flags], **more}


def servers(**entries: dict[str, Any]) -> dict[str, Any]:
    """An mcp.json."""
    return {"mcpServers": entries}


def write(folder: Path, files: Files) -> None:
    """Puts these files there."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, "utf-8")


class Daemon:
    """A running daemon.

    Attributes:
        url: of its MCP endpoint.
        services: what it works with.
        folder: its configuration.
        stop: ends it in order when it is set.
        ended: set when it has ended.
    """

    def __init__(self, url: str, services: Services, folder: Path, stop: anyio.Event) -> None:
        self.url = url
        self.services = services
        self.folder = folder
        self.stop = stop
        self.ended = anyio.Event()
        self._news = anyio.Event()
        services.tools.on_change(self._hear)

    def _hear(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def connected(self, *names: str) -> None:
        """Waits for these servers."""
        with anyio.fail_after(30):
            while not all(self.services.tools.is_connected(name) for name in names):
                await self._news.wait()


@asynccontextmanager
async def daemon(
    folder: Path,
    files: Files | None = None,
    *,
    token: str | None = None,
    instance_id: str | None = None,
    environ: Mapping[str, str] | None = None,
    patience_s: float = 20.0,
    drain_timeout_s: float = 0.5,
    body_limit_bytes: int = 1 << 20,
    origins: tuple[str, ...] = (),
    kind: Literal["hypercorn", "uvicorn"] = "hypercorn",
) -> AsyncGenerator[Daemon]:
    """A daemon with these files, on a free port of this machine, in this process."""
    write(folder, files or {})
    settings = Settings(
        server=ServerSettings(
            address="127.0.0.1:0",
            uds=False,
            drain_timeout_s=drain_timeout_s,
            body_limit_bytes=body_limit_bytes,
            origins=origins,
        ),
        mcp=McpSettings(patience_s=patience_s),
        plugins=PluginSettings(enabled=()),
        config_dir=folder,
        token=token,
        instance_id=instance_id,
    )
    own = {"WOOLLAMA_CONFIG_DIR": str(folder), "HOME": str(folder), **(environ or {})}
    stop, ready = anyio.Event(), anyio.Event()
    with open_binding(settings, {}) as binding:
        async with open_services(settings, environ=own) as services, open_tasks() as tasks:
            app = behind_door(make_app(services, stop=stop), settings, binding.address)
            running = Daemon(f"http://{binding.address}/mcp", services, folder, stop)

            async def serve() -> None:
                await find_runner(kind)(
                    app, binding, settings.server, on_ready=ready.set, stop=stop
                )
                running.ended.set()

            tasks.start_soon(serve)
            with anyio.fail_after(10):
                await ready.wait()
            yield running
            stop.set()


@asynccontextmanager
async def connected(
    url: str, era: Era = "auto", *, token: str | None = None, **more: Any
) -> AsyncGenerator[Client]:
    """The SDK's client, in one era."""
    headers = {"authorization": f"Bearer {token}"} if token is not None else {}
    timeout = httpx2.Timeout(10, read=60)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, cache=None, **more) as made,
    ):
        with anyio.fail_after(50):
            yield made


class Raw:
    """A client that shows what is on the wire: one request after another, no session needed."""

    def __init__(self, http: httpx2.AsyncClient, url: str, version: str) -> None:
        self._http = http
        self._url = url
        self._version = version
        self._session: dict[str, str] = {}
        self._count = 0
        self.notices: list[dict[str, Any]] = []

    async def open(self, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
        """The handshake, of the older protocol only."""
        params: dict[str, Any] = {
            "protocolVersion": self._version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        response = await self._post(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        )
        self._session = {
            "mcp-session-id": response.headers["mcp-session-id"],
            "mcp-protocol-version": self._version,
        }
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self._answer(response)["result"]

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        capabilities: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One request; the whole answer, result or error."""
        self._count += 1
        params = dict(params or {})
        headers = dict(self._session)
        if self._version == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": capabilities or {},
                **params.get("_meta", {}),
            }
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
            name = params.get("name", params.get("uri"))
            headers |= {"mcp-name": name} if isinstance(name, str) else {}
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        return self._answer(await self._post(message, headers))

    async def call(self, tool: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
        """The result of a call."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments or {}, **more}
        answer = await self.request("tools/call", params)
        assert "result" in answer, answer
        return answer["result"]

    async def _post(
        self, message: dict[str, Any], headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        accept = {"accept": "application/json, text/event-stream"}
        return await self._http.post(
            self._url, json=message, headers={**accept, **(headers or self._session)}
        )

    def _answer(self, response: httpx2.Response) -> dict[str, Any]:
        if "text/event-stream" not in response.headers.get("content-type", ""):
            return response.json()
        lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        found = [json.loads(line) for line in lines if line]
        self.notices = [each for each in found if "id" not in each]
        (answer,) = [each for each in found if "id" in each and "method" not in each]
        return answer


@asynccontextmanager
async def raw(url: str, version: str, *, token: str | None = None) -> AsyncGenerator[Raw]:
    """A raw client; of the older protocol it has done its handshake."""
    headers = {"authorization": f"Bearer {token}"} if token is not None else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        made = Raw(http, url, version)
        if version != MODERN:
            await made.open()
        with anyio.fail_after(50):
            yield made


def text_of(result: types.CallToolResult) -> str:
    """The text of a result's first block."""
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text
