"""MCP servers that are child processes, from their start to their end: server/mcp/ over pipes."""

import base64
import os
import signal
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.server.mcp.scripted_server import OBJECT, PNG
from tests.server.mcp.servers import gone, opened, scripted, text_of
from woollama.core.errors import UnknownTool
from woollama.core.tools import ToolResult, ToolSpec
from woollama.server.mcp.entries import StdioServer

ODD = """[
    {"name": "a", "inputSchema": {}},
    {"name": "b", "inputSchema": {"anyOf": []}},
    {"name": "c", "inputSchema": 5},
    {"inputSchema": {}},
    "no tool",
    {"name": "a"},
    {"name": "d", "annotations": {"readOnlyHint": "yes"}, "icons": 5}
]"""


@pytest.fixture
def odd_tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(ODD, "utf-8")
    return path


async def test_a_tool_is_offered_under_a_name_for_models_and_runs_under_its_own() -> None:
    async with opened(scripted()) as t:
        assert [
            ToolSpec(
                "t__echo",
                {
                    "type": "function",
                    "function": {
                        "name": "t__echo",
                        "description": "gives back its arguments",
                        "parameters": OBJECT,
                    },
                },
                source_name="t.echo",
            )
        ] == t.tools.tools_for(["t.echo", "t.nothing", "u.echo"])
        result = await t.tools.dispatch("t.echo", {"f": None, "n": [1.5, None]})
        assert {"f": None, "n": [1.5, None]} == result.structured["seen"]
        assert "t.echo" in t.names()


async def test_hints_of_a_tool_reach_the_spec_and_not_its_schema() -> None:
    async with opened(scripted()) as t:
        (spec,) = t.tools.tools_for(["t.pid"])
        assert {"readOnlyHint": True} == spec.annotations
        assert "annotations" not in spec.schema["function"]


async def test_every_page_of_a_list_is_read() -> None:
    async with opened(scripted("--pages", "3")) as t:
        assert "t.complain" in t.names()
        assert "called" not in text_of(await t.call("complain", text="x"))


async def test_lines_that_are_no_messages_are_skipped_and_shown_with_the_log() -> None:
    async with opened(scripted("--noise")) as t:
        assert {"a": 1} == (await t.value("echo", a=1))
        assert "Server v1.2 …" in (t.health().stderr or "")
        assert "not rpc" in (t.health().stderr or "")


async def test_the_end_of_stderr_is_kept_and_bounded() -> None:
    async with opened(scripted(), log_limit_bytes=40) as t:
        await t.call("complain", text="x" * 100)
        await t.call("complain", text="the end")
        # Two pipes: what is written to one first need not be read first.
        with anyio.fail_after(10):
            while "the end" not in (t.health().stderr or ""):
                await anyio.lowlevel.checkpoint()
        assert "the end\n" == t.health().stderr


async def test_ru_58_four_calls_are_in_flight_at_once_on_one_server() -> None:
    async with opened(scripted()) as t:
        results: list[ToolResult] = []

        async def call() -> None:
            results.append(await t.call("barrier", of=4))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(call)
        assert ["together"] * 4 == [text_of(result) for result in results]


async def test_a_call_that_hangs_keeps_nobody_waiting() -> None:
    async with opened(scripted()) as t, anyio.create_task_group() as tasks:
        tasks.start_soon(t.call, "hang")
        assert {"a": 1} == (await t.value("echo", a=1))
        tasks.cancel_scope.cancel()


async def test_a_call_that_takes_too_long_is_an_error_and_the_server_is_told() -> None:
    async with opened(scripted(call_timeout_s=0.2)) as t:
        result = await t.call("hang")
        assert result.is_error
        assert "'hang' did not answer within 0.2 s" == text_of(result)
        assert "notifications/cancelled" in (await t.value("heard"))
        assert "connected" == t.health().health


