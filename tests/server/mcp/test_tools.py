"""The listing of tools, the bundled example, and what is loaded when: server/mcp/tools.py."""

import logging
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.applications import Starlette

from tests.architecture.fresh_interpreter import run_fresh
from tests.server.mcp.servers import opened, scripted
from woollama.core.tools import ToolProvider
from woollama.server.mcp.config import McpConfig
from woollama.server.mcp.entries import Protocol, StdioServer
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.roster import Roster, read_roster
from woollama.server.mcp.tools import McpTools, open_mcp_tools
from woollama.server.routes.tools import tools_routes

CLOCK = StdioServer(name="t", command=sys.executable, args=("-m", "woollama.server.examples.clock"))

WITHOUT_SERVERS = """
import json, sys
import anyio
from woollama.core.tools import ToolProvider
from woollama.server.mcp.config import load_mcp
from woollama.server.mcp.tools import open_mcp_tools
import woollama.server.routes.tools

async def main():
    config = load_mcp({"WOOLLAMA_CONFIG_DIR": sys.argv[1]})
    async with open_mcp_tools(config, instance_id="me") as tools:
        await tools.prepare(["t.x"])
        assert tools.tools_for(["t.x"]) == []

anyio.run(main)
print(json.dumps([name for name in ("mcp", "mcp_types", "pydantic") if name in sys.modules]))
"""


async def listing(tools: McpTools) -> dict[str, Any]:
    app = Starlette(routes=tools_routes(tools))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        response = await client.get("http://h/w1/tools")
    assert 200 == response.status_code
    assert "application/json" == response.headers["content-type"]
    return response.json()


def test_ru_60_without_a_server_nothing_of_the_sdk_is_loaded(tmp_path: Path) -> None:
    assert [] == run_fresh(WITHOUT_SERVERS, str(tmp_path))


async def test_ru_49_every_tool_is_listed_with_its_server_and_every_server_with_its_health() -> (
    None
):
    bad = StdioServer(name="bad", command="no-such-program-here")
    async with opened(scripted("--noise"), bad) as t:
        provider: ToolProvider = t.tools
        assert provider is t.tools
        await t.tools.prepare(["bad.x"])
        body = await listing(t.tools)
        assert "list" == body["object"]
        assert t.names() == body["tools"]
        assert {
            "object": "tool",
            "id": "t.pid",
            "name": "t__pid",
            "server": "t",
            "tool": "pid",
            "description": "",
            "input_schema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": True},
        } == body["data"][1]
        first, second = body["servers"]
        assert "Server v1.2" in first.pop("stderr")
        assert {
            "name": "t",
            "transport": "stdio",
            "health": "connected",
            "tools": len(t.names()),
            "attempts": 0,
            "protocol": "2025-11-25",
        } == first
        assert 1 <= second.pop("attempts")
        reason = "the program 'no-such-program-here' is not there; install it, or give its path"
        assert second.pop("last_error").startswith(reason)
        assert second.pop("reason").startswith(reason)
        assert {
            "name": "bad",
            "transport": "stdio",
            "health": "retrying",
            "tools": 0,
        } == second


async def test_wrong_entries_are_listed_and_logged_by_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = McpConfig(skipped={"t": "url: is no address"})
    with caplog.at_level(logging.WARNING):
        async with open_mcp_tools(config, instance_id="me") as tools:
            body = await listing(tools)
    assert [
        {
            "name": "t",
            "transport": None,
            "health": "failed",
            "tools": 0,
            "attempts": 0,
            "reason": "url: is no address",
        }
    ] == body["servers"]
    assert ["mcp.json: server 't' is left out: url: is no address"] == caplog.messages


async def test_listeners_hear_of_tools_until_they_are_taken_off() -> None:
    heard: list[str] = []
    async with opened(scripted()) as t:
        off = t.tools.on_change(lambda: heard.append("x"))
        await t.call("grow", name="late")
        await t.until(lambda: "t.late" in t.names())
        assert ["x"] == heard
        off()
        await t.call("grow", name="later")
        await t.until(lambda: "t.later" in t.names())
        assert ["x"] == heard


@pytest.mark.parametrize(("era", "version"), [("modern", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_bundled_example_works_as_it_is_installed(era: Protocol, version: str) -> None:
    async with opened(msgspec.structs.replace(CLOCK, mode=era)) as t:
        assert ["t.current_time", "t.calculate", "t.count_words"] == t.names()
        assert version == t.health().protocol
        assert all(tool.spec.annotations["readOnlyHint"] for tool in t.tools.offered())
        assert all(tool.spec.schema["function"]["description"] for tool in t.tools.offered())
        assert "UTC" in (await t.call("current_time")).structured["result"]
        assert (
            20 == (await t.call("calculate", expression="(2 + 3) * -4 / -1")).structured["result"]
        )
        counts = (await t.call("count_words", text="a b\nc")).structured
        assert {"words": 3, "lines": 2, "characters": 5} == counts
        for wrong in ("2 ** 9", "__import__('os')", "1 / 0", "(" * 150, "1" * 300, "True"):
            assert (await t.call("calculate", expression=wrong)).is_error
        assert (await t.call("current_time", timezone="No/Where")).is_error


def test_waits_double_up_to_a_limit_and_the_first_try_again_is_immediate() -> None:
    limits = McpLimits()
    waits = [limits.delay_s(falls) for falls in (1, 2, 3, 4, 8, 9, 1000)]
    assert [0, 1, 2, 4, 60, 60, 60] == waits


def test_tools_are_sorted_out_one_by_one() -> None:
    odd = [
        {"name": "a", "inputSchema": {}, "_meta": {"woollama/instance": ["other"]}},
        {"name": "b", "_meta": {"woollama/instance": ["other", "me"]}},
        {"name": "c"},
        {"name": "d"},
    ]
    roster = read_roster(odd, instance_id="me", only={"a", "b", "c"}, unsendable={"c"})
    assert (
        Roster(
            tools={"a": odd[0]},
            left_out={
                "b": "it is our own, coming back through another woollama",
                "c": "its x-mcp-header marks are not valid",
                "d": "it is not among the 'tools' of the entry in mcp.json",
            },
        )
        == roster
    )
