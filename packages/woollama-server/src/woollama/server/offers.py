"""What all providers offer, asked for at once, kept for a short while, never waited for long."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from woollama.core.discovery import Offer, declared_offer, discover
from woollama.core.providers import Provider
from woollama.core.transport import Transport

__all__ = ["PATIENCE_S", "Offers"]

PATIENCE_S = 2.5
"""How long a list waits for providers that have not answered yet."""


class Offers:
    """The offers of some providers; each is asked in a task of its own and at most once at a time.

    A provider that does not answer in time is left out of the list, and in it once it has.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        transport_for: Callable[[Provider], Transport],
        tasks: TaskGroup,
        *,
        fresh_s: float,
    ) -> None:
        """Asks nobody yet.

        Args:
            providers: in the order of the list.
            transport_for: how each is reached.
            tasks: where the asking lives.
            fresh_s: how long an offer is good.
        """
        self._providers = tuple(providers)
        self._transport_for = transport_for
        self._tasks = tasks
        self._fresh_s = fresh_s
        self._offers = {provider.name: declared_offer(provider) for provider in self._providers}
        self._asked: dict[str, float] = {}
        self._asking: dict[str, anyio.Event] = {}

    async def list(self, *, patience_s: float) -> Sequence[Offer]:
        """The offers, in the order of the providers; asks those whose offer has grown old."""
        for provider in self._providers:
            self._refresh(provider)
        with anyio.move_on_after(patience_s):
            for answered in list(self._asking.values()):
                await answered.wait()
        return self.known()

    def known(self) -> Sequence[Offer]:
        """What is known now, without asking: of a provider that never answered what is declared."""
        return [self._offers[provider.name] for provider in self._providers]

    def names(self) -> Iterator[str]:
        """The model names known now, ``<provider>/<model>``; nothing is done before the first."""
        for offer in self.known():
            for info in offer.models:
                yield f"{offer.provider}/{info.id}"

    def waiting(self) -> Mapping[str, float]:
        """The providers that are being asked, and for how many seconds."""
        now = time.monotonic()
        return {name: now - self._asked[name] for name in self._asking}

    def _refresh(self, provider: Provider) -> None:
        name = provider.name
        if name in self._asking:
            return
        now = time.monotonic()
        if name in self._asked and now - self._asked[name] < self._fresh_s:
            return
        self._asked[name] = now
        self._asking[name] = anyio.Event()
        self._tasks.start_soon(self._ask, provider)

    async def _ask(self, provider: Provider) -> None:
        answered = self._asking[provider.name]
        try:
            self._offers[provider.name] = await discover(
                provider, transport=self._transport_for(provider)
            )
        finally:
            del self._asking[provider.name]
            answered.set()
