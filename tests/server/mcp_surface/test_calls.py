"""Tools of servers, called by clients: results as they are, progress, log, errors, cancellation."""

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, LoggingMessageNotificationParams

from tests.server.mcp_surface.rig import (
    ERAS,
    LEGACY,
    MODERN,
    Era,
    connected,
    daemon,
    fixtures,
    raw,
    scripted,
    servers,
    text_of,
)
from woollama.core.scopes import open_tasks

VERSIONS = (MODERN, LEGACY)
PNG = "iVBORw0KGgo="
RESULT: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "seen", "annotations": {"priority": 1}, "x-novel": None},
        {"type": "image", "data": PNG, "mimeType": "image/png", "_meta": {"a": None}},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {
            "type": "resource",
            "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "A", "x": 1},
        },
        {"type": "resource_link", "uri": "file:///b", "name": "b"},
    ],
    "structuredContent": {"n": None, "list": [1, {"deep": None}]},
    "isError": True,
    "_meta": {"vendor/x": {"y": None}},
    "x-future": [None],
}
T = {"mcp.json": servers(t=scripted())}


@pytest.mark.parametrize("version", VERSIONS)
async def test_p_44_a_result_reaches_the_client_as_it_was_sent(
    tmp_path: Path, version: str
) -> None:
    async with daemon(tmp_path, T) as running, raw(running.url, version) as client:
        result = await client.call("t__give", {"result": RESULT})
    if version == MODERN:
        stamp = result["_meta"].pop("io.modelcontextprotocol/serverInfo")
        assert "woollama" == stamp["name"]
        assert "complete" == result.pop("resultType")
    assert RESULT == result


@pytest.mark.parametrize("version", VERSIONS)
async def test_p_44_what_breaks_its_own_output_schema_passes_all_the_same(
    tmp_path: Path, version: str
) -> None:
    async with daemon(tmp_path, T) as running, raw(running.url, version) as client:
        result = await client.call("t__give", {"result": {"content": [], "isError": False}})
    assert ([], False) == (result["content"], result["isError"])
    assert "structuredContent" not in result


@pytest.mark.parametrize("version", VERSIONS)
async def test_p_44_arguments_pass_untouched(tmp_path: Path, version: str) -> None:
    arguments = {"null": None, "nested": {"null": None, "list": [None, 1.0]}, "ü": "é"}
    meta = {"vendor/trace": {"id": None}, "progressToken": 5}
    async with daemon(tmp_path, T) as running, raw(running.url, version) as client:
        result = await client.call("t__echo", arguments, _meta=meta)
    seen = result["structuredContent"]
    assert arguments == seen["seen"]
    told = {key: value for key, value in seen["meta"].items() if key != "progressToken"}
    assert {"vendor/trace": {"id": None}} == told


@pytest.mark.parametrize("version", [*VERSIONS, "2024-11-05"])
async def test_p_44_a_block_that_a_client_cannot_read_is_replaced_visibly(
    tmp_path: Path, version: str
) -> None:
    video = {"type": "video", "data": "AAAA"}
    broken = {"type": "image", "data": 5}
    given = {"content": [video, {"type": "text", "text": "b"}, broken, "c"], "isError": True}
    async with daemon(tmp_path, T) as running, raw(running.url, version) as client:
        result = await client.call("t__give", {"result": given})
        audio = RESULT["content"][2]
        heard = (await client.call("t__give", {"result": {"content": [audio]}}))["content"][0]
    first, second, third, fourth = result["content"]
    assert "[a block of type 'video' that this client cannot read]" == first["text"]
    assert video == first["_meta"]["woollama/block"]
    assert {"type": "text", "text": "b"} == second
    assert broken == third["_meta"]["woollama/block"]
    assert "c" == fourth["_meta"]["woollama/block"]
    assert result["isError"]
    assert (audio == heard) is (version != "2024-11-05")