async def test_a_caller_that_leaves_tells_the_server_to_stop() -> None:
    async with opened(scripted()) as t:
        with anyio.move_on_after(0.1):
            await t.call("hang")
        assert "notifications/cancelled" in (await t.value("heard"))


async def test_progress_is_passed_up() -> None:
    async with opened(scripted()) as t:
        seen: list[tuple[float, float | None, str | None]] = []
        both = anyio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))
            if len(seen) == 2:
                both.set()

        result = await t.tools.call("t.steps", {}, on_progress=note)
        assert [{"type": "text", "text": "done"}] == result["content"]
        with anyio.fail_after(5):
            await both.wait()
        assert [(1, 2, None), (2, 2, None)] == seen


async def test_p_44_blocks_structured_results_and_failures_are_kept_as_they_came() -> None:
    image = {"type": "image", "data": PNG, "mimeType": "image/png", "_meta": {"a": None}}
    blocks = [
        image,
        {"type": "audio", "data": "UklGRgAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///n", "text": "note"}},
        {"type": "video", "frames": [None]},
    ]
    raw = {"content": blocks, "isError": True, "_meta": {"x/y": {"z": None}}, "novel": 1}
    async with opened(scripted()) as t:
        assert raw == await t.tools.call("t.give", {"result": raw})
        result = await t.call("give", result=raw)
        assert tuple(blocks) == result.blocks
        assert result.is_error
        assert {"x/y": {"z": None}} == result.meta


@pytest.mark.parametrize("structured", [{"answer": 4242}, [1, 2], "text", 7])
async def test_a_structured_result_without_blocks_is_a_result(structured: object) -> None:
    async with opened(scripted()) as t:
        result = await t.call("give", result={"content": [], "structuredContent": structured})
        assert ToolResult(structured=structured) == result


async def test_a_result_of_several_megabytes_arrives() -> None:
    data = base64.b64encode(os.urandom(2_000_000)).decode()
    block = {"type": "image", "data": data, "mimeType": "image/png"}
    async with opened(scripted()) as t:
        result = await t.call("give", result={"content": [block]})
        assert (block,) == result.blocks


async def test_a_protocol_error_is_a_failed_result_with_its_text() -> None:
    async with opened(scripted()) as t:
        result = await t.call("refuse")
        assert result.is_error
        assert "bad-params-77" == text_of(result)
        assert "connected" == t.health().health


async def test_a_tool_that_nobody_has_is_unknown_and_the_error_says_why() -> None:
    async with opened(scripted()) as t:
        for name, why in {
            "t.nothing": "MCP server 't' has no tool 'nothing'",
            "u.echo": "no server in mcp.json has such a name",
        }.items():
            with pytest.raises(UnknownTool, match=why):
                await t.tools.dispatch(name, {})


async def test_a_killed_server_comes_back_and_the_third_call_works() -> None:
    async with opened(scripted()) as t:
        first = await t.value("pid")
        os.kill(first, signal.SIGKILL)
        await t.until(lambda: not t.tools.is_connected("t"))
        assert "retrying" == t.health().health
        assert "it was killed by SIGKILL" == t.health().reason
        # Its tools are still offered: it is expected back.
        assert ["t__pid"] == [spec.name for spec in t.tools.tools_for(["t.pid"])]
        second = await t.value("pid")
        third = await t.value("pid")
        assert first != second == third
        assert "connected" == t.health().health
        assert "it was killed by SIGKILL" == t.health().last_error


async def test_a_call_in_which_the_server_dies_is_an_error_and_the_next_one_works() -> None:
    async with opened(scripted()) as t:
        result = await t.call("die")
        assert result.is_error
        assert "it closed the connection" == text_of(result)
        assert {"a": 1} == (await t.value("echo", a=1))


async def test_a_call_that_may_be_repeated_is_made_once_more(tmp_path: Path) -> None:
    async with opened(scripted()) as t:
        result = await t.call("die_once", mark=str(tmp_path / "mark"))
        assert "alive" == text_of(result)


