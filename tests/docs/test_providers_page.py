"""RU-59: the built-in providers send what the page says, against a scripted network."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.docs.tables import tables_of
from woollama.core import ModelRegistry, Timeouts, complete, provider_names
from woollama.core.errors import TransportError
from woollama.core.transport import WireResponse
from woollama.core.wire import WireRequest

BUILTIN = tables_of("docs/howto/providers.md")["What is there without a file"]
PATHS = {"anthropic": "/messages", "ollama": "/api/chat"}
PLACES = {"anthropic": "x-api-key"}
KEY = "sk-of-the-test"


class _Wire:
    """A network on which nobody answers; it keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[WireRequest] = []

    @asynccontextmanager
    async def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AsyncGenerator[WireResponse]:
        self.sent.append(request)
        raise TransportError("nobody is there")
        yield

    async def aclose(self) -> None:
        """Nothing is open."""


def test_the_built_in_providers_are_those_of_the_page() -> None:
    assert provider_names() == [name for name, *_ in BUILTIN]
    registry = ModelRegistry.builtin({})
    for name, address, variable in BUILTIN:
        provider = registry.get(name)
        assert provider is not None
        assert address == provider.base_url
        assert (None if variable == "none" else variable) == provider.api_key_env


@pytest.mark.parametrize(("name", "address", "variable"), BUILTIN)
async def test_ru_59_a_request_goes_to_its_address_with_its_key_in_its_place(
    name: str, address: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = _Wire()
    monkeypatch.delenv("WOOLLAMA_OLLAMA_URL", raising=False)
    if variable != "none":
        monkeypatch.setenv(variable, KEY)
    with pytest.raises(TransportError):
        await complete(f"{name}/some-model", [{"role": "user", "content": "x"}], transport=wire)

    (sent,) = wire.sent
    base = address.removesuffix("/v1") if name == "ollama" else address
    assert f"{base}{PATHS.get(name, '/chat/completions')}" == sent.url
    carried = {key: value for key, value in sent.headers.items() if KEY in value}
    if variable == "none":
        assert {} == carried
    elif name in PLACES:
        assert {PLACES[name]: KEY} == carried
    else:
        assert {"authorization": f"Bearer {KEY}"} == carried
