"""What nobody foresaw about one MCP server is that server's fault alone: server/mcp/peer.py."""

import logging
from collections.abc import Callable

import anyio
import pytest

from tests.server.mcp.servers import opened, scripted
from woollama.core.errors import ToolError

SECRET = "what-a-person-wrote"

Raise = Callable[[], None]


def raise_one() -> None:
    raise KeyError(SECRET)


def raise_group() -> None:
    raise ExceptionGroup(SECRET, [ExceptionGroup(SECRET, [KeyError(SECRET)])])


def lines_of(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == level]


async def test_an_exception_out_of_the_layers_below_is_that_servers_fault_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    # No program can be started with this, and what Python raises then is no OSError.
    odd = scripted(f"{SECRET}\0", name="odd")
    async with opened(scripted(), odd) as t:
        with anyio.fail_after(30):
            while t.health("odd").attempts < 3:
                await t.tools.peers()[1].settled()
                await anyio.lowlevel.checkpoint()
        health = t.health("odd")
        assert "retrying" == health.health
        assert "it failed unexpectedly: ValueError; the log says where" == health.reason
        assert [] != await t.value("heard")
    (trace,) = lines_of(caplog, logging.ERROR)
    assert trace.startswith("MCP server 'odd' failed unexpectedly:\n")
    assert "open_process" in trace
    assert trace.endswith("woollama.server.mcp.faults.Unforeseen")
    assert SECRET not in caplog.text


@pytest.mark.parametrize("fault", [raise_one, raise_group])
async def test_an_exception_of_those_that_are_told_of_a_server_is_a_fall_of_that_server(
    caplog: pytest.LogCaptureFixture, fault: Raise
) -> None:
    caplog.set_level(logging.DEBUG)
    broken, told = True, 0

    async with opened(scripted(name="good"), scripted(), wait=False) as t:
        await t.connected("good")
        await t.connected("t")
        several = anyio.Event()

        def hear() -> None:
            nonlocal told
            told += 1
            if told > 6:
                several.set()
            if broken:
                fault()

        t.tools.on_change(hear)
        assert (await t.call("die")).is_error
        with anyio.fail_after(30):
            await several.wait()
        assert "retrying" == t.health("t").health
        assert "it failed unexpectedly: KeyError; the log says where" == t.health("t").last_error
        assert "connected" == t.health("good").health
        assert not (await t.tools.call("good.pid", {})).get("isError")
        broken = False
        await t.connected("t")
        assert [] != await t.value("heard")
    traces = lines_of(caplog, logging.ERROR)
    assert traces
    assert all(trace.startswith("MCP server 't' failed unexpectedly:\n") for trace in traces)
    # One has passed the boundary of the connection: the fall was told of, and that raised again.
    assert any(not trace.endswith("Unforeseen") for trace in traces)
    assert SECRET not in "".join(caplog.messages)


async def test_a_server_that_only_ever_fails_unexpectedly_is_stopped_like_any_other() -> None:
    with anyio.fail_after(30):
        async with opened(scripted("\0"), wait=False, backoff_s=60) as t:
            await t.tools.peers()[0].settled()
            assert "retrying" == t.health().health
            with pytest.raises(ToolError, match="is not there: it failed unexpectedly"):
                await t.tools.peers()[0].call("pid", {})
        assert "failed" == t.health().health
