"""The daemon's models for plugins: a prompt and messages in, the events of a run out."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from woollama.core.canonical import NOTHING, Message, RunEvent
from woollama.core.errors import NotBuilt
from woollama.core.providers import ModelRegistry
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.runs import open_run, plan_run, resolve_inferencer
from woollama.core.runs.plan import Link
from woollama.core.transport import Timeouts, Transport

__all__ = ["ModelRunner", "no_models"]


class ModelRunner:
    """See ``contract.RunModel``."""

    def __init__(
        self,
        registry: ModelRegistry,
        own_transports: Mapping[str, Transport],
        transport: Transport,
        *,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - an immutable value
        retries: Retries = NO_RETRIES,
    ) -> None:
        """Looks providers up when they are used.

        Args:
            registry: the daemon's.
            own_transports: by the name of a provider, the one that a plugin brought with it.
            transport: for all others.
            timeouts: of each request.
            retries: of each request.
        """
        self._registry = registry
        self._own = own_transports
        self._transport = transport
        self._timeouts = timeouts
        self._retries = retries

    def __call__(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        system: str | None = None,
        params: Mapping[str, Any] = NOTHING,
        stream: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
        """One request to ``<provider>/<model>``, without tools."""
        target = resolve_inferencer(self._registry, model)
        link = Link(
            transport=self._own.get(target.provider.name, self._transport),
            timeouts=self._timeouts,
            retries=self._retries,
        )
        return open_run(
            plan_run(target, messages, system=system, params=params, stream=stream, link=link)
        )


def no_models(
    model: str,
    messages: Sequence[Message],
    *,
    system: str | None = None,
    params: Mapping[str, Any] = NOTHING,
    stream: bool = False,
) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
    """Where there are no models to run on: a refusal."""
    raise NotBuilt(f"There are no models here, and so no {model!r}.")
