"""``context.run``: a plugin asks the daemon's models, whoever provides them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from woollama.core.canonical import (
    RunEvent,
    RunFinished,
    TextDelta,
    UserMessage,
    message_to_openai,
)
from woollama.core.errors import NotBuilt, RequestError, UnknownModel
from woollama.core.providers import Provider
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import serve
from woollama.core.transport.http import HttpTransport
from woollama.server.plugins.contract import Plugin, PluginContext, ProvidedProvider
from woollama.server.plugins.models import no_models
from woollama.server.testing import use_plugins


class Curious(Plugin):
    """Keeps its context, and brings a provider of its own at an address."""

    name = "curious"
    api_version = 1
    context: PluginContext
    transport: HttpTransport
    url = ""

    def providers(self, context: PluginContext) -> Sequence[ProvidedProvider]:
        provider = Provider("curious", f"{self.url}/v1", "UP_KEY")
        self.transport = HttpTransport()
        return (ProvidedProvider(provider=provider, transport=self.transport),)

    async def setup(self, context: PluginContext) -> None:
        self.context = context

    async def teardown(self, context: PluginContext) -> None:
        await self.transport.aclose()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UP_KEY", "k" * 20)


async def events_of(
    run: AbstractAsyncContextManager[Any],
) -> list[RunEvent]:
    async with run as events:
        return [event async for event in events]


async def test_a_model_of_the_daemon_answers_with_and_without_a_stream() -> None:
    fake = CompatibleFake([say("Four."), say("Four.")])
    inferencers = '[inferencers.up]\nbase_url = "{url}/v1"\napi_key_env = "UP_KEY"\n'
    async with serve(fake) as upstream:
        made = Curious()
        made.url = upstream.url.removesuffix("/v1")
        files = {"inferencers.toml": inferencers.replace("{url}/v1", upstream.url)}
        async with use_plugins(made, files=files):
            messages = (UserMessage(content="2 + 2?"),)
            params: Mapping[str, Any] = {"temperature": 0.5}
            whole = await events_of(made.context.run("up/m", messages, system="S.", params=params))
            pieces = await events_of(made.context.run("up/m", messages, stream=True))
    assert ["TurnStarted", "RunFinished"] == [type(event).__name__ for event in whole]
    last = whole[-1]
    assert isinstance(last, RunFinished)
    assert {"role": "assistant", "content": "Four."} == message_to_openai(last.reply.message)
    assert "Four." == "".join(each.text for each in pieces if isinstance(each, TextDelta))
    first = fake.requests[0].json()
    assert ("S.", 0.5) == (first["messages"][0]["content"], first["temperature"])


async def test_a_provider_that_a_plugin_brings_is_reached_by_its_own_transport() -> None:
    async with serve(CompatibleFake([say("Here.")])) as upstream:
        made = Curious()
        made.url = upstream.url.removesuffix("/v1")
        async with use_plugins(made):
            events = await events_of(made.context.run("curious/m", (UserMessage(content="x"),)))
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert "Here." == last.reply.message.content


async def test_a_model_that_is_not_there_is_refused() -> None:
    made = Curious()
    made.url = "http://127.0.0.1:1"
    async with use_plugins(made):
        with pytest.raises(UnknownModel):
            made.context.run("nobody/m", ())
        with pytest.raises(RequestError):
            made.context.run("curious", ())


def test_before_the_daemon_has_begun_there_are_no_models() -> None:
    with pytest.raises(NotBuilt, match="no 'up/m'"):
        no_models("up/m", ())
