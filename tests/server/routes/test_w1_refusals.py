"""What ``/w1`` refuses: bodies, variables and images that cannot be meant; each says what to do."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.routes.serving import Daemon, serving
from woollama.core import Capabilities
from woollama.core.providers import Provider
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import serve

RECIPES = """
[recipes.plain]
inferencer = "up/m-1"
system = "Say it in {{language}}."
"""
LIMIT_BYTES = 20 * 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "sk-test-1")


@asynccontextmanager
async def housed(folder: Path, **more: Any) -> AsyncGenerator[tuple[Daemon, CompatibleFake]]:
    recipes = folder / "recipes.toml"
    await anyio.Path(recipes).write_text(RECIPES)
    fake = CompatibleFake([say("It is so."), say("It is so.")])
    async with serve(fake) as upstream:
        provider = Provider("up", upstream.url, api_key_env="UP_KEY", **more)
        async with serving(provider, recipes=recipes, body_limit_bytes=64 << 20) as daemon:
            yield daemon, fake


async def post(daemon: Daemon, path: str, body: Any) -> tuple[int, dict[str, Any]]:
    """The status, and the error or the whole answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = await daemon.client.post(f"/w1/patterns/{path}", content=content)
    answer = response.json()
    return response.status_code, answer.get("error", answer)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("nope/run", {"input": "x"}, 404, "There is no pattern 'nope'."),
        ("nope/render", {"input": "x"}, 404, "There is no pattern 'nope'."),
        ("plane/run", {"input": "x"}, 404, "Near names: plain."),
        ("plain/run", {"input": "x", "variables": ["fr"]}, 400, "'variables' must be an object"),
        ("plain/render", {"variables": "fr"}, 400, "'variables' must be an object"),
        ("plain/run", b"{", 400, "JSON"),
        ("plain/run", b"", 400, "JSON"),
        ("plain/run", b'["x"]', 400, "object"),
        ("plain/render", b"\xff", 400, "JSON"),
        ("plain/run", {"input": "x", "inputs": "y"}, 400, "did you mean 'input'?"),
        ("plain/run", {"input": {"role": "user"}}, 400, "'input' must be a string or a list"),
        ("plain/run", {"input": [{"role": "nobody"}]}, 400, "input[0]"),
        ("plain/run", {"input": "x", "options": []}, 400, "'options' must be an object"),
        ("plain/run", {"input": "x", "options": {"tools": []}}, 400, "'tools'"),
        ("plain/run", {"input": "x", "options": {"num_ctx": 5}}, 400, "num_ctx"),
        ("plain/run", {"input": "x", "model": "gone/m"}, 404, "gone"),
        ("plain/run", {"input": "x", "model": "woollama/plain"}, 400, "not on another pattern"),
    ],
)
async def test_a_request_that_cannot_be_meant_is_refused(
    tmp_path: Path, path: str, body: Any, status: int, words: str
) -> None:
    async with housed(tmp_path) as (daemon, fake):
        found, error = await post(daemon, path, body)
    assert status == found, error
    assert words in error["message"]
    assert {"message", "type", "param", "code"} == set(error)
    assert [] == fake.requests


@pytest.mark.parametrize("value", [3, 1.5, True, None, ["a"], {"a": 1}])
async def test_p_40_a_variable_of_another_type_is_put_in_as_json(
    tmp_path: Path, value: Any
) -> None:
    async with housed(tmp_path) as (daemon, fake):
        body = {"input": "x", "variables": {"language": value}}
        rendered = await post(daemon, "plain/render", body)
        status, _ = await post(daemon, "plain/run", body)
    text = json.dumps(value, separators=(",", ":"))
    prompt = f"Say it in {text}."
    assert (200, {"prompt": f"{prompt}\n\nx"}) == rendered
    assert 200 == status
    assert prompt == fake.requests[0].json()["messages"][0]["content"]


def picture(data: bytes, *, kind: str = "image/png") -> dict[str, Any]:
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return {"input": [{"role": "user", "content": parts}]}


@pytest.mark.parametrize("stream", [False, True])
async def test_p_42_an_image_over_20_mib_is_refused(tmp_path: Path, stream: bool) -> None:
    body = {**picture(PNG + bytes(LIMIT_BYTES - len(PNG) + 1)), "stream": stream}
    async with housed(tmp_path) as (daemon, fake):
        status, error = await post(daemon, "plain/run", body)
    assert (400, "input[0].content[1].image_url") == (status, error["param"])
    assert "an inline image may have 20971520 bytes at most" in error["message"]
    assert [] == fake.requests


async def test_p_42_an_image_of_20_mib_passes_whole(tmp_path: Path) -> None:
    body = picture(PNG + bytes(LIMIT_BYTES - len(PNG)))
    async with housed(tmp_path) as (daemon, fake):
        status, _ = await post(daemon, "plain/run", body)
    assert 200 == status
    assert body["input"] == fake.requests[0].json()["messages"][1:]


@pytest.mark.parametrize("data", [b"", b"AAA*", b"A"])
async def test_p_42_an_image_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    body = picture(b"")
    body["input"][0]["content"][1]["image_url"]["url"] += data.decode()
    async with housed(tmp_path) as (daemon, fake):
        status, error = await post(daemon, "plain/run", body)
    assert (400, "input[0].content[1].image_url") == (status, error["param"])
    assert [] == fake.requests


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/w1/patterns/plain/run"])
async def test_p_42_a_model_that_is_declared_blind_gets_no_image(tmp_path: Path, path: str) -> None:
    asked = picture(PNG)
    chat = {"model": "woollama/plain", "messages": asked["input"]}
    async with housed(tmp_path, capabilities=Capabilities(accepts_audio=True)) as (daemon, fake):
        body = chat if path.startswith("/v1") else asked
        response = await daemon.client.post(path, json=body)
    error = response.json()["error"]
    assert (400, "input") == (response.status_code, error["param"])
    assert "up/m-1 takes no images: run the pattern on a model that does." == error["message"]
    assert [] == fake.requests


async def test_p_42_a_model_that_is_declared_to_see_gets_it(tmp_path: Path) -> None:
    sees = Capabilities(accepts_image_parts=True)
    async with housed(tmp_path, capabilities=sees) as (daemon, fake):
        status, _ = await post(daemon, "plain/run", picture(PNG))
    assert 200 == status
    assert picture(PNG)["input"] == fake.requests[0].json()["messages"][1:]
