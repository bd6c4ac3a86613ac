"""Tools of plugins in recipes, beside those of MCP servers."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from woollama.core.canonical import FunctionCall, ToolCall
from woollama.core.errors import UnknownTool
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import serve
from woollama.core.tools import FunctionTools, ToolProvider, render_tool_result, tool
from woollama.server.plugins.contract import Plugin, PluginContext
from woollama.server.plugins.contributions import Contributions
from woollama.server.plugins.tools import JoinedTools, join_tools
from woollama.server.testing import use_plugins


@tool(name="sheep.count")
def count(flock: str) -> int:
    """Counts the sheep of a flock."""
    return len(flock)


@tool(name="other.say")
def say_it(word: str) -> str:
    """Says a word."""
    return word


class Sheep(Plugin):
    """Brings one tool."""

    name = "sheep"
    api_version = 1

    def tool_providers(self, context: PluginContext) -> Sequence[ToolProvider]:
        return (FunctionTools(count),)


class Waiting(FunctionTools):
    """Tools that are waited for."""

    def __init__(self) -> None:
        super().__init__(say_it)
        self.waited: list[str] = []

    async def prepare(self, allow: Iterable[str], /) -> None:
        self.waited.extend(allow)


def joined(others: ToolProvider | None = None) -> JoinedTools:
    sheep = {"sheep": (FunctionTools(count),)}
    return JoinedTools(others if others is not None else FunctionTools(say_it), sheep)


async def test_a_recipe_calls_a_tool_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "k" * 20)
    asked = ToolCall(
        id="1", function=FunctionCall(name="sheep__count", arguments='{"flock": "abc"}')
    )
    fake = CompatibleFake([say(calls=[asked]), say("Three.")])
    async with serve(fake) as upstream:
        files = {
            "inferencers.toml": f'[inferencers.up]\nbase_url = "{upstream.url}"\n'
            'api_key_env = "UP_KEY"\n',
            "recipes.toml": '[recipes.shepherd]\ninferencer = "up/m"\ntools = ["sheep.count"]\n',
        }
        async with use_plugins(Sheep, files=files) as server:
            body: dict[str, Any] = {
                "model": "woollama/shepherd",
                "messages": [{"role": "user", "content": "How many?"}],
            }
            answer = await server.client.post("/v1/chat/completions", body)
    assert 200 == answer.status, answer.text
    assert "Three." == answer.json()["choices"][0]["message"]["content"]
    offered, result = (request.json() for request in fake.requests)
    assert ["sheep__count"] == [each["function"]["name"] for each in offered["tools"]]
    assert {"role": "tool", "tool_call_id": "1", "content": "3"} == result["messages"][-1]


async def test_every_provider_is_asked_for_its_own_names_only() -> None:
    tools = joined()
    names = [
        each.schema["function"]["name"] for each in tools.tools_for(["sheep.count", "other.say"])
    ]
    assert {"sheep.count", "other.say"} == set(names)
    assert [] == list(tools.tools_for(["sheep.shear", "nobody.x"]))


async def test_a_call_goes_to_who_has_the_tool() -> None:
    tools = joined()
    assert "3" == render_tool_result(await tools.dispatch("sheep.count", {"flock": "abc"}))
    assert "moo" == render_tool_result(await tools.dispatch("other.say", {"word": "moo"}))
    with pytest.raises(UnknownTool, match=r"The plugin 'sheep' has no tool 'sheep\.shear'"):
        tools.dispatch("sheep.shear", {})
    with pytest.raises(UnknownTool):
        tools.dispatch("nobody.x", {})


async def test_those_who_prepare_are_asked_to_for_their_own() -> None:
    others = Waiting()
    await joined(others).prepare(["sheep.count", "other.say"])
    assert ["other.say"] == others.waited
    await joined().prepare(["other.say"])


def test_without_tools_of_plugins_nothing_stands_between() -> None:
    others = FunctionTools(say_it)
    assert others is join_tools(others, [Contributions(name="a", prefix="/x/a")])
    with_tools = Contributions(name="a", prefix="/x/a", tool_providers=(FunctionTools(count),))
    assert isinstance(join_tools(others, [with_tools]), JoinedTools)