async def test_p_44_a_list_as_structured_result_is_text_where_only_objects_are_known(
    tmp_path: Path,
) -> None:
    given = {"content": [], "structuredContent": [1, 2]}
    async with daemon(tmp_path, T) as running:
        async with raw(running.url, MODERN) as newer:
            assert [1, 2] == (await newer.call("t__give", {"result": given}))["structuredContent"]
        async with raw(running.url, LEGACY) as older:
            result = await older.call("t__give", {"result": given})
    assert "structuredContent" not in result
    assert [{"type": "text", "text": "[1,2]"}] == result["content"]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_passes_on(tmp_path: Path, era: Era) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with daemon(tmp_path, T) as running, connected(running.url, era) as client:
        result = await client.call_tool("t__steps", {}, progress_callback=hear)
    assert "done" == text_of(result)
    assert [(1.0, 2.0), (2.0, 2.0)] == heard


async def set_level(client: Client, level: types.LoggingLevel) -> None:
    request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
    await client.session.send_request(request, types.EmptyResult)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_log_messages_of_a_direct_call_pass_on(tmp_path: Path, era: Era, mode: str) -> None:
    heard: list[Any] = []

    async def hear(params: LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    files = {"mcp.json": servers(f=fixtures("--tools-only", mode=mode))}
    async with (
        daemon(tmp_path, files) as running,
        connected(running.url, era, logging_callback=hear, log_level="info") as client,
    ):
        if era == "legacy":
            await set_level(client, "debug")
        assert "logged" == text_of(await client.call_tool("f__test_tool_with_logging", {}))
        assert ["Tool started", "Tool processing data", "Tool completed"] == heard


async def test_log_messages_below_the_wanted_level_do_not(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def hear(params: LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    files = {"mcp.json": servers(f=fixtures("--tools-only"))}
    async with (
        daemon(tmp_path, files) as running,
        connected(running.url, "legacy", logging_callback=hear) as client,
    ):
        await set_level(client, "warning")
        await client.call_tool("f__test_tool_with_logging", {})
    assert [] == heard


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_no_tool_is_an_error_of_the_protocol(tmp_path: Path, version: str) -> None:
    async with daemon(tmp_path, T) as running, raw(running.url, version) as client:
        wrong: list[dict[str, Any]] = [{"name": "t__nothing"}, {"name": 7}, {}]
        wrong.append({"name": "chat", "arguments": []})
        for params in wrong:
            answer = await client.request("tools/call", params)
            # In the newer protocol the name is a header, too.
            assert answer["error"]["code"] in {INVALID_PARAMS, HEADER_MISMATCH}, params


@pytest.mark.parametrize("era", ERAS)
async def test_a_servers_refusal_of_the_parameters_passes_on(tmp_path: Path, era: Era) -> None:
    async with daemon(tmp_path, T) as running, connected(running.url, era) as client:
        with pytest.raises(MCPError, match="bad-params-77") as refused:
            await client.call_tool("t__refuse", {})
    assert INVALID_PARAMS == refused.value.code


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_dies_is_a_failed_result(tmp_path: Path, era: Era) -> None:
    async with daemon(tmp_path, T) as running, connected(running.url, era) as client:
        result = await client.call_tool("t__die", {})
        assert result.is_error
        assert "MCP server 't': it closed the connection." == text_of(result)
        await running.connected("t")
        assert not (await client.call_tool("t__pid", {})).is_error


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path, era: Era) -> None:
    async with daemon(tmp_path, T) as running, connected(running.url, era) as client:

        async def heard(method: str) -> int:
            return text_of(await client.call_tool("t__heard", {})).count(f'"{method}"')

        async with open_tasks() as tasks:
            tasks.start_soon(client.call_tool, "t__hang")
            while await heard("tools/call") < 3:
                pass
            tasks.cancel_scope.cancel()
        while not await heard("notifications/cancelled"):
            pass


async def test_our_own_fault_tells_nothing_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "secret-" + "5"
    async with daemon(tmp_path) as running:

        def broken() -> Any:
            raise ZeroDivisionError(secret)

        monkeypatch.setattr(running.services.directory.catalog, "list", broken)
        for version in VERSIONS:
            async with raw(running.url, version) as client:
                answer = await client.request("prompts/list")
            assert "woollama failed unexpectedly" in answer["error"]["message"]
            assert secret not in str(answer)
    assert "ZeroDivisionError" in caplog.text
    assert secret not in caplog.text
