"""``/fabric/*``: what passes, byte for byte and as it comes, and what does not (RU-61)."""

import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import pytest

from tests.server.fabric.fake.app import FakeFabric
from tests.server.fabric.fake.serving import serve
from tests.server.fabric.rig import Machine, before, serving, until
from tests.server.fabric.transcripts import TRANSCRIPTS, parts
from woollama.core.errors import TransportError
from woollama.core.transport import Timeouts, WireResponse
from woollama.core.transport.fast import FastTransport
from woollama.core.wire.codec import WireRequest
from woollama.server.address import Address
from woollama.server.app import make_app
from woollama.server.door import behind_door
from woollama.server.settings import Settings
from woollama.server.testing import Served

CHAT = {
    "prompts": [{"userInput": "hi", "model": "llama3.2:latest", "patternName": "summarize"}],
    "temperature": 0.7,
    "topP": 0.9,
}
MODELS = {"Ollama": ["llama3.2:latest", "echo", "fail", "hold", "wait", "cut", "big"]}


def chat(**prompt: Any) -> dict[str, Any]:
    return {"prompts": [{"userInput": "hi", "model": "echo", **prompt}]}


@asynccontextmanager
async def over_http(server: Served) -> AsyncGenerator[str]:
    """The server on a real port, behind its door, without a token."""
    settings = Settings(config_dir=server.config_dir)
    address = Address(host="127.0.0.1", port=80)
    app = behind_door(make_app(server.services), settings, address)
    async with serve(app) as url:
        yield url


