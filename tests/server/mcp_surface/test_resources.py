"""The resources of servers, under URIs that say whose they are: server/mcp/surface_resources.py."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from tests.server.mcp_surface.rig import (
    ERAS,
    HERE,
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

READING = HERE / "reading_server.py"
TEXT = "This is the content of the static text resource."


def text_in(result: Any) -> str:
    (content,) = result.contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def uris(client: Client) -> list[str]:
    return [resource.uri for resource in (await client.list_resources()).resources]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_they_are_listed_and_read_under_their_servers_name(
    tmp_path: Path, era: Era, mode: str
) -> None:
    files = {"mcp.json": servers(**{"my files": fixtures(mode=mode), "t": scripted()})}
    async with daemon(tmp_path, files) as running, connected(running.url, era) as client:
        await running.connected("my files", "t")
        prefix = "woollama://my%20files/"
        assert [f"{prefix}test://static-text", f"{prefix}test://static-binary"] == (
            await uris(client)
        )
        (template,) = (await client.list_resource_templates()).resource_templates
        assert f"{prefix}test://template/{{id}}/data" == template.uri_template
        got = await client.read_resource(f"{prefix}test://static-text")
        assert TEXT == text_in(got)
        assert f"{prefix}test://static-text" == got.contents[0].uri
        filled = template.uri_template.replace("{id}", "7")
        assert '"id": "7"' in text_in(await client.read_resource(filled))


async def test_an_own_uri_of_exactly_one_server_can_be_read_as_it_is(tmp_path: Path) -> None:
    files = {"mcp.json": servers(f=fixtures())}
    async with daemon(tmp_path, files) as running, connected(running.url) as client:
        await running.connected("f")
        got = await client.read_resource("test://static-text")
        assert ("test://static-text", TEXT) == (got.contents[0].uri, text_in(got))
        assert '"id": "9"' in text_in(await client.read_resource("test://template/9/data"))


async def test_one_that_several_have_or_nobody_has_is_refused(tmp_path: Path) -> None:
    files = {"mcp.json": servers(f=fixtures(), g=fixtures(mode="legacy"))}
    async with daemon(tmp_path, files) as running, connected(running.url) as client:
        await running.connected("f", "g")
        with pytest.raises(MCPError, match="several servers have it"):
            await client.read_resource("test://static-text")
        for unknown in ("test://nothing", "woollama://h/test://static-text"):
            with pytest.raises(MCPError, match="no server has it"):
                await client.read_resource(unknown)
        # A server's own words about what it does not have.
        with pytest.raises(MCPError, match="Unknown resource: test://nothing"):
            await client.read_resource("woollama://f/test://nothing")


async def test_only_those_of_exported_servers_are_there(tmp_path: Path) -> None:
    for exports in ({"servers": ["t"]}, {"recipesOnly": True}):
        given = {**servers(f=fixtures(), t=scripted()), "export": exports}
        async with (
            daemon(tmp_path, {"mcp.json": given}) as running,
            connected(running.url) as client,
        ):
            await running.connected("f")
            assert [] == await uris(client)
            with pytest.raises(MCPError, match="no server has it"):
                await client.read_resource("woollama://f/test://static-text")


async def test_a_server_that_went_away_has_none(tmp_path: Path) -> None:
    files = {"mcp.json": servers(f=fixtures())}
    async with daemon(tmp_path, files) as running, connected(running.url) as client:
        await running.connected("f")
        assert 2 == len(await uris(client))
        (peer,) = [peer for peer in running.services.tools.peers() if peer.name == "f"]
        peer.stop()
        with anyio.fail_after(10):
            await peer.done.wait()
        assert [] == await uris(client)
        with pytest.raises(MCPError, match="could not be read"):
            await client.read_resource("woollama://f/test://static-text")


@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_contents_reach_the_client_as_they_were_sent(tmp_path: Path, version: str) -> None:
    files = {"mcp.json": servers(f=fixtures())}
    async with daemon(tmp_path, files) as running, raw(running.url, version) as client:
        await running.connected("f")
        uri = "woollama://f/test://static-binary"
        answer = await client.request("resources/read", {"uri": uri})
        (content,) = answer["result"]["contents"]
    assert {"uri", "mimeType", "blob"} == content.keys()
    assert uri == content["uri"]


def reading(*flags: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", str(READING), *flags], **more}


def those_of(server: str, listed: list[str]) -> list[str]:
    prefix = f"woollama://{server}/"
    return [uri.removeprefix(prefix) for uri in listed if uri.startswith(prefix)]


async def test_all_pages_are_read_and_odd_items_left_out(tmp_path: Path) -> None:
    entries = {
        "pages": reading("--pages", "2", "--no-templates"),
        "circle": reading("--circle"),
        "odd": reading("--odd"),
    }
    async with (
        daemon(tmp_path, {"mcp.json": servers(**entries)}) as running,
        connected(running.url) as client,
    ):
        await running.connected(*entries)
        found = await uris(client)
        five = [f"r://{n}" for n in range(5)]
        assert five == those_of("pages", found)
        # One that does not come to an end costs its own, and not the list.
        assert [] == those_of("circle", found)
        assert [*five, "r://bare"] == those_of("odd", found)


@pytest.mark.parametrize("quiet", [True, False])
async def test_a_list_is_kept_until_its_server_says_that_it_changed(
    tmp_path: Path, quiet: bool
) -> None:
    entry = reading("--quiet") if quiet else reading()
    news = anyio.Event()
    async with (
        daemon(tmp_path, {"mcp.json": servers(r=entry)}) as running,
        connected(running.url) as client,
    ):
        await running.connected("r")
        running.services.tools.on_resources(lambda: news.set())
        for _ in range(3):
            assert 5 == len(await uris(client))
        asked = text_of(await client.call_tool("r__grow", {}))
        # Of one that never says so it is asked each time.
        assert ("3" if quiet else "1") == asked
        if not quiet:
            with anyio.fail_after(20):
                await news.wait()
        assert "r://late" in those_of("r", await uris(client))


async def test_a_reading_passes_the_clients_meta_on(tmp_path: Path) -> None:
    async with (
        daemon(tmp_path, {"mcp.json": servers(r=reading())}) as running,
        raw(running.url, LEGACY) as client,
    ):
        await running.connected("r")
        given = {"uri": "woollama://r/r://1", "_meta": {"vendor/x": {"y": None}}}
        result = (await client.request("resources/read", given))["result"]
    assert {"vendor/x": {"y": None}} == json.loads(result["contents"][0]["text"])
    assert "x-novel" in result
