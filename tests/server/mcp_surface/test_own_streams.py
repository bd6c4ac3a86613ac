"""`woollama mcp` as a process: only messages on its stdout, and it goes when it is told."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.server.mcp.servers import gone
from tests.server.mcp_surface.rig import LEGACY, Files, scripted, servers, write

GREETING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SERVE = (sys.executable, "-P", "-m", "woollama.server", "mcp")


class Child:
    """The process, and what is said to it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)

    async def say(self, *messages: dict[str, Any] | bytes) -> None:
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            await self._stdin.send(data)

    async def hear(self) -> dict[str, Any]:
        """The next message; a line that is none is a failure."""
        with anyio.fail_after(40):
            return json.loads(await self._stdout.receive_until(b"\n", 1 << 26))

    async def answer(self, number: int) -> dict[str, Any]:
        while (message := await self.hear()).get("id") != number:
            pass
        return message

    async def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        await self.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        return (await self.answer(number))["result"]

    async def close(self) -> None:
        await self._stdin.aclose()

    async def ended(self) -> int:
        with anyio.fail_after(20):
            return await self.process.wait()


@asynccontextmanager
async def child(folder: Path, files: Files | None = None) -> AsyncGenerator[Child]:
    write(folder, files or {})
    kept = ("PATH", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
    own = {key: os.environ[key] for key in kept if key in os.environ}
    env = {**own, "WOOLLAMA_CONFIG_DIR": str(folder), "HOME": str(folder)}
    process = await anyio.open_process(SERVE, env=env, cwd=folder)
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def test_it_ends_when_its_client_closes(tmp_path: Path) -> None:
    async with child(tmp_path) as running:
        await running.say(GREETING)
        hello = await running.answer(1)
        assert "woollama" == hello["result"]["serverInfo"]["name"]
        await running.close()
        assert 0 == await running.ended()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_goes_when_it_is_told_and_takes_its_servers_along(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Its stdin stays open, and a call is under way."""
    async with child(tmp_path, {"mcp.json": servers(t=scripted())}) as running:
        await running.say(GREETING, READY)
        await running.answer(1)
        pid = int((await running.call(2, "t__pid"))["content"][0]["text"])
        hang: dict[str, Any] = {"name": "t__hang", "arguments": {}}
        await running.say({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": hang})
        running.process.send_signal(number)
        assert 0 == await running.ended()
        await gone(pid)


async def test_what_is_no_message_costs_nothing(tmp_path: Path) -> None:
    async with child(tmp_path) as running:
        await running.say(b"\n", b"junk\n", b"\xff\xfe\n", b'{"a": 1}\n', GREETING, READY)
        await running.answer(1)
        await running.say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert {} == (await running.answer(2))["result"]


async def test_a_message_may_come_in_pieces_and_be_long(tmp_path: Path) -> None:
    async with child(tmp_path, {"mcp.json": servers(t=scripted())}) as running:
        await running.say(GREETING, READY)
        await running.answer(1)
        long = "ä" * 1_500_000
        params = {"name": "t__echo", "arguments": {"long": long}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        data = json.dumps(message).encode() + b"\n"
        for start in range(0, len(data), 700_001):
            await running.say(data[start : start + 700_001])
        result = (await running.answer(2))["result"]
        assert long == result["structuredContent"]["seen"]["long"]


async def test_a_last_message_needs_no_end_of_line(tmp_path: Path) -> None:
    async with child(tmp_path) as running:
        await running.say(json.dumps(GREETING).encode())
        await running.close()
        assert 0 == await running.ended()


async def test_a_file_may_be_its_input(tmp_path: Path) -> None:
    write(tmp_path, {"in.jsonl": json.dumps(GREETING) + "\n"})
    env = {"PATH": os.environ["PATH"], "WOOLLAMA_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    with (tmp_path / "in.jsonl").open("rb") as given:
        done = await anyio.run_process(SERVE, stdin=given, env=env, check=False)
    assert 0 == done.returncode, done.stderr
    for line in done.stdout.splitlines():
        assert "2.0" == json.loads(line)["jsonrpc"]


def listening_sockets(pid: int) -> set[str]:
    """The sockets of a process that listen for connections."""
    process = Path("/proc", str(pid))
    held = {str(each.readlink()) for each in (process / "fd").iterdir()}
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in (process / "net" / name).read_text().splitlines()[1:]
    ]
    return held & {f"socket:[{fields[9]}]" for fields in lines if fields[3] == "0A"}


async def test_ru_55_nothing_is_listened_on(tmp_path: Path) -> None:
    async with child(tmp_path) as running:
        await running.say(GREETING)
        await running.answer(1)
        assert set() == listening_sockets(running.process.pid)


async def test_what_was_asked_before_the_end_is_answered(tmp_path: Path) -> None:
    async with child(tmp_path) as running:
        await running.say(GREETING)
        await running.close()
        assert "woollama" == (await running.answer(1))["result"]["serverInfo"]["name"]
        assert 0 == await running.ended()
