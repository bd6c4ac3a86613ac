"""The ``openai`` package, unmodified, against the real daemon in a process of its own."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import openai
import pytest

from tests.clients.running import RunningDaemon, running_daemon
from woollama.core.testing.upstream import Exchange, Upstream, chunked, head, serve_in_thread, whole

pytestmark = pytest.mark.clients

LOOK: Any = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
EVENTS = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}


def reply(**message: Any) -> bytes:
    finish = "tool_calls" if "tool_calls" in message else "stop"
    said = {"role": "assistant", "content": None, "refusal": None, **message}
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [{"index": 0, "message": said, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
    headers = {"x-request-id": "peer-7", "x-ratelimit-remaining-requests": "5"}
    return whole(json.dumps(body).encode(), headers=headers)


def event(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return b"data: " + json.dumps({**body, "choices": choices, **fields}).encode() + b"\n\n"


def refusal(status: int, code: str, **headers: str) -> bytes:
    body = {"error": {"message": f"no: {code}", "type": "t", "param": None, "code": code}}
    return whole(json.dumps(body).encode(), status=status, headers=headers)


async def script(exchange: Exchange) -> None:
    """Answers by the name of the model."""
    body: dict[str, Any] = exchange.request.json() or {}
    match body.get("model"):
        case "text":
            await exchange.send(reply(content="hello"))
        case "tools":
            call = {"id": "k1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            await exchange.send(reply(tool_calls=[call]))
        case "stream":
            pieces = [
                event({"role": "assistant"}),
                event({"content": "a"}),
                event({"content": "b"}),
            ]
            pieces += [event({}, "stop"), b"data: [DONE]\n\n"]
            await exchange.send(head(200, EVENTS) + chunked(pieces))
        case "endless":
            await exchange.send(head(200, EVENTS) + chunked([event({"content": "a"})], end=False))
            await exchange.gone.wait()
        case "limited":
            await exchange.send(refusal(429, "rate_limit_exceeded", **{"retry-after": "3"}))
        case "secret":
            await exchange.send(refusal(401, "invalid_api_key"))
        case _:
            listed = {"object": "list", "data": [{"id": "org/text:1", "object": "model"}]}
            await exchange.send(whole(json.dumps(listed).encode()))


@pytest.fixture(scope="module")
def upstream() -> Generator[Upstream]:
    with serve_in_thread(script) as running:
        yield running


@pytest.fixture(scope="module", params=["hypercorn", "uvicorn"])
def daemon(
    request: pytest.FixtureRequest, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Generator[RunningDaemon]:
    text = f'[inferencers.up]\nbase_url = "{upstream.url}"\ndiscover = true\n'
    folder: Path = tmp_path_factory.mktemp(request.param)
    files = {"inferencers.toml": text}
    with running_daemon(folder, "--server", request.param, files=files, environ={}) as running:
        yield running


@pytest.fixture
def client(daemon: RunningDaemon) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="any", max_retries=0) as made:
        yield made


HI: Any = [{"role": "user", "content": "hi"}]


def test_chat(client: openai.OpenAI) -> None:
    got = client.chat.completions.create(model="up/text", messages=HI)
    assert ("hello", "stop") == (got.choices[0].message.content, got.choices[0].finish_reason)
    assert got.usage is not None
    assert 4 == got.usage.total_tokens


def test_stream(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="up/stream", messages=HI, stream=True)
    choices = [chunk.choices[0] for chunk in stream]
    assert "ab" == "".join(choice.delta.content or "" for choice in choices)
    assert "stop" == choices[-1].finish_reason


def test_raw_response(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model="up/text", messages=HI)
    assert ("peer-7", "5") == (
        raw.headers["x-request-id"],
        raw.headers["x-ratelimit-remaining-requests"],
    )
    assert raw.headers["x-woollama-request-id"].startswith("req_")
    assert "hello" == raw.parse().choices[0].message.content


def test_tools_pass(client: openai.OpenAI, upstream: Upstream) -> None:
    got = client.chat.completions.create(model="up/tools", messages=HI, tools=[LOOK])
    calls = got.choices[0].message.tool_calls
    assert calls is not None
    assert ["k1"] == [call.id for call in calls]
    assert [LOOK] == upstream.requests[-1].json()["tools"]


def test_models(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert "up/org/text:1" in names
    assert "up" == client.models.retrieve("up/org/text:1").owned_by


def test_error_classes(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nope/x"):
        client.chat.completions.create(model="nope/x", messages=HI)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nope/x")
    with pytest.raises(openai.AuthenticationError) as refused:
        client.chat.completions.create(model="up/secret", messages=HI)
    assert "invalid_api_key" == refused.value.code
    for stream in (False, True):
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(model="up/limited", messages=HI, stream=stream)
        assert "3" == limited.value.response.headers["retry-after"]
    with pytest.raises(openai.BadRequestError, match="'model' must not be empty"):
        client.chat.completions.create(model="", messages=HI)


def test_a_stream_that_is_left_is_closed_at_the_provider(
    client: openai.OpenAI, upstream: Upstream
) -> None:
    with client.chat.completions.create(model="up/endless", messages=HI, stream=True) as stream:
        next(iter(stream))
    exchange = upstream.exchanges[-1]
    assert "endless" == exchange.request.json()["model"]

    async def gone() -> bool:
        with anyio.move_on_after(5):
            while not exchange.gone.is_set():
                await anyio.lowlevel.checkpoint()
        return exchange.gone.is_set()

    assert anyio.run(gone)


def test_sigterm_ends_it_with_0_and_leaves_no_file(tmp_path: Path) -> None:
    with running_daemon(tmp_path, files={}, environ={}) as running:
        assert 0 == running.stop()
        assert [] == list((tmp_path / "run").iterdir())