@asynccontextmanager
async def asked(
    url: str, method: str = "POST", body: Any = None, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[WireResponse]:
    transport = FastTransport()
    request = WireRequest(
        method=method,
        url=url,
        headers={"content-type": "application/json", **(headers or {})},
        body=b"" if body is None else json.dumps(body).encode(),
    )
    try:
        async with transport.open(request, timeouts=Timeouts()) as response:
            yield response
    finally:
        await transport.aclose()


@asynccontextmanager
async def both(fake: FakeFabric) -> AsyncGenerator[tuple[str, str]]:
    """The addresses of fabric itself, and of a server before it."""
    async with (
        serve(fake.app) as direct,
        serving({"url": direct}) as server,
        over_http(server) as proxied,
    ):
        yield direct, proxied


async def read(url: str, *args: Any, **more: Any) -> tuple[int, bytes]:
    async with asked(url, *args, **more) as response:
        return response.status, b"".join([chunk async for chunk in response.chunks])


# What passes


@pytest.mark.parametrize(
    "name", ["T1", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12"]
)
async def test_ru_61_a_transcript_passes_byte_for_byte(name: str) -> None:
    head, _, body = TRANSCRIPTS[name]["request"].partition("\r\n\r\n")
    method, path, _ = head.split("\r\n")[0].split(" ")
    async with before(FakeFabric(key="k1"), {"api_key_env": "K"}, {"K": "k1"}) as server:
        headers = {"content-type": "application/json"}
        answer = await server.client.request(
            method, f"/fabric{path}", body=body.encode(), headers=headers
        )
    status, expected, pieces = parts(TRANSCRIPTS[name]["answer"].encode())
    assert (status, b"".join(pieces)) == (answer.status, answer.body)
    assert expected["content-type"] == answer.headers["content-type"]
    assert "access-control-allow-origin" not in answer.headers
    assert answer.complete


async def test_ru_61_a_streamed_chat_is_the_same_bytes_as_a_direct_call() -> None:
    fake = FakeFabric(models=MODELS)
    async with both(fake) as (direct, proxied):
        for model in ("llama3.2:latest", "fail", "big", "echo"):
            body = chat(model=model, patternName="summarize")
            straight = await read(f"{direct}/chat", "POST", body)
            through = await read(f"{proxied}/fabric/chat", "POST", body)
            assert straight == through
            assert 200 == through[0]


async def test_ru_61_pieces_pass_as_they_come() -> None:
    """The second piece is sent only when the first has arrived at the client."""
    fake = FakeFabric(models=MODELS)
    async with before(fake) as server, over_http(server) as url:
        async with asked(f"{url}/fabric/chat", "POST", chat(model="wait")) as response:
            assert "text/readystream" == response.headers["content-type"]
            fake.go.set()
            rest = b"".join([chunk async for chunk in response.chunks])
        async with asked(f"{url}/fabric/chat", "POST", chat(model="hold")) as response:
            chunks = aiter(response.chunks)
            with anyio.fail_after(5):
                first = await anext(chunks)
    assert b'"content":"late"' in rest
    assert b'"content":"partial "' in first


async def test_the_delay_of_the_first_byte_is_reported(
    record_property: Callable[[str, object], None],
) -> None:
    """No bound: a clock proves nothing on a machine with other work."""
    fake = FakeFabric(models=MODELS)

    async def first_byte_ms(url: str) -> float:
        begun = time.perf_counter()
        async with asked(url, "POST", CHAT) as response:
            await anext(aiter(response.chunks))
            return (time.perf_counter() - begun) * 1000

    async with both(fake) as (direct, proxied):
        straight = median([await first_byte_ms(f"{direct}/chat") for _ in range(21)])
        through = median([await first_byte_ms(f"{proxied}/fabric/chat") for _ in range(21)])
    record_property("first_byte_direct_ms", straight)
    record_property("first_byte_proxied_ms", through)
    sys.stdout.write(f"first byte: {straight:.2f} ms direct, {through:.2f} ms through woollama\n")


async def test_a_client_that_leaves_ends_fabrics_work() -> None:
    fake = FakeFabric(models=MODELS)
    async with before(fake) as server, over_http(server) as url:
        async with asked(f"{url}/fabric/chat", "POST", chat(model="hold")) as response:
            await anext(aiter(response.chunks))
        with anyio.fail_after(5):
            await fake.left.wait()


async def test_only_what_fabric_needs_goes_on_and_our_key_takes_the_clients_place() -> None:
    fake = FakeFabric(key="k1")
    headers = {
        "authorization": "Bearer token-of-the-test",
        "x-api-key": None,
        "cookie": "c=1",
        "x-forwarded-for": "1.2.3.4",
        "content-type": "application/json; charset=utf-8",
    }
    async with before(fake, {"api_key_env": "K"}, {"K": "k1"}) as server:
        answer = await server.client.request(
            "POST",
            "/fabric/patterns/summarize/apply?lang=x",
            body=b'{"input":"x"}',
            headers=headers,
        )
    assert 200 == answer.status
    got = fake.requests[-1]
    assert "/patterns/summarize/apply?lang=x" == got["path"]
    assert ("k1", "application/json; charset=utf-8") == (
        got["headers"]["x-api-key"],
        got["headers"]["content-type"],
    )
    assert set() == {"authorization", "cookie", "x-forwarded-for"} & set(got["headers"])


async def test_fabrics_clients_show_our_token_where_they_have_fabrics_key() -> None:
    async with before(FakeFabric()) as server:
        without = {"authorization": None}
        refused = await server.client.get("/fabric/patterns/names", headers=without)
        shown = {**without, "x-api-key": "token-of-the-test"}
        allowed = await server.client.get("/fabric/patterns/names", headers=shown)
    assert (401, 200) == (refused.status, allowed.status)


async def test_names_are_passed_as_they_are_written() -> None:
    fake = FakeFabric(patterns={"a b": "x", "ü": "y"})
    async with before(fake) as server:
        assert "x" == (await server.client.get("/fabric/patterns/a%20b")).json()["Pattern"]
        assert "y" == (await server.client.get("/fabric/patterns/%C3%BC")).json()["Pattern"]
    assert ["GET /patterns/a%20b", "GET /patterns/%C3%BC"] == fake.paths()


# What does not


@pytest.mark.parametrize(
    ("method", "path", "group"),
    [
        ("POST", "/patterns/x", "writes"),
        ("DELETE", "/patterns/summarize", "writes"),
        ("GET", "/config", "config"),
        ("POST", "/config/update", "config"),
        ("GET", "/sessions/names", "contents"),
        ("GET", "/contexts/me", "contents"),
        ("POST", "/youtube/transcript", "youtube"),
        ("GET", "/swagger/index.html", "other"),
    ],
)
async def test_ru_61_a_closed_route_is_403_and_fabric_hears_nothing_of_it(
    method: str, path: str, group: str
) -> None:
    fake = FakeFabric()
    async with before(fake) as server:
        answer = await server.client.request(method, f"/fabric{path}", body=b"{}")
    assert 403 == answer.status
    error = answer.json()["error"]
    assert ("permission_error", "route_closed") == (error["type"], error["code"])
    assert f'"expose": ["{group}"]' in error["message"]
    assert [] == fake.paths()


async def test_ru_61_what_the_section_opens_passes() -> None:
    fake = FakeFabric()
    async with before(fake, {"expose": ["writes", "config", "contents"]}) as server:
        client = server.client
        assert 200 == (await client.request("POST", "/fabric/patterns/x", body=b"new")).status
        assert "new" == fake.patterns["x"]
        assert {"openai": "sk-in-clear"} == (await client.get("/fabric/config")).json()
        assert "null" == (await client.get("/fabric/sessions/names")).text
        assert 500 == (await client.get("/fabric/contexts/zz")).status
        assert 403 == (await client.request("POST", "/fabric/youtube/transcript")).status


@pytest.mark.parametrize(
    "body",
    [
        chat(patternName="/etc/hostname"),
        chat(patternName="~/.config/fabric/.env"),
        chat(PATTERNNAME="/etc/hostname"),
        chat(contextName="../.env"),
        chat(sessionName="a/b"),
        chat(patternName="summarize", variables={"a": "{{plugin:file:read:/etc/passwd}}"}),
        chat(patternName="summarize", variables={"{{a": "b"}),
        chat(patternName="triple", variables={"x": "{plugin:sys:env:HOME}"}),
        chat(patternName="summarize", Variables={"a": "{{a}}"}),
        {"prompts": [chat()["prompts"][0], *chat(patternName="/etc/hostname")["prompts"]]},
    ],
)
@pytest.mark.parametrize("path", ["/chat", "/%63hat"])
async def test_ru_61_a_chat_that_would_read_files_or_be_expanded_is_a_400(
    body: Any, path: str
) -> None:
    fake = FakeFabric(patterns={"summarize": "s", "triple": "{{{x}}}"}, models=MODELS)
    async with before(fake) as server:
        answer = await server.client.post(f"/fabric{path}", body)
    assert 400 == answer.status
    assert not any(each.startswith("POST") for each in fake.paths())


@pytest.mark.parametrize(
    "path", ["/patterns/p/apply", "/patterns/p/%61pply", "/%70atterns/p/apply"]
)
async def test_ru_61_the_same_holds_for_apply_and_its_query(path: str) -> None:
    fake = FakeFabric(patterns={"p": "{{a}} {{{a}}}"})
    async with before(fake) as server:
        client = server.client
        for query, variables in (
            ("", {"a": "{{x}}"}),
            ("", {"a": "{plugin:sys:env:HOME}"}),
            ("?a=%7B%7Bx%7D%7D", {}),
            ("?a={{x}}", {}),
            ("?a=%7Bplugin:sys:env:HOME%7D", {}),
            ("?a=1&a=2", {}),
        ):
            answer = await client.post(f"/fabric{path}{query}", {"variables": variables})
            assert 400 == answer.status
        assert not any(each.startswith("POST") for each in fake.paths())
        answer = await client.post(f"/fabric{path}", {"input": "x", "variables": {"a": "b"}})
    assert "b {b}\nx" == answer.json()["Pattern"]


async def test_a_body_that_fabric_would_read_in_part_is_checked_in_that_part() -> None:
    fake = FakeFabric(models=MODELS)
    evil = json.dumps(chat(patternName="/etc/hostname")).encode() + b" and more"
    good = json.dumps(chat(patternName="summarize")).encode() + b" and more"
    async with before(fake) as server:
        assert 400 == (await server.client.request("POST", "/fabric/chat", body=evil)).status
        assert 400 == (await server.client.request("POST", "/fabric/chat", body=b"{")).status
        assert 200 == (await server.client.request("POST", "/fabric/chat", body=good)).status


async def test_a_name_that_is_a_path_is_a_400() -> None:
    fake = FakeFabric()
    async with before(fake, {"expose": ["other", "config"]}) as server:
        for path in ("/patterns/..%2fconfig", "/patterns/../config", "/patterns/%2e%2e"):
            assert 400 == (await server.client.get(f"/fabric{path}")).status
    assert [] == fake.paths()


async def test_a_body_over_the_limit_is_413() -> None:
    async with before(FakeFabric()) as server:
        body = b'{"prompts": "' + b"x" * (33 * 1024 * 1024) + b'"}'
        answer = await server.client.request(
            "POST", "/fabric/chat", body=body, headers={"content-length": None}
        )
    assert 413 == answer.status


# When fabric is not there


async def test_without_fabric_it_is_a_502_and_comes_back_with_it() -> None:
    fake = FakeFabric()
    async with serve(fake.app) as url:
        port = int(url.rpartition(":")[2])
    async with serving({"url": url}) as server:
        answer = await server.client.get("/fabric/patterns/names")
        assert 502 == answer.status
        assert answer.json()["error"]["message"].startswith("fabric: ")
        async with serve(fake.app, port):
            assert 200 == (await server.client.get("/fabric/patterns/names")).status


async def test_a_stream_that_breaks_off_is_not_ended_as_if_it_were_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake = FakeFabric(models=MODELS)
    async with before(fake) as server, over_http(server) as url:
        with pytest.raises(TransportError) as caught:
            await read(f"{url}/fabric/chat", "POST", chat(model="cut"))
    assert "cut" == caught.value.kind
    ours = [each for each in caplog.records if each.name.startswith("woollama.")]
    assert ["a reply of fabric's broke off"] == [each.message.split(":")[0] for each in ours]


async def test_a_managed_fabric_that_was_killed_is_there_for_the_next_request(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    async with serving({"managed": True}, machine.environ) as server, over_http(server) as url:
        path = f"{url}/fabric/chat"
        async with asked(path, "POST", chat(model="hold")) as response:
            chunks = aiter(response.chunks)
            first = await anext(chunks)
            os.kill(machine.starts()[0]["pid"], 9)
            with pytest.raises(TransportError):
                await anext(chunks)
        assert b"partial" in first
        status, body = await read(path, "POST", chat(model="echo"))
        assert (200, True) == (status, b'"content":"hi"' in body)
    await until(lambda: 2 == len(machine.starts()))


async def test_any_page_in_the_place_of_fabric_passes_as_it_is() -> None:
    """An HTML error page is not ours to change; no pattern comes of it."""
    fake = FakeFabric(control=lambda: {"names": "html"})
    async with before(fake) as server:
        answer = await server.client.get("/fabric/patterns/names")
        assert [] == list(server.services.plugins.pattern_backends[0].list())
    assert "<html><h1>It works!</h1></html>" == answer.text
