"""Images: the one-shot program, as a real child process (P-42)."""

import base64
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.fabric.fake.app import FakeFabric
from tests.server.fabric.rig import (
    Machine,
    alive,
    answer_of,
    backend_of,
    before,
    call,
    events_of,
    serving,
    text_of,
    until,
)
from woollama.core.canonical import ImagePart, RunFinished, TextPart, TurnStarted, UserMessage
from woollama.core.errors import CannotEncode, ProviderError, RequestError, TransportError
from woollama.core.patterns import PatternCall
from woollama.server.testing import Served

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)
INLINE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
MODELS = {"Ollama": ["llava"], "OpenAI": []}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    # Temporary files go where the test can see that they are gone.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    return Machine(tmp_path)


@asynccontextmanager
async def seeing(machine: Machine, **section: Any) -> AsyncGenerator[Served]:
    """A server whose fabric is a fake at an address, and whose program is a fake one."""
    fake = FakeFabric(models=MODELS)
    async with before(fake, section, machine.environ) as server:
        yield server


def look(url: str = INLINE, *, model: str = "ollama/llava", **more: Any) -> PatternCall:
    parts = (TextPart(text="What is this?"), ImagePart(url=url))
    return call(messages=(UserMessage(content=parts),), model=model, **more)


def temporary(machine: Machine) -> list[str]:
    return sorted(path.name for path in (machine.home.parent / "temp").iterdir())


async def test_p_42_an_inline_image_and_the_whole_prompt_reach_the_program(
    machine: Machine,
) -> None:
    async with seeing(machine) as server:
        answer = await answer_of(server, look())
    prompt = "# PURPOSE\n\nSummarise <the> text.\nWhat is this?"
    assert f"{prompt}|.png" == answer
    (seen,) = machine.calls()
    assert prompt == seen["stdin"]
    assert PNG.hex() == seen["attachment"]
    assert "0o700" == seen["mode"]
    assert [] == seen["files"]
    flags = [flag.partition("=")[0] for flag in seen["argv"]]
    assert ["--attachment", "--model", "--vendor", "--language", "--output"] == flags
    assert {"--model=llava", "--vendor=Ollama", "--language=en"} <= set(seen["argv"])
    assert [] == temporary(machine)


async def test_an_address_is_passed_on_and_nothing_is_fetched(machine: Machine) -> None:
    async with seeing(machine) as server:
        url = "https://example.org/a.png?b=-1"
        assert (await answer_of(server, look(url))).endswith(f"|{url}")
    (seen,) = machine.calls()
    assert f"--attachment={url}" in seen["argv"]


async def test_the_pattern_is_filled_in_before(machine: Machine) -> None:
    async with seeing(machine) as server:
        asked = PatternCall(
            name="translate",
            messages=look().messages,
            model="ollama/llava",
            variables={"lang_code": "es"},
        )
        answer = await answer_of(server, asked)
        assert "Translate to es:\n\nWhat is this?|.png" == answer
        missing = PatternCall(name="translate", messages=look().messages, model="ollama/llava")
        with pytest.raises(RequestError, match="'lang_code'"):
            await answer_of(server, missing)
    assert 1 == len(machine.calls())


async def test_options_are_its_flags(machine: Machine) -> None:
    options = {"temperature": 0, "top_p": 0.25, "presence_penalty": 1, "reasoning_effort": "low"}
    async with seeing(machine) as server:
        await answer_of(server, look(options=options))
    flags = machine.calls()[0]["argv"][5:]
    assert ["--temperature=0", "--topp=0.25", "--presencepenalty=1", "--thinking=low"] == flags


@pytest.mark.parametrize(
    ("option", "value"),
    [("context", "me"), ("strategy", "cot"), ("language", "de"), ("search", True), ("num_ctx", 1)],
)
async def test_what_would_lose_the_text_is_refused_beside_an_image(
    machine: Machine, option: str, value: Any
) -> None:
    async with seeing(machine) as server:
        with pytest.raises(CannotEncode) as caught:
            await answer_of(server, look(options={option: value}))
        assert option == caught.value.param
        await answer_of(server, look(options={"language": "en", "search": False}))
    assert 1 == len(machine.calls())


@pytest.mark.parametrize("url", ["file:///etc/passwd", "data:image/png;base64,!", "data:,x"])
async def test_p_42_a_bad_image_is_a_400_and_never_an_answer_without_it(
    machine: Machine, url: str
) -> None:
    async with seeing(machine) as server:
        with pytest.raises(RequestError) as caught:
            await answer_of(server, look(url))
    assert 400 == caught.value.status
    assert [] == machine.calls()


async def test_p_42_asked_to_stream_it_answers_in_the_events_of_a_stream(
    machine: Machine,
) -> None:
    async with seeing(machine) as server:
        events = await events_of(server, look(stream=True))
        whole = await events_of(server, look())
    kinds = [type(event).__name__ for event in events]
    assert ["TurnStarted", "Start", "TextDelta", "Finish", "RunFinished"] == kinds
    assert ["TurnStarted", "RunFinished"] == [type(event).__name__ for event in whole]
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert text_of(events) == last.reply.message.content
    assert "stop" == last.reply.finish_reason


