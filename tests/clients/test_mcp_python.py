"""The Python SDK's client, unmodified, against the real woollama: both eras, HTTP and stdio."""

import json
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp_types import TextContent

from tests.clients.running import RunningDaemon, running_daemon
from tests.docs.blocks import blocks_of
from woollama.core.scopes import open_tasks
from woollama.core.testing.upstream import Exchange, Upstream, chunked, head, serve_in_thread

pytestmark = pytest.mark.clients

RECIPES = """
[recipes.translator]
inferencer = "up/stream"
system = "Translate into {{language}} for {{who}}."
description = "Translates."
[recipes.translator.variables.language]
default = "English"
choices = ["English", "Spanish"]
"""
CLOCK = {"command": sys.executable, "args": ["-P", "-m", "woollama.server.examples.clock"]}
WAYS = [(way, era) for way in ("http", "stdio") for era in ("auto", "legacy")]


def event(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return b"data: " + json.dumps({**body, "choices": choices, **fields}).encode() + b"\n\n"


async def script(exchange: Exchange) -> None:
    """Streams an answer, or begins one that never ends."""
    body: dict[str, Any] = exchange.request.json() or {}
    headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    if body.get("model") == "endless":
        await exchange.send(head(200, headers) + chunked([event({"content": "a"})], end=False))
        await exchange.gone.wait()
        return
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    pieces = [event({"role": "assistant", "content": "Hola"}), event({"content": " mundo"})]
    pieces += [event({}, "stop", usage=usage), b"data: [DONE]\n\n"]
    await exchange.send(head(200, headers) + chunked(pieces))


@pytest.fixture(scope="module")
def upstream() -> Generator[Upstream]:
    with serve_in_thread(script) as running:
        yield running


@pytest.fixture(scope="module")
def files(upstream: Upstream) -> dict[str, str]:
    provider = f'[inferencers.up]\nbase_url = "{upstream.url}"\napi_key_env = ""\n'
    return {
        "inferencers.toml": provider + 'models = ["stream", "endless"]\n',
        "recipes.toml": RECIPES,
        "mcp.json": json.dumps({"mcpServers": {"clock": CLOCK}}),
    }


@pytest.fixture(scope="module")
def daemon(
    files: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Generator[RunningDaemon]:
    folder = tmp_path_factory.mktemp("daemon")
    with running_daemon(folder, files=files, environ={}) as running:
        yield running


@pytest.fixture(params=WAYS, ids=["-".join(way) for way in WAYS])
def way(request: pytest.FixtureRequest) -> tuple[str, Any]:
    return request.param


@asynccontextmanager
async def connected(
    way: tuple[str, Any], daemon: RunningDaemon, files: dict[str, str], folder: Path
) -> AsyncGenerator[Client]:
    """A client as its documentation has it: an address, or a program to start."""
    kind, era = way
    if kind == "http":
        async with Client(f"{daemon.url}/mcp", mode=era) as client:
            yield client
        return
    for name, text in files.items():
        await anyio.Path(folder / name).write_text(text)
    program = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "woollama.server", "mcp"],
        env={"WOOLLAMA_CONFIG_DIR": str(folder), "HOME": str(folder)},
    )
    async with Client(stdio_client(program), mode=era) as client:
        yield client


def text_in(block: Any) -> str:
    assert isinstance(block, TextContent)
    return block.text


async def test_it_lists_calls_prompts_and_chats(
    way: tuple[str, Any], daemon: RunningDaemon, files: dict[str, str], tmp_path: Path
) -> None:
    pieces: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        pieces.append(message or "")

    with anyio.fail_after(60):
        async with connected(way, daemon, files, tmp_path) as client:
            assert ("2026-07-28" if way[1] == "auto" else "2025-11-25") == client.protocol_version

            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert {"chat", "clock__calculate", "clock__current_time"} <= set(tools)
            result = await client.call_tool("clock__calculate", {"expression": "6*7"})
            assert "42" == text_in(result.content[0])
            assert {"result": 42.0} == result.structured_content

            (prompt,) = (await client.list_prompts()).prompts
            assert ("translator", "Translates.") == (prompt.name, prompt.description)
            filled = await client.get_prompt("translator", {"language": "Spanish", "who": "Al"})
            assert "Translate into Spanish for Al." == text_in(filled.messages[0].content)
            bare = await client.get_prompt("translator")
            assert "Translate into English for {{who}}." == text_in(bare.messages[0].content)

            assert [] == (await client.list_resources()).resources

            asked = {"recipe": "translator", "prompt": "hello", "variables": {"who": "Al"}}
            answer = await client.call_tool("chat", asked, progress_callback=hear)
            assert "Hola mundo" == text_in(answer.content[0]) == "".join(pieces)
            assert answer.structured_content is not None
            assert 5 == answer.structured_content["usage"]["total_tokens"]


async def test_a_chat_that_is_cancelled_ends_at_the_provider(
    way: tuple[str, Any],
    daemon: RunningDaemon,
    files: dict[str, str],
    tmp_path: Path,
    upstream: Upstream,
) -> None:
    begun = anyio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async def ask(client: Client) -> None:
        asked = {"model": "up/endless", "prompt": "hello"}
        await client.call_tool("chat", asked, progress_callback=hear)

    with anyio.fail_after(60):
        async with connected(way, daemon, files, tmp_path) as client:
            async with open_tasks() as tasks:
                tasks.start_soon(ask, client)
                await begun.wait()
                tasks.cancel_scope.cancel()
            exchange = upstream.exchanges[-1]
            assert "endless" == exchange.request.json()["model"]
            while not exchange.gone.is_set():
                await anyio.lowlevel.checkpoint()
            # The connection goes on.
            assert (await client.list_tools()).tools


async def test_the_snippet_of_the_documentation_works(
    files: dict[str, str], tmp_path: Path
) -> None:
    """As a desktop client starts it: the entry of its configuration file, its program on PATH."""
    snippet = next(
        json.loads(block.text)
        for block in blocks_of("docs/howto/mcp.md")
        if block.title == "claude_desktop_config.json"
    )
    entry = snippet["mcpServers"]["woollama"]
    for name, text in files.items():
        await anyio.Path(tmp_path / name).write_text(text)
    program = StdioServerParameters(
        command=str(Path(sys.executable).with_name(entry["command"])),
        args=entry["args"],
        env={"WOOLLAMA_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path), **entry.get("env", {})},
    )
    with anyio.fail_after(60):
        async with Client(stdio_client(program), mode="legacy") as client:
            assert client.server_info is not None
            assert "woollama" == client.server_info.name
            assert "chat" in [tool.name for tool in (await client.list_tools()).tools]
