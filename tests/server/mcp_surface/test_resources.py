"""The resources of servers, under URIs that say whose they are: server/mcp/surface_resources.py."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

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
)

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
