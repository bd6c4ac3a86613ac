"""Recipes over HTTP whose tools belong to real MCP servers, which may die."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.core.scripted import call
from tests.server.mcp.servers import SCRIPT, Watched, gone, opened, scripted
from tests.server.routes.serving import HI, Daemon, frames, serving, text_of_frames
from woollama.core.canonical import Reply, ToolCall, Usage
from woollama.core.providers import Provider
from woollama.core.runs import RunLimits
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import serve
from woollama.server.mcp.entries import StdioServer

RECIPES = """
[recipes.one]
inferencer = "up/m-1"
tools = ["t.echo"]

[recipes.many]
inferencer = "up/m-1"
tools = ["t.barrier", "t.pid", "t.give"]

[recipes.nowhere]
inferencer = "up/m-1"
tools = ["bad.echo"]
"""
ONE = Usage(prompt_tokens=10, completion_tokens=1, total_tokens=11)
DONE = say("Done.", usage=ONE)
ECHOED = '{"word": "x"}\n{"seen":{"word":"x"},"meta":{}}'
# Runs the scripted server unless a file says that it is down.
GATED = """
import os, runpy, sys
gate, script = sys.argv[1:3]
if os.path.exists(gate):
    sys.stderr.write("closed for today\\n")
    sys.exit(3)
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "sk-test-1")


def asks(*calls: ToolCall) -> Reply:
    return say(calls=calls, usage=ONE)


def echo(word: str, number: int = 1) -> ToolCall:
    return call("t__echo", json.dumps({"word": word}), f"call_{number}")


class House:
    """A daemon, its MCP server, and the model's provider."""

    def __init__(self, daemon: Daemon, servers: Watched, fake: CompatibleFake) -> None:
        self.daemon = daemon
        self.servers = servers
        self.fake = fake

    async def ask(self, recipe: str = "one", **fields: Any) -> Any:
        """What a client gets."""
        response = await self.daemon.chat(model=f"woollama/{recipe}", **fields)
        assert 200 == response.status_code, response.text
        return response.json()

    async def told(self, recipe: str = "one") -> list[str]:
        """What the model is told of the calls of one run."""
        body = await self.ask(recipe)
        assert "Done." == body["choices"][0]["message"]["content"]
        return self.results()

    def results(self) -> list[str]:
        messages = self.fake.requests[-1].json()["messages"]
        return [message["content"] for message in messages if message["role"] == "tool"]

    async def health(self) -> dict[str, Any]:
        """The server, as ``GET /w1/tools`` shows it."""
        listed = (await self.daemon.client.get("/w1/tools")).json()
        return listed["servers"][0]


@asynccontextmanager
async def housed(
    folder: Path,
    replies: Iterable[Reply],
    *servers: StdioServer,
    max_turns: int = 8,
    wait: bool = True,
    **limits: Any,
) -> AsyncGenerator[House]:
    recipes = folder / "recipes.toml"
    await anyio.Path(recipes).write_text(RECIPES)
    fake = CompatibleFake(replies)
    async with (
        opened(*(servers or (scripted(),)), wait=wait, **limits) as t,
        serve(fake) as upstream,
        serving(
            Provider("up", upstream.url, api_key_env="UP_KEY"),
            recipes=recipes,
            tools=t.tools,
            limits=RunLimits(max_turns=max_turns),
        ) as daemon,
    ):
        yield House(daemon, t, fake)


async def test_both_modes_answer_once_with_the_usage_of_all_turns(tmp_path: Path) -> None:
    turns = [say("Let me see.", calls=[echo("x")], usage=ONE), DONE]
    async with housed(tmp_path, [*turns, *turns]) as house:
        plain = await house.ask()
        options = {"include_usage": True}
        streamed = await house.daemon.chat(
            model="woollama/one", stream=True, stream_options=options
        )
        found = frames(streamed.content)
        assert "Done." == plain["choices"][0]["message"]["content"] == text_of_frames(found)
        assert 22 == plain["usage"]["total_tokens"] == found[-2]["usage"]["total_tokens"]
        assert b"tool_calls" not in streamed.content
        assert [ECHOED] == house.results()