async def test_the_answer_is_read_from_the_file_and_not_from_the_noise(machine: Machine) -> None:
    machine.behave()
    async with serving(
        {"managed": True, "default_model": "ollama/noisy"}, machine.environ
    ) as server:
        with pytest.raises(ProviderError):
            # The fake has no answer for this model in the other place.
            await answer_of(server, call(model="ollama/nobody"))
        answer = await answer_of(server, look(model="ollama/noisy"))
    assert "connection refused" not in answer
    assert answer.endswith("What is this?|.png")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("fail", "it ended with exit code 1: Error: upstream exploded"),
        ("oldfail", "it ended with exit code 1: Error: on stdout"),
        ("silent", "ended well with an empty answer"),
        ("unheard-of", "could not find vendor for model unheard-of"),
    ],
)
async def test_p_42_a_failure_is_a_502_with_its_words_and_leaves_no_file(
    machine: Machine, model: str, words: str
) -> None:
    async with seeing(machine) as server:
        with pytest.raises(ProviderError) as caught:
            await answer_of(server, look(model=model))
    assert words in caught.value.message
    assert 502 == caught.value.status
    assert [] == temporary(machine)


async def test_p_42_a_run_that_takes_too_long_is_killed_with_all_it_started(
    machine: Machine,
) -> None:
    async with seeing(machine, vision_timeout_s=1.5) as server:
        with pytest.raises(TransportError) as caught:
            await answer_of(server, look(model="hang"))
    assert (504, "timeout") == (caught.value.status, caught.value.kind)
    assert "still loading the model" in caught.value.message
    assert "still loading the model" == caught.value.payload
    pids = json.loads((machine.store / "hanging.json").read_text())
    assert [False, False] == [alive(pid) for pid in pids]
    assert [] == temporary(machine)


async def test_the_variable_of_other_daemons_limits_it(machine: Machine) -> None:
    environ = {**machine.environ, "WOOLLAMA_FABRIC_VISION_TIMEOUT_SECS": "0.5"}
    fake = FakeFabric(models=MODELS)
    async with before(fake, {}, environ) as server:
        with pytest.raises(TransportError, match="within 0\\.5 s"):
            await answer_of(server, look(model="hang"))


async def test_p_42_a_client_that_leaves_ends_it_and_takes_its_files(machine: Machine) -> None:
    file = machine.store / "hanging.json"
    async with seeing(machine) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(answer_of, server, look(model="hang"))
        await until(file.exists)
        assert 1 == len([name for name in temporary(machine) if "fabric" in name])
        tasks.cancel_scope.cancel()
    pids = json.loads(file.read_text())
    assert [False, False] == [alive(pid) for pid in pids]
    assert [] == temporary(machine)


async def test_p_42_a_program_that_is_killed_leaves_no_file(machine: Machine) -> None:
    file = machine.store / "hanging.json"
    raised: list[ProviderError] = []

    async def ask(server: Served) -> None:
        with pytest.raises(ProviderError) as caught:
            await answer_of(server, look(model="hang"))
        raised.append(caught.value)

    async with seeing(machine) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, server)
        await until(file.exists)
        os.kill(json.loads(file.read_text())[0], 9)
    assert "it was killed by SIGKILL: still loading the model" in raised[0].message
    assert [False, False] == [alive(pid) for pid in json.loads(file.read_text())]
    assert [] == temporary(machine)


async def test_a_program_that_does_not_run_is_told(machine: Machine, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    async with seeing(machine, command=str(broken)) as server:
        with pytest.raises(TransportError, match="does not run") as caught:
            await answer_of(server, look())
    assert 502 == caught.value.status
    assert [] == temporary(machine)


async def test_a_program_that_writes_no_file_gave_no_answer(
    machine: Machine, tmp_path: Path
) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\ncat > /dev/null\necho an answer on stdout\n")
    silent.chmod(0o755)
    async with seeing(machine, command=str(silent)) as server:
        with pytest.raises(ProviderError, match="wrote no answer"):
            await answer_of(server, look())
    assert [] == temporary(machine)


async def test_without_the_program_an_image_says_what_to_install(machine: Machine) -> None:
    async with seeing(machine, command="no-such-fabric") as server:
        with pytest.raises(TransportError) as caught:
            await answer_of(server, look())
    assert 502 == caught.value.status
    assert "Install fabric on this machine" in str(caught.value)


async def test_several_images_are_one_and_the_others_are_named(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    parts = (*(ImagePart(url=INLINE) for _ in range(3)), TextPart(text="a"))
    asked = call(messages=(UserMessage(content=parts),), model="ollama/llava")
    async with seeing(machine) as server:
        events = await events_of(server, asked)
    assert TurnStarted(1, ("messages.image_url",)) == events[0]
    assert "fabric: 3 images in one call; only the first is sent" in caplog.messages


async def test_it_gets_none_of_our_secrets(machine: Machine) -> None:
    fake = FakeFabric(models=MODELS)
    environ = {**machine.environ, "WOOLLAMA_TOKEN": "t", "OPENAI_API_KEY": "k"}
    async with before(fake, {}, environ) as server:
        await answer_of(server, look())
        assert backend_of(server).find("summarize") is not None
    (seen,) = machine.calls()
    assert "OPENAI_API_KEY" in seen["env"]
    assert "WOOLLAMA_TOKEN" not in seen["env"]
