"""``/v1/models``, ``/v1/embeddings`` and the health routes."""

import base64
import json
import struct
from typing import Any

import anyio
import pytest

from tests.server.routes.serving import serving
from woollama.core.providers import ModelSettings, Provider
from woollama.core.testing.upstream import Exchange, serve, whole

LIST = b'{"object":"list","data":[{"id":"org/b:1","created":5,"context_length":9},{"id":"c"}]}'
VECTORS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [1.0, -2.5]}],
    "model": "e",
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}


def answering(data: bytes):
    async def script(exchange: Exchange) -> None:
        await exchange.send(data)

    return script


async def test_the_list_has_declared_models_then_discovered_ones() -> None:
    settings = {"a": ModelSettings(efforts=("low",), context=7)}
    async with serve(answering(whole(LIST))) as upstream:
        provider = Provider(
            "up",
            upstream.url,
            models=("a",),
            discover=True,
            model_patterns=("org/*",),
            model_settings=settings,
        )
        async with serving(provider) as daemon:
            listed = (await daemon.client.get("/v1/models")).json()
    first, second = listed["data"]
    assert {
        "id": "up/a",
        "object": "model",
        "created": first["created"],
        "owned_by": "up",
        "context_length": 7,
        "woollama": {"kind": "openai", "dialect": "compatible", "efforts": ["low"]},
    } == first
    assert ("up/org/b:1", 5, 9) == (second["id"], second["created"], second["context_length"])
    assert "list" == listed["object"]


@pytest.mark.parametrize("path", ["up/org/model:free", "up%2Forg%2Fmodel%3Afree"])
async def test_one_model_by_its_name_with_slashes(path: str) -> None:
    provider = Provider("up", "http://127.0.0.1:1/v1", models=("org/model:free",))
    async with serving(provider) as daemon:
        found = await daemon.client.get(f"/v1/models/{path}")
        missing = await daemon.client.get("/v1/models/up/org/model")
    assert (200, "up/org/model:free") == (found.status_code, found.json()["id"])
    assert (404, "model_not_found") == (missing.status_code, missing.json()["error"]["code"])
    assert "up/org/model:free" in missing.json()["error"]["message"]


async def test_a_dead_provider_does_not_hold_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("woollama.server.routes.models.PATIENCE_S", 0.05)
    release = anyio.Event()

    async def script(exchange: Exchange) -> None:
        await release.wait()
        await exchange.send(whole(LIST))

    async with serve(script) as upstream:
        slow = Provider("slow", upstream.url, models=("known",), discover=True)
        down = Provider("down", "http://127.0.0.1:1/v1", discover=True)
        fine = Provider("fine", "http://127.0.0.1:1/v1", models=("a",))
        async with serving(slow, down, fine) as daemon:
            before = (await daemon.client.get("/v1/models")).json()["data"]
            release.set()
            with anyio.fail_after(5):
                while daemon.services.offers.waiting():
                    await anyio.lowlevel.checkpoint()
            after = (await daemon.client.get("/v1/models")).json()["data"]
            errors = {o.provider: o.error for o in daemon.services.offers.known()}
    assert ["slow/known", "fine/a"] == [entry["id"] for entry in before]
    assert ["slow/known", "slow/org/b:1", "slow/c", "fine/a"] == [entry["id"] for entry in after]
    assert errors["down"] is not None
    assert 1 == len(upstream.requests)


async def test_embeddings_pass_and_lists_become_base64_only_when_asked() -> None:
    body: dict[str, Any] = {"model": "up/e", "input": ["a"], "dimensions": 2}
    async with (
        serve(answering(whole(json.dumps(VECTORS).encode()))) as upstream,
        serving(Provider("up", upstream.url)) as daemon,
    ):
        plain = await daemon.client.post("/v1/embeddings", json=body)
        body["encoding_format"] = "base64"
        packed = await daemon.client.post("/v1/embeddings", json=body)
    assert json.dumps(VECTORS).encode() == plain.content
    vector = base64.b64decode(packed.json()["data"][0]["embedding"])
    assert (1.0, -2.5) == struct.unpack("<2f", vector)
    assert VECTORS["usage"] == packed.json()["usage"]
    sent = json.loads(upstream.requests[1].body)
    assert {**body, "model": "e"} == sent
    assert "/v1/embeddings" == upstream.requests[0].path


@pytest.mark.parametrize(
    ("reply", "encoding"),
    [
        (b"<html>", "float"),
        (b"<html>", "base64"),
        (b'{"data":1,"x":[]}', "base64"),
        (b"[]", "float"),
        (b'{"data":[', "base64"),
    ],
)
async def test_embeddings_that_are_none_are_an_error(reply: bytes, encoding: str) -> None:
    body = {"model": "up/e", "input": "a", "encoding_format": encoding}
    async with (
        serve(answering(whole(reply))) as upstream,
        serving(Provider("up", upstream.url)) as daemon,
    ):
        response = await daemon.client.post("/v1/embeddings", json=body)
    assert 502 == response.status_code
    assert response.json()["error"]["message"]


async def test_a_provider_without_embeddings_says_so() -> None:
    provider = Provider("claude", "http://127.0.0.1:1/v1", kind="anthropic")
    async with serving(provider) as daemon:
        body = {"model": "claude/x", "input": "a"}
        response = await daemon.client.post("/v1/embeddings", json=body)
    assert 400 == response.status_code
    assert "no embeddings" in response.json()["error"]["message"]


async def test_a_model_declared_for_something_else_is_refused() -> None:
    serves = {"embedding": ("e*",), "chat": ("c*",)}
    provider = Provider("up", "http://127.0.0.1:1/v1", serves=serves)
    async with serving(provider) as daemon:
        chat = await daemon.chat(model="up/e1")
        embed = await daemon.client.post("/v1/embeddings", json={"model": "up/c1", "input": "a"})
    assert (400, 400) == (chat.status_code, embed.status_code)


async def test_health_and_the_root() -> None:
    async with serving() as daemon:
        assert {"status": "ok"} == (await daemon.client.get("/healthz")).json()
        assert "ready" == (await daemon.client.get("/readyz")).json()["status"]
        head = await daemon.client.head("/")
        assert (200, b"") == (head.status_code, head.content)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nope", 404), ("DELETE", "/v1/models", 405), ("GET", "/v1/chat/completions", 405)],
)
async def test_what_is_not_there_is_an_error_object(method: str, path: str, status: int) -> None:
    async with serving() as daemon:
        response = await daemon.client.request(method, path)
    assert status == response.status_code
    assert response.json()["error"]["message"]
