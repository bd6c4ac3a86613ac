"""MCP servers at an address, of both eras of the protocol: server/mcp/ over Streamable HTTP."""

import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.server.mcp.http_server import Site, served
from tests.server.mcp.servers import opened, text_of
from woollama.server.mcp.entries import HttpServer, Protocol

ERAS: list[Protocol] = ["modern", "legacy"]
VERSIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Protocol:
    return request.param


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def url(site: Site) -> AsyncGenerator[str]:
    async with served(site) as url:
        yield url


def at(url: str, mode: Protocol = "auto", **more: Any) -> HttpServer:
    return HttpServer(name="t", url=url, mode=mode, **more)


async def test_a_tool_is_called_in_both_eras(url: str, era: Protocol) -> None:
    async with opened(at(url, era)) as t:
        assert VERSIONS[era] == t.health().protocol
        assert "http" == t.health().transport
        raw = await t.tools.call("t.echo", {"n": None})
        # Fields that nobody knows and nulls are kept.
        assert {"n": None} == raw["structuredContent"]["arguments"]
        assert raw["unknown"] is None
        assert raw["structuredContent"]["novel"] is None


async def test_the_newer_era_is_taken_when_both_are_spoken(url: str) -> None:
    async with opened(at(url)) as t:
        assert "2026-07-28" == t.health().protocol


async def test_headers_and_our_id_go_with_every_request(site: Site, url: str) -> None:
    site.token = "s3cret-token"
    headers = {"Authorization": "Bearer s3cret-token", "X-Own": "1"}
    async with opened(at(url, headers=headers)) as t:
        await t.tools.call("t.echo", {})
    assert {("1", "me-0000", "woollama")} == {
        (each["x-own"], each["x-woollama-instance"], each["user-agent"]) for each in site.headers
    }


