"""What a provider offers: declared first, then listed, each once; its faults stand in the offer."""

from typing import Any

import anyio
import pytest

from tests.core.chat_upstream import says
from woollama.core import ModelSettings, Provider
from woollama.core.discovery import DISCOVERY_TIMEOUTS, declared_offer, discover
from woollama.core.errors import ConfigError, ProviderError, ReplyError, TransportError
from woollama.core.testing.fake import FakeTransport
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.upstream import Exchange, Script, serve
from woollama.core.transport import Timeouts
from woollama.core.transport.http import HttpTransport


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def listing(*names: str) -> Script:
    return says({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


async def offer(script: Script, timeouts: Timeouts = DISCOVERY_TIMEOUTS, **fields: Any) -> Any:
    transport = HttpTransport()
    with anyio.fail_after(5):
        async with serve(script) as upstream:
            provider = Provider("x", upstream.url, discover=True, **fields)
            found = await discover(provider, transport=transport, timeouts=timeouts)
            await transport.aclose()
            return found, upstream.requests


async def test_a_provider_is_asked_only_when_it_is_configured_so() -> None:
    provider = Provider("x", "http://127.0.0.1:1/v1", models=("a",))
    found = await discover(provider, transport=HttpTransport())
    assert (["a"], None) == ([info.id for info in found.models], found.error)
    assert found == declared_offer(provider)


async def test_what_is_listed_comes_behind_what_is_declared_and_each_once() -> None:
    found, (request,) = await offer(listing("b", "a", "b", "c"), models=("a", "z"))
    assert ("x", ["a", "z", "b", "c"]) == (found.provider, [info.id for info in found.models])
    assert ("GET", "/v1/models") == (request.method, request.path)


async def test_of_what_is_listed_only_what_matches_is_offered() -> None:
    found, _ = await offer(
        listing("gpt-1", "GPT-2", "o-1", "embed"), model_patterns=("gpt-*", "o-?"), models=("d",)
    )
    assert ["d", "gpt-1", "o-1"] == [info.id for info in found.models]


async def test_what_is_declared_of_a_model_is_told() -> None:
    own = {"a": ModelSettings(context=4096)}
    found, _ = await offer(listing("a", "b"), models=("a",), model_settings=own)
    assert [("a", 4096), ("b", None)] == [(info.id, info.context) for info in found.models]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (says({"error": {"message": "no"}}, status=401), ProviderError),
        (says({"models": []}), ReplyError),
        (says(b"<html>"), ReplyError),
        (says(b"", status=307), ProviderError),
    ],
)
async def test_a_fault_of_the_provider_stands_in_its_offer(
    script: Script, kind: type[Exception]
) -> None:
    found, _ = await offer(script, models=("a",))
    assert ["a"] == [info.id for info in found.models]
    assert isinstance(found.error, kind)


async def test_a_provider_that_does_not_answer_is_not_waited_for() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    found, _ = await offer(script, Timeouts(first_byte=0.05))
    assert isinstance(found.error, TransportError)
    assert "Provider 'x'" in found.error.message


async def test_a_missing_key_stands_in_the_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WOOLLAMA_TEST_KEY", raising=False)
    found, requests = await offer(listing("a"), api_key_env="WOOLLAMA_TEST_KEY")
    assert [] == requests
    assert isinstance(found.error, ConfigError)


async def test_n_18_each_dialect_is_asked_for_its_own_list() -> None:
    fake = OllamaFake(models=("q:1",))
    provider = Provider("ollama", "http://h/v1", discover=True, kind="ollama")
    found = await discover(provider, transport=FakeTransport(fake))
    assert ["q:1"] == [info.id for info in found.models]
    assert "/api/tags" == fake.requests[0].path
