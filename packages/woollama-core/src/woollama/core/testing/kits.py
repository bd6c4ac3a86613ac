"""A dialect with a strict server that speaks it, for tests that every dialect must pass."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from woollama.core.canonical import Assembly, Delta, Reply, Value, request_from_openai
from woollama.core.providers import Provider, Target
from woollama.core.testing.fake import Fake, FakeReply, FakeTransport
from woollama.core.testing.fakes import FAKES
from woollama.core.turn import open_turn
from woollama.core.wire import DIALECTS, Dialect

__all__ = ["KITS", "DialectKit"]

_MODEL = "m"


class DialectKit(Value, frozen=True, kw_only=True):
    """A dialect under test.

    Attributes:
        dialect: it must be known under its name to ``Provider.dialect_for``.
        make_fake: called as ``make_fake(script, key=…)``: its strict fake, which has ``model``.
        model: the model that is asked for.
    """

    dialect: Dialect
    make_fake: Callable[..., Fake]
    model: str = _MODEL

    def fake(self, script: Iterable[Reply | FakeReply] = (), *, key: str | None = None) -> Fake:
        """The strict server with a script."""
        return self.make_fake(script, key=key)

    def provider(self, base_url: str = "http://peer.test/v1", **fields: Any) -> Provider:
        """A provider ``up`` that is spoken to in the dialect."""
        name = self.dialect.name if self.dialect.family == "openai" else ""
        return Provider("up", base_url, kind=self.dialect.family, dialect=name, **fields)

    def target(self, base_url: str = "http://peer.test/v1", **fields: Any) -> Target:
        """The model of that provider."""
        return Target(self.provider(base_url, **fields), self.model)

    async def deltas(
        self, fake: Fake, *, stream: bool, api_key: str = "k", **fields: Any
    ) -> list[Delta]:
        """The deltas of one turn.

        Args:
            fake: who is asked.
            stream: whether the reply is asked for as it comes.
            api_key: of the caller.
            fields: of a Chat Completions body; it says hi unless ``messages`` say more.

        Raises:
            InferenceError: what went wrong.
        """
        body = {"model": "-", "messages": [{"role": "user", "content": "hi"}], **fields}
        transport = FakeTransport(fake)
        async with open_turn(
            self.target(),
            request_from_openai(body),
            transport=transport,
            stream=stream,
            api_key=api_key,
        ) as turn:
            found = [delta async for batch in turn.batches for delta in batch]
        assert transport.open_replies == 0, "the reply was left open"
        return found

    async def ask(
        self, fake: Fake, *, stream: bool = False, api_key: str = "k", **fields: Any
    ) -> Reply:
        """The whole reply of one turn; arguments and errors as ``deltas``."""
        assembly = Assembly()
        for delta in await self.deltas(fake, stream=stream, api_key=api_key, **fields):
            assembly.add(delta)
        return assembly.reply()


KITS: Mapping[str, DialectKit] = MappingProxyType(
    {
        name: DialectKit(dialect=dialect, make_fake=partial(FAKES[name], models=[_MODEL]))
        for name, dialect in DIALECTS.items()
    }
)
"""Ours, by the name of the dialect."""