async def test_a_server_killed_between_two_calls_is_back_for_the_third(tmp_path: Path) -> None:
    gate = tmp_path / "down"
    server = StdioServer(
        name="t", command=sys.executable, args=("-S", "-c", GATED, str(gate), str(SCRIPT))
    )
    turns = [asks(echo("x")), DONE]
    async with housed(tmp_path, turns * 3, server, patience_s=0.2) as house:
        assert [ECHOED] == await house.told()
        assert "connected" == (await house.health())["health"]

        pid = await house.servers.value("pid")
        gate.touch()
        os.kill(pid, signal.SIGKILL)
        await gone(pid)
        with anyio.fail_after(30):
            while "exit code 3" not in (await house.health()).get("reason", ""):
                await anyio.lowlevel.checkpoint()
        (told,) = await house.told()
        assert told.startswith("[tool error] MCP server 't' is not there: it ended with exit code")
        health = await house.health()
        assert "retrying" == health["health"]
        assert "exit code 3" in health["reason"]
        assert "closed for today" in health["stderr"]
        assert 0 < health["tools"]

        gate.unlink()
        await house.servers.connected()
        assert [ECHOED] == await house.told()
        health = await house.health()
        assert "connected" == health["health"]
        assert "exit code 3" in health["last_error"]
        assert pid != await house.servers.value("pid")


async def test_ru_58_four_calls_of_one_turn_are_in_flight_at_once(tmp_path: Path) -> None:
    calls = [call("t__barrier", '{"of": 4}', f"call_{i}") for i in range(4)]
    async with housed(tmp_path, [asks(*calls), DONE]) as house:
        assert ["together"] * 4 == await house.told("many")


async def test_ru_58_one_call_of_each_of_four_requests_is_in_flight_at_once(
    tmp_path: Path,
) -> None:
    turn = asks(call("t__barrier", '{"of": 4}'))
    async with housed(tmp_path, [turn] * 4 + [DONE] * 4) as house:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(house.ask, "many")
        assert ["together"] == house.results()


async def test_p_44_what_a_tool_gave_reaches_the_model_whole(tmp_path: Path) -> None:
    given = {
        "content": [
            {"type": "text", "text": "half"},
            {"type": "audio", "data": "QUJD", "mimeType": "audio/wav"},
        ],
        "structuredContent": {"rows": 3},
        "isError": True,
    }
    turn = asks(call("t__give", json.dumps({"result": given})))
    async with housed(tmp_path, [turn, DONE]) as house:
        (told,) = await house.told("many")
    assert '[tool error] half\n[audio omitted: audio/wav]\n{"rows":3}' == told


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (call("t__pid", "{}"), "ERROR: tool 't__pid' is not permitted; the tools there are: t__ec"),
        (call("t__echo", "[1]"), "ERROR: the arguments of 't__echo' are "),
        (call("t__echo", '{"a'), "ERROR: the arguments of 't__echo' are "),
    ],
)
async def test_a_call_that_may_not_be_is_told_to_the_model_and_not_made(
    tmp_path: Path, made: ToolCall, told: str
) -> None:
    async with housed(tmp_path, [asks(made), DONE]) as house:
        (said,) = await house.told()
        assert said.startswith(told)
        assert 1 == (await house.servers.value("heard")).count("tools/call"), "this one"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_calls_without_end_is_an_error(tmp_path: Path, stream: bool) -> None:
    async with housed(tmp_path, [asks(echo("x"))] * 2, max_turns=2) as house:
        response = await house.daemon.chat(model="woollama/one", stream=stream)
    error = (frames(response.content)[-1] if stream else response.json())["error"]
    assert (200 if stream else 500) == response.status_code
    assert "up/m-1 still calls tools after max turns = 2." == error["message"]
    assert "server_error" == error["type"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_never_came_costs_its_tools_and_both_are_said(
    tmp_path: Path, stream: bool
) -> None:
    dead = StdioServer(name="bad", command="no-such-program-here")
    async with housed(tmp_path, [DONE], dead, wait=False) as house:
        body = {"input": HI, "stream": stream}
        response = await house.daemon.client.post("/w1/patterns/nowhere/run", json=body)
        assert "Done." in response.text
        assert "tools.bad.echo" == response.headers["x-woollama-dropped"]
        assert "tools" not in house.fake.requests[-1].json()
        health = await house.health()
    assert ("retrying", 0) == (health["health"], health["tools"])
    assert health["reason"].startswith("the program 'no-such-program-here' is not there")
