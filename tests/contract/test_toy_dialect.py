"""A dialect takes one file and one line: this is the line, and what then works."""

from typing import Any

import pytest

from tests.contract.toy_dialect import TOY, ToyFake
from tests.server.routes.serving import frames, serving, text_of_frames
from woollama.core import ModelRegistry, complete, complete_stream
from woollama.core.canonical import FunctionCall, ToolCall
from woollama.core.discovery import discover
from woollama.core.errors import ConfigError
from woollama.core.testing.dialect_contract import BEHAVIOURS
from woollama.core.testing.fake import FakeTransport, say
from woollama.core.testing.kits import DialectKit
from woollama.core.testing.upstream import serve
from woollama.core.wire import DIALECTS

KIT = DialectKit(dialect=TOY, make_fake=ToyFake)
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    # The line that wire/dialects.py would have.
    monkeypatch.setattr("woollama.core.wire.dialects.DIALECTS", {**DIALECTS, "toy": TOY})


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_it_does_what_a_dialect_must(name: str) -> None:
    await BEHAVIOURS[name](KIT)


@pytest.mark.usefixtures("registered")
async def test_configuration_selects_it_and_the_facade_speaks_it() -> None:
    table = {"base_url": "http://toy.test/v1", "dialect": "toy", "models": ["m"]}
    registry = ModelRegistry({"toys": table})
    fake = ToyFake([say("one"), say("two words")], key="k")
    how: dict[str, Any] = {"registry": registry, "transport": FakeTransport(fake), "api_key": "k"}
    assert "one" == await complete("toys/m", HI, **how)
    assert ["two", " words"] == [piece async for piece in complete_stream("toys/m", HI, **how)]
    assert ["/v1/talk", "/v1/talk"] == [request.path for request in fake.requests]


@pytest.mark.usefixtures("registered")
async def test_its_models_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "k")
    provider = KIT.provider(discover=True, api_key_env="TOY_KEY")
    offer = await discover(provider, transport=FakeTransport(ToyFake(key="k")))
    assert (["m"], None) == ([info.id for info in offer.models], offer.error)


@pytest.mark.usefixtures("registered")
async def test_the_daemon_translates_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "k")
    call = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"a":1}'))
    fake = ToyFake([say("one", calls=[call]), say("two words")], key="k")
    tool = {"type": "function", "function": {"name": "look"}}
    async with serve(fake) as upstream:
        provider = KIT.provider(upstream.url, api_key_env="TOY_KEY")
        async with serving(provider) as daemon:
            whole = (await daemon.chat(model="up/m", tools=[tool])).json()
            streamed = await daemon.chat(model="up/m", stream=True)
            refused = await daemon.chat(model="up/m", seed=1)
    choice = whole["choices"][0]
    assert ("one", "tool_calls") == (choice["message"]["content"], choice["finish_reason"])
    assert '{"a":1}' == choice["message"]["tool_calls"][0]["function"]["arguments"]
    assert "two words" == text_of_frames(frames(streamed.content))
    assert (400, "seed") == (refused.status_code, refused.json()["error"]["param"])


def test_without_its_line_it_is_unknown() -> None:
    with pytest.raises(ConfigError, match="there is no dialect 'toy'"):
        ModelRegistry({"toys": {"base_url": "http://toy.test/v1", "dialect": "toy"}})