async def test_tools_that_come_later_are_offered() -> None:
    async with opened(scripted()) as t:
        await t.call("grow", name="late")
        await t.until(lambda: "t.late" in t.names())
        assert "called late" == text_of(await t.call("late"))


async def test_a_server_that_is_not_there_costs_its_own_tools_only() -> None:
    bad = StdioServer(name="bad", command="no-such-program-here")
    worse = scripted("--shy", name="worse", mode="modern")
    async with opened(scripted(), bad, worse) as t:
        assert {"a": 1} == (await t.value("echo", a=1))
        await t.tools.prepare(["bad.x", "worse.x"])
        assert "retrying" == t.health("bad").health
        assert "'no-such-program-here' is not there" in (t.health("bad").reason or "")
        assert "it ended with exit code 4" == t.health("worse").reason
        with pytest.raises(UnknownTool, match="'bad' is retrying"):
            await t.tools.dispatch("bad.x", {})


async def test_nobody_waits_for_servers_at_the_start_and_a_run_waits_for_its_own() -> None:
    mute = scripted("--mute", name="mute")
    async with opened(scripted(), mute, wait=False) as t:
        assert ["connecting", "connecting"] == [each.health for each in t.tools.servers()]
        assert [] == t.tools.tools_for(["t.echo"])
        await t.tools.prepare(["t.echo"])
        assert ["t__echo"] == [spec.name for spec in t.tools.tools_for(["t.echo"])]
        assert "connecting" == t.health("mute").health


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    mute = scripted("--mute", connect_timeout_s=0.5)
    async with opened(mute, wait=False, patience_s=10.0) as t:
        await t.tools.prepare(["t.x"])
        assert "retrying" == t.health().health
        assert "it was not ready within 0.5 s" == t.health().reason
        assert 1 <= t.health().attempts


async def test_a_program_that_ignores_the_newer_greeting_is_greeted_the_older_way() -> None:
    async with opened(scripted("--deaf"), probe_timeout_s=0.2) as t:
        assert "2025-11-25" == t.health().protocol


async def test_a_program_that_ends_at_the_newer_greeting_is_greeted_the_older_way() -> None:
    async with opened(scripted("--shy")) as t:
        assert "2025-11-25" == t.health().protocol
        assert ["initialize", "notifications/initialized"] == (await t.value("heard"))[:2]


async def test_a_child_sees_nothing_of_our_environment_but_what_every_program_needs() -> None:
    environ = {
        **os.environ,
        "OPENAI_API_KEY": "sk-secret",
        "AWS_SESSION_TOKEN": "secret",
        "LC_TIME": "C",
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "TZ": "UTC",
    }
    async with opened(scripted(env={"OWN": "yes"}), environ=environ) as t:
        seen = await t.value("environment")
        assert {"OPENAI_API_KEY", "AWS_SESSION_TOKEN"}.isdisjoint(seen)
        assert {"OWN": "yes", "LC_TIME": "C", "TZ": "UTC"}.items() <= seen.items()
        assert "http://127.0.0.1:1" == seen["HTTPS_PROXY"]
        assert environ["PATH"] == seen["PATH"]


async def test_secrets_do_not_come_out_of_the_health_of_a_server() -> None:
    server = scripted(env={"KEY": "sk-secret"}, secrets=("sk-secret",))
    async with opened(server) as t:
        await t.call("complain", text="refused sk-secret")
        with anyio.fail_after(10):
            while "refused" not in (t.health().stderr or ""):
                await anyio.lowlevel.checkpoint()
        assert "refused ***\n" == t.health().stderr
        assert "sk-secret" not in repr(server)


@pytest.mark.parametrize("flags", [(), ("--stubborn",)], ids=["heeds-its-stdin", "stubborn"])
async def test_leaving_ends_the_child_and_what_it_started(flags: tuple[str, ...]) -> None:
    with anyio.fail_after(20):
        async with opened(scripted(*flags), stop_timeout_s=1.0) as t:
            pid = await t.value("pid")
            grandchild = await t.value("spawn")
    await gone(pid)
    await gone(grandchild)