async def test_a_wrong_token_is_told_and_nothing_of_it_is_shown(site: Site, url: str) -> None:
    site.token = "right"
    server = at(url, headers={"Authorization": "Bearer wr0ng-token"}, secrets=("wr0ng-token",))
    async with opened(server, wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert "retrying" == t.health().health
        assert "it refused us (HTTP 401); check the 'headers'" in (t.health().reason or "")
        assert "wr0ng-token" not in str(t.tools.listing())
        site.token = "wr0ng-token"
        await t.connected()


async def test_a_status_that_says_nothing_of_mcp_is_told(site: Site, url: str) -> None:
    site.refuse = 503
    async with opened(at(url), wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert "HTTP 503: refused here" == t.health().reason


async def test_a_server_that_comes_late_is_found(era: Protocol) -> None:
    site = Site()
    async with served(site) as url:
        pass
    port = int(url.rpartition(":")[2].partition("/")[0])
    async with opened(at(url, era), wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert "it cannot be reached" in (t.health().reason or "")
        with own_process(port):
            await t.connected()


async def test_ru_58_four_calls_are_in_flight_at_once(url: str, era: Protocol) -> None:
    async with opened(at(url, era)) as t, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(t.call, "barrier")


async def test_a_call_that_hangs_keeps_nobody_waiting(site: Site, url: str, era: Protocol) -> None:
    async with opened(at(url, era)) as t, anyio.create_task_group() as tasks:
        for _ in range(150):
            tasks.start_soon(t.call, "hang")
        await site.hanging.wait()
        result = await t.call("echo", a=1)
        assert {"a": 1} == result.structured["arguments"]
        tasks.cancel_scope.cancel()


async def test_a_caller_that_leaves_stops_the_tool(site: Site, url: str, era: Protocol) -> None:
    async with opened(at(url, era)) as t:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(t.call, "hang")
            await site.hanging.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await site.cancelled.wait()


async def test_progress_is_passed_up(url: str, era: Protocol) -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    both = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))
        if len(seen) == 2:
            both.set()

    async with opened(at(url, era)) as t:
        await t.tools.call("t.steps", {}, on_progress=note)
        with anyio.fail_after(5):
            await both.wait()
    assert [(1, 2, "half"), (2, 2, "whole")] == seen


async def test_tools_that_come_later_are_offered(site: Site, url: str, era: Protocol) -> None:
    async with opened(at(url, era)) as t:
        # The stream for notices is opened behind the connection.
        with anyio.fail_after(10):
            while {"subscriptions/listen", "GET"}.isdisjoint(site.methods):
                await anyio.lowlevel.checkpoint()
        await t.call("grow")
        await t.until(lambda: "t.late" in t.names())


async def test_a_server_that_announces_nothing_is_asked_again_and_again() -> None:
    site = Site(announces=False)
    async with served(site) as url, opened(at(url), ping_interval_s=0.05) as t:
        site.tools.append({"name": "late", "inputSchema": {"type": "object"}})
        await t.until(lambda: "t.late" in t.names())


async def test_a_call_that_broke_off_is_an_error_unless_it_may_be_repeated(
    site: Site, url: str, era: Protocol
) -> None:
    async with opened(at(url, era)) as t:
        site.hang_up = 1
        result = await t.call("echo")
        assert result.is_error
        assert 1 == site.calls
        site.hang_up = 1
        result = await t.call("look")
        assert not result.is_error, text_of(result)
        assert 3 == site.calls
        assert "connected" == t.health().health


async def test_a_server_that_is_ourselves_is_refused(site: Site, url: str) -> None:
    """RU-54."""
    site.stamp = "me-0000"
    async with opened(at(url), wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert "failed" == t.health().health
        assert "a loop" in (t.health().reason or "")


async def test_tools_that_came_through_us_are_left_out(site: Site, url: str) -> None:
    """RU-54: the second woollama in a circle of two."""
    trail = {"woollama/instance": ["other", "me-0000"]}
    site.tools.append({"name": "mine", "inputSchema": {"type": "object"}, "_meta": trail})
    async with opened(at(url)) as t:
        assert "t.mine" not in t.names()
        assert "our own" in t.health().left_out["mine"]
        assert "t.echo" in t.names()


@contextmanager
def own_process(port: int = 0) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """The same server in a process that can be killed."""
    script = Path(__file__).with_name("http_server.py")
    with subprocess.Popen(
        [sys.executable, script, str(port)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield process, f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


async def test_a_killed_server_is_noticed_and_taken_again(era: Protocol) -> None:
    with own_process() as (process, url):
        port = int(url.rpartition(":")[2].partition("/")[0])
        async with opened(at(url, era), ping_interval_s=0.2) as t:
            first = (await t.call("pid")).structured["pid"]
            process.send_signal(signal.SIGKILL)
            process.wait()
            await t.until(lambda: not t.tools.is_connected("t"))
            assert "retrying" == t.health().health
            with own_process(port):
                # Not repeatable, and it was never sent: it waits and goes through.
                result = await t.call("pid")
                assert first != result.structured["pid"]
                await t.connected()


async def test_a_server_that_forgot_our_session_is_greeted_anew() -> None:
    """The older era only: its sessions do not survive the server."""
    with own_process() as (process, url):
        port = int(url.rpartition(":")[2].partition("/")[0])
        async with opened(at(url, "legacy")) as t:
            first = (await t.call("pid")).structured["pid"]
            process.send_signal(signal.SIGKILL)
            process.wait()
            with own_process(port):
                # It was down and up again before anybody looked.
                result = await t.call("pid")
                assert first != result.structured["pid"]


async def test_leaving_says_goodbye_to_a_session(site: Site, url: str) -> None:
    async with opened(at(url, "legacy")) as t:
        await t.call("echo")
    assert "DELETE" in site.methods


def marked(mark: Any) -> dict[str, Any]:
    region = {"type": "string", "x-mcp-header": mark}
    return {"type": "object", "properties": {"region": region}}


async def test_arguments_that_are_wanted_as_headers_are_sent_as_such(site: Site, url: str) -> None:
    site.tools.append({"name": "near", "inputSchema": marked("Region")})
    async with opened(at(url)) as t:
        result = await t.call("near", region="eu")
        assert not result.is_error, text_of(result)
        assert "eu" in [headers.get("mcp-param-region") for headers in site.headers]


async def test_a_tool_whose_wishes_changed_unannounced_is_looked_at_again() -> None:
    site = Site(announces=False)
    near: dict[str, Any] = {"name": "near", "inputSchema": {"type": "object"}}
    site.tools.append(near)
    async with served(site) as url, opened(at(url)) as t:
        near["inputSchema"] = marked("Region")
        result = await t.call("near", region="eu")
        assert not result.is_error, text_of(result)


@pytest.mark.parametrize("mark", ["not a header", 5])
async def test_a_tool_with_a_wish_that_cannot_be_met_is_left_out(
    site: Site, url: str, mark: Any
) -> None:
    site.tools.append({"name": "odd", "inputSchema": marked(mark)})
    async with opened(at(url)) as t:
        assert "t.odd" not in t.names()
        assert "its x-mcp-header marks are not valid" == t.health().left_out["odd"]
        assert "t.echo" in t.names()


async def test_a_subscription_that_ends_is_taken_again(site: Site, url: str) -> None:
    async with opened(at(url)):
        with anyio.fail_after(10):
            while "subscriptions/listen" not in site.methods:
                await anyio.lowlevel.checkpoint()
            assert site.listen is not None
            site.listen.close()
            while site.methods.count("subscriptions/listen") < 2:
                await anyio.lowlevel.checkpoint()
