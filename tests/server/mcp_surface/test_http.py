"""`/mcp` as an HTTP endpoint: no redirect, the door, sessions, limits, the end of the daemon."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.server.mcp_surface.rig import (
    LEGACY,
    MODERN,
    connected,
    daemon,
    raw,
    scripted,
    servers,
)
from woollama.core.scopes import open_tasks

ACCEPT = {"accept": "application/json, text/event-stream"}


def greeting(version: str = LEGACY) -> dict[str, Any]:
    client = {"name": "x", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


@asynccontextmanager
async def asking(url: str) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=url.removesuffix("/mcp"), headers=ACCEPT, timeout=20, trust_env=False
    ) as client:
        yield client


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_it_answers_without_a_redirect(tmp_path: Path, path: str) -> None:
    async with daemon(tmp_path) as running, asking(running.url) as http:
        response = await http.post(path, json=greeting())
    assert 200 == response.status_code
    assert response.headers["mcp-session-id"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY])
async def test_every_older_revision_is_spoken(tmp_path: Path, version: str) -> None:
    async with daemon(tmp_path) as running, raw(running.url, version) as client:
        hello = await client.open()
        assert version == hello["protocolVersion"]
        assert "woollama" == hello["serverInfo"]["name"]
        assert ["chat"] == [
            tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]
        ]


async def test_the_newest_revision_needs_no_session(tmp_path: Path) -> None:
    async with daemon(tmp_path, instance_id="me-1") as running, raw(running.url, MODERN) as client:
        found = (await client.request("server/discover"))["result"]
        assert [MODERN] == found["supportedVersions"]
        assert ["me-1"] == found["_meta"]["woollama/instance"]
        async with asking(running.url) as http:
            got = await http.get("/mcp", headers={"mcp-protocol-version": MODERN})
    assert 405 == got.status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 403),
        ({"origin": "http://localhost:5173"}, 200),
        ({}, 200),
    ],
)
async def test_h04_host_and_origin_are_asked_for_as_everywhere(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with daemon(tmp_path) as running, asking(running.url) as http:
        for path in ("/mcp", "/mcp/"):
            response = await http.post(path, json=greeting(), headers=headers)
            assert status == response.status_code


async def test_a_page_that_is_let_in_sees_its_session(tmp_path: Path) -> None:
    page = "https://app.example"
    async with daemon(tmp_path, origins=(page,)) as running, asking(running.url) as http:
        wanted = {"access-control-request-method": "POST"}
        headers = {"access-control-request-headers": "mcp-session-id, mcp-protocol-version"}
        preflight = await http.options("/mcp", headers={"origin": page, **wanted, **headers})
        assert 204 == preflight.status_code
        assert "mcp-session-id" in preflight.headers["access-control-allow-headers"]
        response = await http.post("/mcp", json=greeting(), headers={"origin": page})
        assert page == response.headers["access-control-allow-origin"]
        assert "mcp-session-id" in response.headers["access-control-expose-headers"]


async def test_the_token_is_asked_for_as_everywhere(tmp_path: Path) -> None:
    async with daemon(tmp_path, token="tok-1") as running, asking(running.url) as http:
        for headers in ({}, {"authorization": "Bearer tok-2"}):
            for method in ("POST", "GET", "DELETE"):
                refused = await http.request(method, "/mcp", headers=headers)
                assert (401, "Bearer") == (
                    refused.status_code,
                    refused.headers["www-authenticate"],
                )
        for headers in ({"authorization": "Bearer tok-1"}, {"x-api-key": "tok-1"}):
            taken = await http.post("/mcp", json=greeting(), headers=headers)
            assert 200 == taken.status_code


async def test_a_session_ends_when_it_is_deleted(tmp_path: Path) -> None:
    async with daemon(tmp_path) as running, asking(running.url) as http:
        session = (await http.post("/mcp", json=greeting())).headers["mcp-session-id"]
        headers = {"mcp-session-id": session, "mcp-protocol-version": LEGACY}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert 200 == (await http.post("/mcp", json=ping, headers=headers)).status_code
        assert 200 == (await http.delete("/mcp", headers=headers)).status_code
        gone = await http.post("/mcp", json=ping, headers=headers)
        assert (404, "Session not found") == (gone.status_code, gone.json()["error"]["message"])


async def test_two_answers_of_one_session_do_not_mix(tmp_path: Path) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with daemon(tmp_path, files) as running, connected(running.url, "legacy") as client:
        await running.connected("t")
        found: list[str] = []

        async def call() -> None:
            result = await client.call_tool("t__barrier", {"of": 8})
            found.append(str(result.content))

        async with open_tasks() as tasks:
            for _ in range(8):
                tasks.start_soon(call)
        assert 8 == len(found)


async def test_a_body_that_is_too_long_is_refused(tmp_path: Path) -> None:
    body = json.dumps({**greeting(), "x": "a" * 70_000}).encode()
    async with (
        daemon(tmp_path, body_limit_bytes=65_536) as running,
        asking(running.url) as http,
    ):
        told = await http.post("/mcp", content=body)

        async def pieces() -> AsyncGenerator[bytes]:
            yield body

        untold = await http.post(
            "/mcp", content=pieces(), headers={"content-type": "application/json"}
        )
    assert [413, 413] == [told.status_code, untold.status_code]


@pytest.mark.parametrize("kind", ["hypercorn", "uvicorn"])
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_listening_clients_do_not_hold_up_the_end(
    tmp_path: Path, era: str, kind: Any
) -> None:
    async with (
        daemon(tmp_path, drain_timeout_s=60, kind=kind) as running,
        asking(running.url) as http,
        open_tasks() as tasks,
    ):
        begun, ended = anyio.Event(), anyio.Event()

        async def listen() -> None:
            if era == "legacy":
                opened = await http.post("/mcp", json=greeting())
                session = {
                    "mcp-session-id": opened.headers["mcp-session-id"],
                    "mcp-protocol-version": LEGACY,
                }
                request = http.stream("GET", "/mcp", headers=session)
            else:
                request = http.stream("POST", "/mcp", **listening())
            async with request as response:
                begun.set()
                # To its proper end: a cut body would raise.
                async for _ in response.aiter_bytes():
                    pass
            ended.set()

        tasks.start_soon(listen)
        with anyio.fail_after(20):
            await begun.wait()
            running.stop.set()
            await ended.wait()
            await running.ended.wait()


def listening() -> dict[str, Any]:
    """A request to hear of changes, in the newer protocol."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    method = "subscriptions/listen"
    params: dict[str, Any] = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return {"json": message, "headers": {"mcp-protocol-version": MODERN, "mcp-method": method}}


async def test_every_answer_says_whose_it_is(tmp_path: Path) -> None:
    async with daemon(tmp_path, instance_id="me-1") as running, asking(running.url) as http:
        for method in ("POST", "GET", "DELETE", "PUT"):
            response = await http.request(method, "/mcp")
            assert "me-1" == response.headers["x-woollama-instance"]
