"""Chat Completions on both sides: bytes pass (RU-15, RU-16)."""

import json

import anyio
import httpx2
import pytest

from tests.server.routes.serving import ASKED, HI, frames, serving
from woollama.core.providers import ModelSettings, Provider
from woollama.core.testing.upstream import Exchange, chunked, head, serve, whole
from woollama.core.transport import Timeouts
from woollama.core.wire import WireSettings

CHUNK = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
)
DONE = b"data: [DONE]\n\n"
EVENTS = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
REPLY = (
    b'{"id":"c1", "object":"chat.completion","created":1,"model":"m", "choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"ok"},"logprobs":null,"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4},"vendor":{"x":1e300}}'
)


def up(url: str, **fields: object) -> Provider:
    return Provider("up", url, **fields)  # type: ignore[arg-type] - fields of Provider


def answering(data: bytes):
    async def script(exchange: Exchange) -> None:
        await exchange.send(data)

    return script


async def test_the_bodies_pass_but_for_the_model() -> None:
    body = (
        b'{"model":"up/m-1","messages":[{"role":"user","content":"h\xc3\xa9","vendor":[1, 2]}],'
        b'"big":123456789012345678901234567890,"float":0.10000000000000001,"nested":{"a":{}}}'
    )
    async with serve(answering(whole(REPLY))) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat_raw(body)
    assert (200, REPLY) == (response.status_code, response.content)
    assert body.replace(b"up/m-1", b"m-1") == upstream.requests[0].body
    assert "/v1/chat/completions" == upstream.requests[0].path


async def test_the_bytes_of_a_stream_pass() -> None:
    stream = CHUNK % b"a" + b": ping\n\n" + CHUNK % b"b" + END + DONE

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([stream]))

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat(stream=True)
    assert stream == response.content
    assert "no-cache" in response.headers["cache-control"]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "no" == response.headers["x-accel-buffering"]


async def test_a_refusal_keeps_its_status_its_body_and_the_headers_that_matter() -> None:
    body = b'{"error":{"message":"slow down","type":"requests","param":null,"code":"rate"}}'
    headers = {"retry-after": "7", "x-request-id": "peer-1", "x-ratelimit-limit-requests": "9"}
    reply = whole(body, status=429, headers={**headers, "set-cookie": "a=b"})
    async with serve(answering(reply)) as upstream, serving(up(upstream.url)) as daemon:
        for stream in (False, True):
            response = await daemon.chat(stream=stream)
            assert 429 == response.status_code
            assert json.loads(body) == response.json()
            assert headers.items() <= dict(response.headers).items()
            assert "set-cookie" not in response.headers
            assert response.headers["x-woollama-request-id"].startswith("req_")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_page_becomes_an_error_object(stream: bool) -> None:
    page = b"<html><body>Bad Gateway</body></html>"
    reply = whole(page, status=502, headers={"content-type": "text/html"})
    async with serve(answering(reply)) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat(stream=stream)
    assert 502 == response.status_code
    assert "Bad Gateway" in response.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"no","code":500},"choices":null}',
        b"<html>hello</html>",
        b"",
        b'{"object":"list"}',
    ],
)
async def test_a_200_that_is_no_reply_is_an_error(body: bytes, stream: bool) -> None:
    async with serve(answering(whole(body))) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat(stream=stream)
    assert 400 <= response.status_code
    assert response.json()["error"]["message"]


async def test_p_24_a_stream_without_its_end_is_an_error_and_never_done() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([CHUNK % b"par"]))

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat(stream=True)
    first, last = frames(response.content)
    assert "par" == first["choices"][0]["delta"]["content"]
    assert "stream ended before a finish reason" in last["error"]["message"]
    assert b"[DONE]" not in response.content


async def test_a_connection_that_is_cut_ends_in_an_error_event() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([CHUNK % b"par"], end=False))
        await exchange.close()

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat(stream=True)
    assert "Provider 'up'" in frames(response.content)[-1]["error"]["message"]
    assert b"[DONE]" not in response.content


async def test_an_error_in_the_stream_is_the_end_of_it() -> None:
    failing = CHUNK % b"a" + b'data: {"error":{"message":"boom","code":400}}\n\n' + DONE

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([failing]))

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat(stream=True)
    assert "boom" == frames(response.content)[-1]["error"]["message"]
    assert b"[DONE]" not in response.content


async def test_one_object_becomes_events_when_a_stream_was_asked_for() -> None:
    async with serve(answering(whole(REPLY))) as upstream, serving(up(upstream.url)) as daemon:
        options = {"include_usage": True}
        response = await daemon.chat(stream=True, stream_options=options)
    *chunks, usage, done = frames(response.content)
    assert "ok" == "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
    assert ([], 4) == (usage["choices"], usage["usage"]["total_tokens"])
    assert "[DONE]" == done


async def test_events_become_one_object_when_none_were_asked_for() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([CHUNK % b"ok" + END + DONE]))

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat()
    assert "ok" == response.json()["choices"][0]["message"]["content"]


async def test_a_client_that_leaves_in_a_stream_closes_the_upstream() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([CHUNK % b"a"], end=False))
        await exchange.gone.wait()

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        asked = {**ASKED, "stream": True}
        async with daemon.client.stream("POST", "/v1/chat/completions", json=asked) as response:
            async for _ in response.aiter_bytes():
                break
        await upstream.wait_for(1)
        with anyio.fail_after(5):
            await upstream.exchanges[0].gone.wait()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_before_the_first_byte_closes_the_upstream(stream: bool) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                await daemon.chat(stream=stream)

            tasks.start_soon(ask)
            await upstream.wait_for(1)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await upstream.exchanges[0].gone.wait()


