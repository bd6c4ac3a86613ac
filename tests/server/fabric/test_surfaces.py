"""fabric's patterns where clients meet them: ``/w1``, and ``/v1`` when there is a default model."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.fabric.fake.app import FakeFabric
from tests.server.fabric.rig import Machine, before, serving
from woollama.server.fabric import plugin
from woollama.server.testing import Answer, use_plugins

MODELS = {"Ollama": ["echo", "llama3.2:latest", "fail", "empty", "cut", "hang", "llava"]}
RUN = "/w1/patterns/summarize/run"


def fabric() -> FakeFabric:
    return FakeFabric(models=MODELS)


def chunks(answer: Answer) -> list[Any]:
    """The events of a stream but ``[DONE]``."""
    frames = [frame for frame in answer.text.split("\n\n") if frame.startswith("data: ")]
    return [json.loads(frame[6:]) for frame in frames if frame != "data: [DONE]"]


def said(answer: Answer) -> str:
    return answer.json()["choices"][0]["message"]["content"]


async def test_its_patterns_are_listed_with_the_others() -> None:
    async with before(fabric()) as server:
        data = (await server.client.get("/w1/patterns")).json()["data"]
    ours = [entry for entry in data if entry["source"] == "fabric"]
    assert [
        {"name": "summarize", "variables": [], "source": "fabric"},
        {"name": "translate", "variables": [], "source": "fabric"},
    ] == ours


async def test_they_are_rendered() -> None:
    async with before(fabric()) as server:
        body = {"input": "x", "variables": {"lang_code": "es"}}
        good = await server.client.post("/w1/patterns/translate/render", body)
        missing = await server.client.post("/w1/patterns/translate/render", {"input": "x"})
        unknown = await server.client.post("/w1/patterns/nope/render", {})
    assert {"prompt": "Translate to es:\n\nx\n"} == good.json()
    assert (400, "variables.lang_code") == (missing.status, missing.json()["error"]["param"])
    assert 404 == unknown.status


async def test_they_run_plain() -> None:
    fake = fabric()
    async with before(fake) as server:
        body = {"input": "hi", "model": "ollama/echo", "context": "me", "strategy": "cot"}
        answer = await server.client.post(RUN, body)
    expected = "Think step by step.\nI am a sheep.\n# PURPOSE\n\nSummarise <the> text.\nhi"
    assert expected == said(answer)
    assert "ollama/echo" == answer.json()["model"]
    assert "stop" == answer.json()["choices"][0]["finish_reason"]


async def test_they_run_streaming_with_the_same_text_and_a_good_end() -> None:
    async with before(fabric()) as server:
        body = {"input": "hi", "model": "ollama/llama3.2:latest", "stream": True}
        answer = await server.client.post(RUN, body)
        whole = await server.client.post(RUN, {**body, "stream": False})
    texts = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks(answer)]
    assert said(whole) == "".join(texts) == "Hello <world>\n"
    assert answer.text.endswith("data: [DONE]\n\n")
    assert "text/event-stream" in answer.headers["content-type"]


@pytest.mark.parametrize("stream", [False, True])
async def test_p_43_what_is_not_sent_is_named_in_a_header(stream: bool) -> None:
    async with before(fabric()) as server:
        messages = [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]
        body = {"input": messages, "model": "ollama/echo", "stream": stream}
        answer = await server.client.post(RUN, body)
    assert 200 == answer.status
    assert "messages.assistant, messages.system" == answer.headers["x-woollama-dropped"]
    assert "a\\n\\nc" in answer.text


@pytest.mark.parametrize("stream", [False, True])
async def test_p_43_a_missing_variable_is_a_400_streaming_too(stream: bool) -> None:
    async with before(fabric()) as server:
        body = {"input": "x", "model": "ollama/echo", "stream": stream}
        answer = await server.client.post("/w1/patterns/translate/run", body)
    assert (400, "variables.lang_code") == (answer.status, answer.json()["error"]["param"])


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_before_the_first_text_has_its_status(stream: bool) -> None:
    async with before(fabric()) as server:
        body = {"input": "x", "model": "ollama/empty", "stream": stream}
        answer = await server.client.post(RUN, body)
    assert 502 == answer.status
    assert "fabric: empty response" == answer.json()["error"]["message"]


@pytest.mark.parametrize("model", ["fail", "cut"])
async def test_an_error_behind_text_is_the_last_event_without_done(model: str) -> None:
    async with before(fabric()) as server:
        body = {"input": "x", "model": f"ollama/{model}", "stream": True}
        answer = await server.client.post(RUN, body)
    assert 200 == answer.status
    assert "error" in chunks(answer)[-1]
    assert "[DONE]" not in answer.text


async def test_an_option_without_words_is_refused_by_name() -> None:
    async with before(fabric()) as server:
        body = {"input": "x", "model": "ollama/echo", "options": {"max_tokens": 5}}
        answer = await server.client.post(RUN, body)
    assert (400, "max_tokens") == (answer.status, answer.json()["error"]["param"])


async def test_no_model_is_a_400_that_says_so() -> None:
    async with before(fabric()) as server:
        answer = await server.client.post(RUN, {"input": "x"})
    assert (400, "model") == (answer.status, answer.json()["error"]["param"])


async def test_with_a_default_model_an_openai_client_needs_only_the_name() -> None:
    async with before(fabric(), {"default_model": "ollama/llama3.2:latest"}) as server:
        body = {
            "model": "woollama/summarize",
            "messages": [{"role": "user", "content": "hi"}],
        }
        plain = await server.client.post("/v1/chat/completions", body)
        stream = await server.client.post("/v1/chat/completions", {**body, "stream": True})
    assert "Hello <world>\n" == said(plain)
    assert "woollama/summarize" == plain.json()["model"]
    assert 15 == plain.json()["usage"]["total_tokens"]
    assert stream.text.endswith("data: [DONE]\n\n")


async def test_a_recipe_of_the_same_name_wins(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    recipes = '[recipes.summarize]\ninferencer = "ollama/x"\nsystem = "Ours."\n'
    section = {"managed": True, "default_model": "ollama/echo"}
    files = {"mcp.json": json.dumps({"fabric": section}), "recipes.toml": recipes}
    async with use_plugins(plugin, files=files, environ=machine.environ) as server:
        answer = await server.client.post("/w1/patterns/summarize/render", {})
        data = (await server.client.get("/w1/patterns")).json()["data"]
    assert "Ours." == answer.json()["prompt"]
    sources = {entry["name"]: entry["source"] for entry in data}
    assert ("recipe", "fabric") == (sources["summarize"], sources["translate"])


@pytest.mark.parametrize("stream", [False, True])
async def test_p_42_an_image_is_answered_in_the_shape_that_was_asked_for(
    tmp_path: Path, stream: bool
) -> None:
    machine = Machine(tmp_path)
    url = f"data:image/png;base64,{base64.b64encode(b'png').decode()}"
    content = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {
        "input": [{"role": "user", "content": content}],
        "model": "ollama/llava",
        "stream": stream,
    }
    async with serving({"managed": True}, machine.environ) as server:
        answer = await server.client.post(RUN, body)
        bad = {**content[1], "image_url": {"url": "data:image/png;base64,!"}}
        body["input"] = [{"role": "user", "content": [content[0], bad]}]
        refused = await server.client.post(RUN, body)
    assert 200 == answer.status
    if stream:
        texts = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks(answer)]
        assert "".join(texts).endswith("hi|.png")
        assert answer.text.endswith("data: [DONE]\n\n")
    else:
        assert said(answer).endswith("hi|.png")
    assert 400 == refused.status