async def test_cancelling_ends_the_child_too() -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with opened(scripted()) as t:
            pids.append(await t.value("pid"))
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    await gone(pids[0])


async def test_only_the_tools_that_the_entry_allows_are_offered() -> None:
    async with opened(scripted(tools=("echo", "ehco"))) as t:
        assert ["t.echo"] == t.names()
        left_out = t.health().left_out
        assert "not among the 'tools'" in left_out["pid"]
        assert "no such tool" in left_out["ehco"]
        with pytest.raises(UnknownTool, match="not among"):
            await t.tools.dispatch("t.pid", {})


async def test_an_odd_tool_costs_itself_and_not_the_list(odd_tools: Path) -> None:
    async with opened(scripted("--tools", str(odd_tools))) as t:
        assert ["t.a", "t.b", "t.d"] == t.names()
        assert {"c", "", "a"} == set(t.health().left_out)
        assert "called b" == text_of(await t.call("b"))


async def test_a_server_that_says_it_is_us_is_refused_for_good() -> None:
    """RU-54: a loop is known by the instance id."""
    async with opened(scripted("--instance", "me-0000"), wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert "failed" == t.health().health
        assert "a loop" in (t.health().reason or "")
        assert [] == t.names()


async def test_another_woollama_is_told_through_whom_a_call_came() -> None:
    async with opened(scripted("--instance", "other")) as t:
        result = await t.tools.call("t.echo", {}, trail=["first"], meta={"k": 1})
        told = result["structuredContent"]["meta"]
        assert {"k": 1, "woollama/instance": ["first", "me-0000"]} == told


async def test_others_are_not_told_who_we_are() -> None:
    async with opened(scripted()) as t:
        result = await t.tools.call("t.echo", {})
        assert {} == result["structuredContent"]["meta"]


async def test_a_server_that_is_stuck_is_noticed_by_a_ping_and_started_anew() -> None:
    async with opened(scripted(), ping_interval_s=0.1, ping_timeout_s=0.2) as t:
        pid = await t.value("pid")
        os.kill(pid, signal.SIGSTOP)
        await t.until(lambda: not t.tools.is_connected("t"))
        assert "it did not answer within 0.2 s" == t.health().reason
        await t.connected()
        assert pid != (await t.value("pid"))
    await gone(pid)


async def test_a_server_at_work_is_not_asked_whether_it_is_there() -> None:
    async with opened(scripted(), ping_interval_s=0.02) as t, anyio.create_task_group() as tasks:
        tasks.start_soon(t.call, "hang")
        await t.value("echo")
        heard = (await t.value("heard")).count("ping")
        for _ in range(20):
            await t.value("echo")
        assert heard == (await t.value("heard")).count("ping")
        tasks.cancel_scope.cancel()


async def test_a_list_that_goes_round_in_a_circle_is_given_up() -> None:
    async with opened(scripted("--circle"), wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert "its list of tools goes round in a circle" == t.health().reason


async def test_a_message_without_end_ends_the_connection() -> None:
    async with opened(scripted(), result_limit_bytes=100_000) as t:
        block = {"type": "text", "text": "x" * 200_000}
        assert (await t.call("give", result={"content": [block]})).is_error
        await t.connected()


async def test_a_tool_that_asks_a_person_gets_a_clear_answer() -> None:
    async with opened(scripted()) as t:
        result = await t.call("give", result={"resultType": "input_required"})
        assert result.is_error
        assert "nobody is there to answer" in text_of(result)


async def test_a_program_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    server = StdioServer(name="t", command=str(tmp_path))
    async with opened(server, wait=False) as t:
        await t.tools.prepare(["t.x"])
        assert f"{str(tmp_path)!r} cannot be started: Permission denied" == t.health().reason