async def test_a_provider_that_is_down_is_a_502_with_its_name() -> None:
    async with serving(up("http://127.0.0.1:1/v1")) as daemon:
        response = await daemon.chat()
    assert 502 == response.status_code
    assert "'up'" in response.json()["error"]["message"]


async def test_a_provider_that_does_not_answer_is_a_504() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    limits = Timeouts(first_byte=0.05)
    async with serve(script) as upstream, serving(up(upstream.url), timeouts=limits) as daemon:
        response = await daemon.chat()
    assert 504 == response.status_code
    assert "'up'" in response.json()["error"]["message"]


async def test_silence_is_filled_with_comments_between_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("woollama.server.surface.client.KEEP_ALIVE_S", 0.02)
    heard = anyio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(200, EVENTS) + chunked([CHUNK % b"a"], end=False))
        await heard.wait()
        await exchange.send(chunked([END + DONE]))

    body = b""
    async with serve(script) as upstream, serving(up(upstream.url)) as daemon:
        asked = {**ASKED, "stream": True}
        async with daemon.client.stream("POST", "/v1/chat/completions", json=asked) as response:
            async for piece in response.aiter_bytes():
                body += piece
                if b": keep-alive\n\n" in body:
                    heard.set()
    assert CHUNK % b"a" + END + DONE == body.replace(b": keep-alive\n\n", b"")


async def test_ru_16_settings_act_on_the_top_level() -> None:
    declared = ModelSettings(efforts=("low", "high"), effort="low", seed=7)
    settings = WireSettings(output_field="max_completion_tokens", drop_params=frozenset({"user"}))
    provider = {
        "settings": settings,
        "extra_body": {"top_k": 5, "temperature": 0.9},
        "model_settings": {"m-1": declared},
    }
    async with (
        serve(answering(whole(REPLY))) as upstream,
        serving(up(upstream.url, **provider)) as daemon,
    ):
        await daemon.chat(max_tokens=5, temperature=0.1, user="me")
        refused = await daemon.chat(reasoning_effort="medium")
    assert {
        "model": "m-1",
        "messages": HI,
        "max_completion_tokens": 5,
        "temperature": 0.1,
        "top_k": 5,
        "reasoning_effort": "low",
        "seed": 7,
    } == json.loads(upstream.requests[0].body)
    assert 400 == refused.status_code
    assert "low, high" in refused.json()["error"]["message"]


async def test_ru_18_ollamas_options_are_refused_elsewhere() -> None:
    async with serving(up("http://127.0.0.1:1/v1")) as daemon:
        response = await daemon.chat(options={"num_ctx": 1})
    assert (400, "options") == (response.status_code, response.json()["error"]["param"])


async def test_a_key_that_is_echoed_does_not_reach_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UP_KEY", "sk-secret-123")
    body = b'{"error":{"message":"bad key sk-secret-123","type":"auth","code":"k"}}'
    reply = whole(body, status=401)
    async with (
        serve(answering(reply)) as upstream,
        serving(up(upstream.url, api_key_env="UP_KEY")) as daemon,
    ):
        response = await daemon.chat()
    assert "Bearer sk-secret-123" == upstream.requests[0].headers["authorization"]
    assert (401, "bad key ***") == (response.status_code, response.json()["error"]["message"])


async def test_a_missing_key_is_named() -> None:
    async with serving(up("http://127.0.0.1:1/v1", api_key_env="NO_SUCH_KEY")) as daemon:
        response = await daemon.chat()
    assert 400 == response.status_code
    assert "NO_SUCH_KEY" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "empty"),
        (b"{", "not valid JSON"),
        (b"[1]", "JSON object"),
        (b"null", "JSON object"),
        (b'{"messages":[]}', "'model' is missing"),
        (b'{"model":5}', "'model' must be a string, not 5"),
        (b'{"model":""}', "'model' must not be empty"),
        (b'{"model":"up/m","stream":"yes"}', "'stream' must be true or false"),
        (b'{"model":"up/m","messages":[{"role":"user","content":"\xff\xfe"}]}', "not valid JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
async def test_a_bad_body_says_what_is_wrong_and_keeps_the_connection(
    body: bytes, word: str
) -> None:
    async with serve(answering(whole(REPLY))) as upstream, serving(up(upstream.url)) as daemon:
        response = await daemon.chat_raw(body)
        assert 400 == response.status_code
        assert word in response.json()["error"]["message"]
        assert "close" != response.headers.get("connection")
        assert 200 == (await daemon.chat()).status_code


async def test_a_long_body_is_a_413() -> None:
    async with serving(up("http://127.0.0.1:1/v1"), body_limit_bytes=1000) as daemon:
        response = await daemon.chat_raw(b'{"model":"up/m","x":"' + b"y" * 2000 + b'"}')
        assert 413 == response.status_code

        async def pieces():
            for _ in range(20):
                yield b"y" * 100

        response = await daemon.client.post("/v1/chat/completions", content=pieces())
        assert 413 == response.status_code


async def test_an_unknown_model_is_a_404_with_near_names() -> None:
    provider = Provider("up", "http://127.0.0.1:1/v1", models=("qwen3:8b", "llama3"))
    async with serving(provider) as daemon:
        await daemon.client.get("/v1/models")
        for model, near in (("ups/qwen3:8b", "up/qwen3:8b"), ("qwen3:8b", "up/qwen3:8b")):
            response = await daemon.chat(model=model)
            error = response.json()["error"]
            assert (404, "model_not_found") == (response.status_code, error["code"])
            assert near in error["message"]


async def test_the_request_id_is_ours_when_the_peer_has_none() -> None:
    async with serve(answering(whole(REPLY))) as upstream, serving(up(upstream.url)) as daemon:
        response: httpx2.Response = await daemon.chat()
    assert response.headers["x-request-id"].startswith("req_")
