"""Recipes and patterns for the ``openai`` package: real MCP servers behind a daemon of its own."""

import json
import re
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.clients.running import RunningDaemon, running_daemon
from tests.core.scripted import call
from woollama.core.canonical import Reply, Usage
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import serve_in_thread

pytestmark = pytest.mark.clients

HI: Any = [{"role": "user", "content": "What is 17 * 23?"}]
PATTERNS = Path(__file__).parents[1] / "fixtures" / "patterns"
SERVERS = {
    "sums": {
        "command": sys.executable,
        "args": ["-P", "-m", "woollama.server.examples.clock"],
    }
}
RECIPES = f"""
[recipes.clerk]
inferencer = "up/m-1"
system = "Use the tools for every number."
tools = ["sums.calculate"]

[patterns]
dir = {json.dumps(str(PATTERNS))}
default_inferencer = "up/m-1"
"""
ONE = Usage(prompt_tokens=10, completion_tokens=1, total_tokens=11)
ASKS = say("Let me reckon.", calls=[call("sums__calculate", '{"expression":"17 * 23"}')], usage=ONE)
SAYS = say("It is 391.", usage=ONE)


@contextmanager
def clerk(
    folder: Path, replies: Iterable[Reply], *, settings: str = ""
) -> Generator[tuple[RunningDaemon, CompatibleFake]]:
    """A daemon with recipes, patterns and an MCP server, whose model says ``replies``."""
    fake = CompatibleFake(replies)
    with serve_in_thread(fake) as upstream:
        files = {
            "inferencers.toml": f'[inferencers.up]\nbase_url = "{upstream.url}"\n'
            'api_key_env = "UP_KEY"\n',
            "recipes.toml": RECIPES,
            "mcp.json": json.dumps({"mcpServers": SERVERS}),
            "woollama.toml": settings,
        }
        with running_daemon(folder, files=files, environ={"UP_KEY": "sk-test-1"}) as daemon:
            yield daemon, fake


@contextmanager
def client_of(url: str) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as made:
        yield made


def collected(stream: openai.Stream[ChatCompletionChunk]) -> tuple[str, list[str], int | None]:
    """The text of a stream, its finish reasons, and the total of its usage."""
    text, reasons, total = "", list[str](), None
    for chunk in stream:
        total = chunk.usage.total_tokens if chunk.usage is not None else total
        for choice in chunk.choices:
            assert choice.delta.tool_calls is None
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    return text, reasons, total


def servers_of(daemon: RunningDaemon) -> Mapping[str, Any]:
    """The MCP servers by their names, as ``GET /w1/tools`` shows them."""
    listed = httpx2.get(f"{daemon.url}/w1/tools", trust_env=False).json()
    return {each["name"]: each for each in listed["servers"]}


def test_a_recipe_with_a_real_mcp_server_answers_once_in_both_modes(tmp_path: Path) -> None:
    with (
        clerk(tmp_path, [ASKS, SAYS, ASKS, SAYS]) as (daemon, fake),
        client_of(f"{daemon.url}/v1") as client,
    ):
        assert "woollama/clerk" in [model.id for model in client.models.list()]
        whole = client.chat.completions.create(model="woollama/clerk", messages=HI)
        streamed = client.chat.completions.create(
            model="woollama/clerk",
            messages=HI,
            stream=True,
            stream_options={"include_usage": True},
        )
        found = collected(streamed)
        servers = servers_of(daemon)
    (choice,) = whole.choices
    assert ("It is 391.", None, "stop") == (
        choice.message.content,
        choice.message.tool_calls,
        choice.finish_reason,
    )
    assert whole.usage is not None
    assert 22 == whole.usage.total_tokens
    assert ("It is 391.", ["stop"], 22) == found
    assert ("connected", 3) == (servers["sums"]["health"], servers["sums"]["tools"])
    assert "idle" == servers["clock"]["health"]
    told = [message for request in fake.requests for message in request.json()["messages"]]
    results = [message["content"] for message in told if message["role"] == "tool"]
    assert ["391", "391"] == results


def test_the_embedded_model_calls_the_bundled_tool_in_both_modes(tmp_path: Path) -> None:
    """Without a file: the call is forced (RU-43), and what the tool says is told on."""
    asked: Any = [{"role": "user", "content": "What time is it?"}]
    with (
        running_daemon(tmp_path, files={}, environ={}) as daemon,
        client_of(f"{daemon.url}/v1") as client,
    ):
        assert "idle" == servers_of(daemon)["clock"]["health"]
        whole = client.chat.completions.create(model="woollama/now", messages=asked)
        streamed = client.chat.completions.create(model="woollama/now", messages=asked, stream=True)
        text, reasons, _ = collected(streamed)
        assert "connected" == servers_of(daemon)["clock"]["health"]
    a_time = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, [A-Z][a-z]+day")
    assert a_time.fullmatch(whole.choices[0].message.content or "")
    assert a_time.fullmatch(text)
    assert ("stop", ["stop"]) == (whole.choices[0].finish_reason, reasons)


def test_a_pattern_is_run_by_its_own_route_in_both_modes(tmp_path: Path) -> None:
    """What ``/w1`` answers is what the package's parsers read."""
    body = {"input": "Guten Morgen", "variables": {"lang_code": "en"}, "options": {"seed": 1}}
    with (
        clerk(tmp_path, [SAYS, SAYS]) as (daemon, fake),
        client_of(f"{daemon.url}/w1/patterns/translate") as client,
    ):
        whole = client.post("/run", cast_to=ChatCompletion, body=body)
        streamed = client.post(
            "/run",
            cast_to=ChatCompletion,
            body={**body, "stream": True},
            stream=True,
            stream_cls=openai.Stream[ChatCompletionChunk],
        )
        assert ("It is 391.", ["stop"], None) == collected(streamed)
    assert "It is 391." == whole.choices[0].message.content
    prompt = (PATTERNS / "translate" / "system.md").read_bytes().decode()
    assert "{{lang_code}}" in prompt
    for request in fake.requests:
        system, user = request.json()["messages"]
        assert prompt.replace("{{lang_code}}", "en") == system["content"]
        assert "Guten Morgen" == user["content"]
        assert 1 == request.json()["seed"]


def test_errors_are_the_packages_own(tmp_path: Path) -> None:
    settings = "[runs]\nmax_turns = 2\n"
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    with (
        clerk(tmp_path, [ASKS] * 4, settings=settings) as (daemon, _),
        client_of(f"{daemon.url}/v1") as client,
    ):
        create = client.chat.completions.create
        with pytest.raises(openai.NotFoundError, match="clark"):
            create(model="woollama/clark", messages=HI)
        with pytest.raises(openai.BadRequestError, match="brings its own tools"):
            create(model="woollama/clerk", messages=HI, tools=[tool])
        with pytest.raises(openai.InternalServerError, match="max turns = 2"):
            create(model="woollama/clerk", messages=HI)
        with pytest.raises(openai.APIError, match="max turns = 2"):
            list(create(model="woollama/clerk", messages=HI, stream=True))
