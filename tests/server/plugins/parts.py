"""Small plugins for the tests of the door."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from woollama.core.canonical import RunEvent, Value
from woollama.core.patterns import Pattern, PatternCall
from woollama.core.providers import Provider
from woollama.core.transport.http import HttpTransport
from woollama.server.plugins.contract import (
    Plugin,
    PluginContext,
    ProvidedProvider,
)
from woollama.server.plugins.installed import Installed


class Keys(Value, frozen=True, kw_only=True):
    """A section with one key that may be left out."""

    word: str = "hello"


class Strict(Value, frozen=True, kw_only=True):
    """A section with one key that may not."""

    url: str


class Backend:
    """A pattern backend without patterns."""

    def __init__(self, id: str) -> None:
        self.id = id

    def list(self) -> Sequence[Pattern]:
        return ()

    def find(self, name: str) -> Pattern | None:
        return None

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        raise NotImplementedError

    def open_run(self, call: PatternCall) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
        raise NotImplementedError


def plugin(name: str, **attributes: Any) -> Plugin:
    """A plugin of this name that contributes nothing but what the attributes say."""
    made = type("Made", (Plugin,), {"name": name, "api_version": 1, **attributes})()
    assert isinstance(made, Plugin)
    return made


def installed(*plugins: Plugin, bundled: bool = False) -> dict[str, Installed]:
    """As if each were in a distribution of its own."""
    return {
        each.name: Installed(
            name=each.name,
            load=lambda each=each: each,
            place=f"{each.name}:plugin",
            distribution=f"{each.name} 1.0",
            bundled=bundled,
        )
        for each in plugins
    }


def provider_of(name: str) -> Any:
    """A ``providers`` method that brings one provider."""

    def providers(_self: Plugin, _context: PluginContext) -> Sequence[ProvidedProvider]:
        provider = Provider(name, "http://127.0.0.1:1/v1")
        return (ProvidedProvider(provider=provider, transport=HttpTransport()),)

    return providers


def backend_of(id: str) -> Any:
    """A ``pattern_backends`` method that brings one backend."""

    def pattern_backends(_self: Plugin, _context: PluginContext) -> Sequence[Backend]:
        return (Backend(id),)

    return pattern_backends
