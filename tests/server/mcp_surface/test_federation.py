"""Two woollamas, one behind the other, and what keeps them from going round in circles (RU-54)."""

import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp_types import TextResourceContents

from tests.server.mcp_surface.rig import (
    ERAS,
    LEGACY,
    MODERN,
    Daemon,
    Era,
    connected,
    daemon,
    fixtures,
    raw,
    scripted,
    servers,
    text_of,
)

VERSIONS = (MODERN, LEGACY)


def behind(url: str, token: str | None = None, **more: Any) -> dict[str, Any]:
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token is not None else {}
    return {"url": url, **headers, **more}


async def health(running: Daemon, name: str, *states: str) -> str:
    """Waits until a server is in one of these states; its reason."""
    news = anyio.Event()
    forget = running.services.tools.on_change(lambda: news.set())
    with anyio.fail_after(20):
        while True:
            found = {each.name: each for each in running.services.tools.servers()}[name]
            if found.health in states:
                forget()
                return found.reason or ""
            # A server that is tried again tells nobody: it is looked at now and then.
            with anyio.move_on_after(0.02):
                await news.wait()
            news = anyio.Event()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_one_woollama_passes_on_what_another_passes_on(
    tmp_path: Path, era: Era, mode: str
) -> None:
    inner = {"mcp.json": servers(t=scripted(), f=fixtures(mode="legacy"))}
    async with daemon(tmp_path / "b", inner, token="tok-b") as b:
        await b.connected("t", "f")
        outer = {"mcp.json": servers(b=behind(b.url, "tok-b", mode=mode))}
        async with daemon(tmp_path / "a", outer) as a, connected(a.url, era) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"chat", "b__chat", "b__t__echo"} <= set(names)
            assert all(len(name) <= 40 for name in names)
            result = await client.call_tool("b__t__echo", {"x": None})
            assert '{"x": null}' == text_of(result)
            heard: list[float] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append(progress)

            await client.call_tool("b__t__steps", {}, progress_callback=hear)
            assert [1.0, 2.0] == heard
            uri = "woollama://b/woollama://f/test://static-text"
            assert uri in [each.uri for each in (await client.list_resources()).resources]
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, TextResourceContents)
            assert "static text" in content.text


async def test_a_change_behind_another_woollama_is_seen(tmp_path: Path) -> None:
    async with daemon(tmp_path / "b", {"mcp.json": servers(t=scripted())}) as b:
        await b.connected("t")
        outer = {"mcp.json": servers(b=behind(b.url))}
        async with daemon(tmp_path / "a", outer) as a, connected(a.url) as client:
            await a.connected("b")
            news = anyio.Event()
            a.services.tools.on_change(lambda: news.set())
            await client.call_tool("b__t__grow", {"name": "late"})
            with anyio.fail_after(20):
                while "b__t__late" not in [t.name for t in (await client.list_tools()).tools]:
                    await news.wait()
                    news = anyio.Event()


@pytest.mark.parametrize("token", ["wrong", None])
async def test_a_wrong_token_federates_nothing_and_says_so(
    tmp_path: Path, token: str | None
) -> None:
    async with daemon(tmp_path / "b", {"mcp.json": servers(t=scripted())}, token="tok-b") as b:
        outer = {"mcp.json": servers(b=behind(b.url, token), own=scripted())}
        async with daemon(tmp_path / "a", outer, patience_s=0.01) as a:
            await a.connected("own")
            reason = await health(a, "b", "retrying")
            assert "HTTP 401" in reason
            assert "check the 'headers' of its entry in mcp.json" in reason
            assert "wrong" not in reason
            async with raw(a.url, LEGACY) as client:
                listed = (await client.request("tools/list"))["result"]["tools"]
                assert {"chat", "own"} == {tool["name"].partition("__")[0] for tool in listed}
                assert not (await client.call("own__pid")).get("isError")


async def test_a_woollama_that_names_itself_is_refused(tmp_path: Path) -> None:
    async with daemon(tmp_path, instance_id="me-1") as running:
        # The same woollama, as far as anybody can tell; its port is known only now.
        files = {"mcp.json": servers(me=behind(running.url), t=scripted())}
        async with daemon(tmp_path, files, instance_id="me-1") as again:
            await again.connected("t")
            assert "a loop" in await health(again, "me", "failed")


async def test_two_that_name_each_other_show_each_tool_once(tmp_path: Path) -> None:
    one, two = {"mcp.json": servers(t=scripted())}, {"mcp.json": servers()}
    async with daemon(tmp_path / "b", two, instance_id="b-1") as b:
        outer = {"mcp.json": {"mcpServers": {**one["mcp.json"]["mcpServers"], "b": behind(b.url)}}}
        async with daemon(tmp_path / "a", outer, instance_id="a-1") as a:
            back = {"mcp.json": servers(a=behind(a.url), f=fixtures(mode="legacy"))}
            await a.connected("b", "t")
            async with daemon(tmp_path / "c", back, instance_id="b-1") as c:
                # It has the id of the one that ``a`` knows: what comes back through it is its own.
                await c.connected("a", "f")
                left_out = {each.name: each for each in c.services.tools.servers()}["a"].left_out
                assert "it is our own, coming back" in left_out["b__chat"]
                async with raw(c.url, MODERN) as client:
                    listed = (await client.request("tools/list"))["result"]["tools"]
                    names = [tool["name"] for tool in listed]
                    assert "a__t__pid" in names
                    assert "a__b__chat" not in names
                    uris = (await client.request("resources/list"))["result"]["resources"]
                    assert ["woollama://f/"] * 2 == [each["uri"][:13] for each in uris]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_that_has_come_through_us_is_refused(tmp_path: Path, version: str) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with (
        daemon(tmp_path, files, instance_id="me-1") as running,
        raw(running.url, version) as client,
    ):
        await running.connected("t")
        trail = {"_meta": {"woollama/instance": ["other", "me-1"]}}
        for method, params in (
            ("tools/call", {"name": "t__pid", "arguments": {}, **trail}),
            ("resources/read", {"uri": "woollama://t/x", **trail}),
        ):
            answer = await client.request(method, params)
            assert "A loop" in answer["error"]["message"]


async def test_our_own_request_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    async with daemon(tmp_path, instance_id="me-1") as running, httpx2.AsyncClient() as http:
        for trail in ("me-1", "other, me-1"):
            headers = {"x-woollama-instance": trail}
            response = await http.post(running.url, content=b"no json", headers=headers)
            assert 508 == response.status_code
            assert "leads back to itself" in response.json()["error"]["message"]
        other = await http.post(
            running.url, content=b"no json", headers={"x-woollama-instance": "x"}
        )
        assert 508 != other.status_code
        assert "me-1" == other.headers["x-woollama-instance"]


async def test_a_child_with_our_own_configuration_is_ourselves(tmp_path: Path) -> None:
    """``woollama mcp`` in its own mcp.json does not start itself without end."""
    entry = {"command": sys.executable, "args": ["-P", "-m", "woollama.server", "mcp"]}
    environment = {"WOOLLAMA_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    files = {"mcp.json": servers(me={**entry, "env": environment}, t=scripted())}
    async with daemon(tmp_path, files) as running:
        await running.connected("t")
        assert "a loop" in await health(running, "me", "failed")
