"""Clients that stay connected see what changes: tools, prompts, resources, in both eras."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp_types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)

from tests.server.mcp_surface.rig import (
    ERAS,
    Daemon,
    Era,
    connected,
    daemon,
    fixtures,
    scripted,
    servers,
    write,
)
from woollama.core.scopes import open_tasks
from woollama.server.mcp import surface_notices
from woollama.server.mcp.surface_tools import ExportedTools
from woollama.server.routes.mcp import sources_of

KINDS = {
    "tools": ToolListChangedNotification,
    "prompts": PromptListChangedNotification,
    "resources": ResourceListChangedNotification,
}
RECIPE = '[recipes.{name}]\ninferencer = "up/m"\nsystem = "S"\n'


class Ears:
    """What a client has heard, and a way to wait for it."""

    def __init__(self) -> None:
        self._heard: dict[str, anyio.Event] = {}
        self.forget()

    def forget(self) -> None:
        self._heard = {kind: anyio.Event() for kind in KINDS}

    def hear(self, kind: str) -> None:
        self._heard[kind].set()

    def heard(self, kind: str) -> bool:
        return self._heard[kind].is_set()

    async def wait(self, kind: str) -> None:
        with anyio.fail_after(20):
            await self._heard[kind].wait()

    async def message(self, message: Any) -> None:
        for kind, notification in KINDS.items():
            if isinstance(message, notification):
                self.hear(kind)


@asynccontextmanager
async def listening(running: Daemon, era: Era) -> AsyncGenerator[tuple[Client, Ears]]:
    ears = Ears()
    async with connected(running.url, era, message_handler=ears.message) as client:
        if era == "legacy":
            yield client, ears
            return
        async with (
            client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as subscription,
            open_tasks() as tasks,
        ):

            async def hear() -> None:
                async for event in subscription:
                    word = type(event).__name__
                    ears.hear(word.removesuffix("ListChanged").lower())

            tasks.start_soon(hear)
            yield client, ears
            tasks.cancel_scope.cancel()


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def until(client: Client, ears: Ears, met: Callable[[set[str]], bool]) -> set[str]:
    """The names of the tools when they are as wanted; looked at only when there is news."""
    while not met(found := await names(client)):
        await ears.wait("tools")
        ears.forget()
    return found


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_grows_is_seen(tmp_path: Path, era: Era) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with daemon(tmp_path, files) as running, listening(running, era) as (client, ears):
        assert "t__late" not in await until(client, ears, lambda found: "t__grow" in found)
        await client.call_tool("t__grow", {"name": "late"})
        await until(client, ears, lambda found: "t__late" in found)
        assert not ears.heard("prompts")


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_comes_is_seen(tmp_path: Path, era: Era) -> None:
    """It is tried again and again; when it is there at last, clients hear of it."""
    program = tmp_path / "server"
    files = {"mcp.json": servers(t={"command": str(program)})}
    async with (
        daemon(tmp_path, files, patience_s=0.01) as running,
        listening(running, era) as (client, ears),
    ):
        assert {"chat"} == await names(client)
        entry = scripted()
        words = " ".join([entry["command"], *entry["args"]])
        write(tmp_path, {"server.new": f"#!/bin/sh\nexec {words}\n"})
        await anyio.Path(tmp_path / "server.new").chmod(0o755)
        await anyio.Path(tmp_path / "server.new").rename(program)
        await until(client, ears, lambda found: "t__pid" in found)


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_falls_and_comes_back_with_others_is_seen(
    tmp_path: Path, era: Era
) -> None:
    def tools(*given: str) -> dict[str, str]:
        return {"tools.json": json.dumps([{"name": name, "inputSchema": {}} for name in given])}

    entry = scripted("--tools", str(tmp_path / "tools.json"))
    files = {"mcp.json": servers(t=entry), **tools("die", "a")}
    async with daemon(tmp_path, files) as running, listening(running, era) as (client, ears):
        await until(client, ears, lambda found: found == {"chat", "t__die", "t__a"})
        write(tmp_path, tools("b"))
        await client.call_tool("t__die", {})
        await until(client, ears, lambda found: found == {"chat", "t__b"})


async def test_a_server_that_comes_back_as_it_was_is_no_news(tmp_path: Path) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with daemon(tmp_path, files) as running, connected(running.url) as client:
        await running.connected("t")
        exported = ExportedTools(sources_of(running.services), taken=("chat",))
        before = exported.state()
        await client.call_tool("t__die")
        assert before is exported.state()
        await running.connected("t")
        await client.call_tool("t__pid")
        assert before is exported.state()
        await client.call_tool("t__grow", {"name": "late"})
        with anyio.fail_after(20):
            while "t__late" not in exported.names():
                await client.call_tool("t__pid")
        assert before is not exported.state()


@pytest.mark.parametrize("era", ERAS)
async def test_an_edited_recipe_is_seen(
    tmp_path: Path, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surface_notices, "LOOK_S", 0.01)
    files = {"recipes.toml": RECIPE.format(name="one")}
    async with daemon(tmp_path, files) as running, listening(running, era) as (client, ears):
        assert ["one"] == [prompt.name for prompt in (await client.list_prompts()).prompts]
        write(tmp_path, {"recipes.toml": RECIPE.format(name="one") + RECIPE.format(name="two")})
        await ears.wait("prompts")
        assert ["one", "two"] == [prompt.name for prompt in (await client.list_prompts()).prompts]


@pytest.mark.parametrize("era", ERAS)
async def test_resources_that_come_are_seen(tmp_path: Path, era: Era) -> None:
    files = {"mcp.json": servers(t=fixtures())}
    async with daemon(tmp_path, files) as running, listening(running, era) as (client, ears):
        await ears.wait("resources")
        assert 2 == len((await client.list_resources()).resources)


async def test_a_client_that_left_is_forgotten(tmp_path: Path) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with daemon(tmp_path, files) as running:
        async with listening(running, "legacy") as (client, _):
            await names(client)
        async with listening(running, "legacy") as (client, ears):
            await client.call_tool("t__grow", {"name": "late"})
            await until(client, ears, lambda found: "t__late" in found)


def test_patterns_are_not_looked_at_all_the_time() -> None:
    assert surface_notices.LOOK_S >= 1
