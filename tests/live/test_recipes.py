"""The recipes that come with woollama, on the embedded model, as a user has them without a file."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from woollama.core.canonical import (
    NOTHING,
    Reply,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    UserMessage,
    text_of,
)
from woollama.core.patterns import PatternCall
from woollama.core.tools import render_tool_result
from woollama.server.lifespan import open_services
from woollama.server.services import Services
from woollama.server.settings import load_settings

pytestmark = pytest.mark.live

A_TIME = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, [A-Z][a-z]+day")


class House:
    """All that is there without a configuration."""

    def __init__(self, services: Services) -> None:
        self.services = services

    async def run(self, name: str, text: str, **more: Any) -> tuple[Reply, list[Any]]:
        """What a recipe answers, and the events on the way."""
        found = self.services.directory.catalog.find(name)
        assert found is not None
        call = PatternCall(name=name, messages=(UserMessage(content=text),), **more)
        async with found[0].open_run(call) as opened:
            events = [event async for event in opened]
        finished = events[-1]
        assert isinstance(finished, RunFinished)
        return finished.reply, events


@asynccontextmanager
async def housed(folder: Path) -> AsyncGenerator[House]:
    environ = {"WOOLLAMA_CONFIG_DIR": str(folder), "HOME": str(folder)}
    with anyio.fail_after(120):
        async with open_services(load_settings(environ), environ=environ) as services:
            yield House(services)


@pytest.mark.parametrize(
    ("name", "text", "variables", "word"),
    [
        ("short", "What is the capital of Italy?", NOTHING, "Rome"),
        ("short", "How many legs has a spider?", NOTHING, "8"),
        ("short", "What does a carpenter do?", NOTHING, "builds"),
        ("explain", "photosynthesis", NOTHING, "sunlight"),
        ("explain", "a router", {"style": "technical"}, "internet"),
    ],
)
async def test_a_bundled_recipe_answers_briefly_and_to_the_point(
    tmp_path: Path, name: str, text: str, variables: Any, word: str
) -> None:
    async with housed(tmp_path) as house:
        reply, _ = await house.run(name, text, variables=variables)
    said = text_of(reply.message.content)
    assert word in said
    assert "\n" not in said
    assert "stop" == reply.finish_reason


@pytest.mark.parametrize("stream", [False, True])
async def test_the_bundled_tool_is_called_once_and_its_result_told(
    tmp_path: Path, stream: bool
) -> None:
    """A forced call (RU-43), through the bundled server, which starts for it (RU-60)."""
    async with housed(tmp_path) as house:
        assert ["idle"] == [each.health for each in house.services.tools.servers()]
        for question in ("What time is it?", "Which day is today?", "Hello!"):
            reply, events = await house.run("now", question, stream=stream)
            (started,) = [event for event in events if isinstance(event, ToolStarted)]
            (finished,) = [event for event in events if isinstance(event, ToolFinished)]
            assert ("clock.current_time", True) == (started.name, finished.ok)
            told = text_of(reply.message.content)
            assert A_TIME.fullmatch(told)
            assert told == render_tool_result(finished.result)
            deltas = [event.text for event in events if isinstance(event, TextDelta)]
            assert (told if stream else "") == "".join(deltas)
        assert ["connected"] == [each.health for each in house.services.tools.servers()]
