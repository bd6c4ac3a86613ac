"""Servers that nobody starts before a recipe wants one of their tools, and the bundled one."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.architecture.fresh_interpreter import run_fresh
from tests.server.mcp.servers import opened, scripted
from woollama.core.recipes import load_recipes
from woollama.server.bundled import RECIPES
from woollama.server.bundled.servers import BUNDLED, with_bundled
from woollama.server.mcp.config import load_mcp

IDLE = {
    "name": "t",
    "transport": "stdio",
    "health": "idle",
    "tools": 0,
    "attempts": 0,
    "reason": "it starts when a recipe wants one of its tools",
}

DEFAULT_START = """
import json, os, sys
import anyio
from woollama.server.lifespan import open_services
from woollama.server.settings import load_settings

async def main():
    environ = {"WOOLLAMA_CONFIG_DIR": sys.argv[1], "HOME": sys.argv[1]}
    async with open_services(load_settings(environ), environ=environ) as services:
        return services.tools.listing()["servers"]

servers = anyio.run(main)
loaded = [name for name in ("mcp", "mcp_types", "pydantic") if name in sys.modules]
print(json.dumps([[(each["name"], each["health"]) for each in servers], loaded]))
"""


def test_ru_60_a_start_without_files_pays_nothing_for_the_bundled_server(tmp_path: Path) -> None:
    assert [[["clock", "idle"]], []] == run_fresh(DEFAULT_START, str(tmp_path))


async def test_a_server_on_demand_starts_when_one_of_its_tools_is_wanted() -> None:
    async with opened(scripted(on_demand=True), wait=False) as t:
        await t.tools.prepare(["tt.pid", "other.pid"])
        assert [IDLE] == t.tools.listing()["servers"]
        assert [] == t.tools.tools_for(["t.pid"])

        await t.tools.prepare(["t.pid"])

        assert t.tools.is_connected("t")
        assert ["t.pid"] == [spec.own_name for spec in t.tools.tools_for(["t.pid"])]


async def test_runs_at_the_same_time_start_it_once() -> None:
    pids: list[int] = []
    async with (
        opened(scripted(on_demand=True), wait=False) as t,
        anyio.create_task_group() as tasks,
    ):

        async def run() -> None:
            await t.tools.prepare(["t.pid"])
            pids.append(await t.value("pid"))

        for _ in range(3):
            tasks.start_soon(run)
    assert 3 == len(pids)
    assert 1 == len(set(pids))


async def test_a_call_of_one_of_its_tools_starts_it_too() -> None:
    async with opened(scripted(on_demand=True), wait=False) as t:
        assert isinstance(await t.value("pid"), int)


async def test_one_that_was_never_started_is_not_waited_for_at_the_end() -> None:
    with anyio.fail_after(1):
        async with opened(scripted(on_demand=True), wait=False, stop_timeout_s=30):
            pass


@pytest.mark.parametrize(
    ("entry", "names", "is_bundled"),
    [
        (None, ["clock"], True),
        ({"other": {"command": "x"}}, ["other", "clock"], True),
        ({"clock": {"command": "x"}}, ["clock"], False),
        ({"clock": {"command": "x", "disabled": True}}, [], False),
        ({"clock": {"url": "nowhere"}}, [], False),
    ],
)
def test_an_entry_of_its_name_stands_in_for_the_bundled_server(
    tmp_path: Path, entry: Any, names: list[str], is_bundled: bool
) -> None:
    path = tmp_path / "mcp.json"
    if entry is not None:
        path.write_text(json.dumps({"mcpServers": entry}))
    config = with_bundled(load_mcp({}, path))
    assert names == [server.name for server in config.servers]
    assert is_bundled == (BUNDLED[0] in config.servers)


def test_the_bundled_server_is_not_passed_on_over_mcp(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    assert not with_bundled(load_mcp({}, path)).exports.has("clock")
    path.write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    exports = with_bundled(load_mcp({}, path)).exports
    assert (True, False) == (exports.has("mine"), exports.has("clock"))
    path.write_text('{"mcpServers": {"clock": {"command": "x"}}}')
    assert with_bundled(load_mcp({}, path)).exports.has("clock")


async def test_every_tool_of_a_bundled_recipe_is_one_of_a_bundled_server() -> None:
    recipes = load_recipes(RECIPES).recipes.values()
    wanted = {tool for recipe in recipes for tool in recipe.get("tools") or ()}
    async with opened(*BUNDLED, wait=False) as t:
        await t.tools.prepare(wanted)
        assert wanted
        assert wanted <= set(t.names())


def test_the_bundled_server_is_not_looked_for_in_the_working_directory() -> None:
    """P-6."""
    (server,) = BUNDLED
    assert (sys.executable, "-P") == (server.command, server.args[0])
