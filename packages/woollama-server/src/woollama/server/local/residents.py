"""The models in memory: one child process each, the least recently used one makes room."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from woollama.core.errors import TransportError, WoollamaError
from woollama.server.local.config import LocalConfig
from woollama.server.local.launch import Endpoint, check_model, explain_failure, launch_model
from woollama.server.local.models import LocalModel
from woollama.server.process import Launch
from woollama.server.supervision import ChildEvent, Failure, Limits, Supervisor

__all__ = ["Resident", "Residents"]

_STOP_TIMEOUT_S = 1.0
"""A child ends at once when its stdin does; one that is loading reads nothing meanwhile."""

Observer = Callable[[ChildEvent], None]


class Resident:
    """A model with a child process of its own.

    Attributes:
        model: what the next start loads, checked.
        supervisor: its ``start`` loads the model.
        users: how many hold it.
    """

    def __init__(
        self, model: LocalModel, tasks: TaskGroup, config: LocalConfig, on_event: Observer | None
    ) -> None:
        """``Residents`` makes these."""
        self.model = model
        self.users = 0
        self._config = config
        self.supervisor = Supervisor(
            f"local/{model.name}",
            tasks,
            launch=self._launch,
            limits=Limits(start_timeout_s=config.start_timeout_s, stop_timeout_s=_STOP_TIMEOUT_S),
            explain=self._explain,
            on_event=on_event,
        )

    def _launch(self) -> Launch[Endpoint]:
        return launch_model(
            self.model, threads=self._config.threads, parallel=self._config.parallel
        )

    def _explain(self, failure: Failure) -> WoollamaError:
        return explain_failure(self.model, failure)


class Residents:
    """At most ``max_loaded`` models at a time; a model in use is never taken out.

    Its children end with the given task group.
    """

    def __init__(
        self, tasks: TaskGroup, config: LocalConfig, *, on_event: Observer | None = None
    ) -> None:
        """Nothing is loaded yet."""
        self._tasks = tasks
        self._config = config
        self._on_event = on_event
        # In order of use, the last one last. Changed only by who holds the gate.
        self._residents: dict[str, Resident] = {}
        self._gate = anyio.Lock()
        self._left = anyio.Event()

    @asynccontextmanager
    async def using(self, model: LocalModel) -> AsyncGenerator[Resident]:
        """Keep a place for the model while the context is open; ``supervisor.start`` loads it.

        Requests are let in one after the other, so none waits for ever for a place that later ones
        keep busy.

        Raises:
            NotBuilt: the engine is not installed.
            ConfigError: the model's file is missing or no model.
            TransportError: 503, all places were in use for ``busy_timeout_s``.
        """
        resident = await self._enter(model)
        try:
            yield resident
        finally:
            resident.users -= 1
            self._left.set()
            self._left = anyio.Event()

    async def _enter(self, model: LocalModel) -> Resident:
        try:
            with anyio.fail_after(self._config.busy_timeout_s):
                async with self._gate:
                    resident = await self._find_place(model)
        except TimeoutError as error:
            raise TransportError(
                f"'local/{model.name}' found no room: every model in memory was in use for "
                f"{self._config.busy_timeout_s:g} s.",
                kind="overloaded",
                status=503,
                hint="Try later, or raise `max_loaded` in [plugins.local] of woollama.toml.",
            ) from error
        resident.users += 1
        return resident

    async def _find_place(self, model: LocalModel) -> Resident:
        resident = self._residents.get(model.name)
        if resident is None:
            # Checked first: a file that is not there shall not push another model out.
            checked = await check_model(model)
            await self._make_room()
            resident = Resident(checked, self._tasks, self._config, self._on_event)
        elif not resident.supervisor.serving:
            resident.model = await check_model(model)
        self._residents.pop(model.name, None)
        self._residents[model.name] = resident
        return resident

    async def _make_room(self) -> None:
        while len(self._residents) >= self._config.max_loaded:
            idle = next((each for each in self._residents.values() if not each.users), None)
            if idle is None:
                await self._left.wait()
            else:
                await idle.supervisor.stop()
                del self._residents[idle.model.name]
