"""The names of fabric's patterns: known at once, asked for in the background."""

import logging
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from woollama.core.errors import InferenceError
from woollama.server.fabric.client import FabricClient
from woollama.server.fabric.wire import decode_names, names_request

__all__ = ["Library"]

_log = logging.getLogger(__name__)

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0


class Library:
    """The list, refreshed when somebody looks at an old one.

    An answer that failed, or that is empty, leaves it as it is: a fabric that has just begun to
    update its library shall not take every pattern away.

    Attributes:
        error: what the last try failed with; None when it did not.
    """

    def __init__(self, client: FabricClient, tasks: TaskGroup, *, refresh_s: float) -> None:
        """Nothing is known yet.

        Args:
            client: asks fabric.
            tasks: where the asking lives.
            refresh_s: how long a list is good.
        """
        self._client = client
        self._tasks = tasks
        self._refresh_s = refresh_s
        self._names: dict[str, None] = {}
        self._asked_at: float | None = None
        self._asking = False
        self.error: InferenceError | None = None

    def names(self) -> tuple[str, ...]:
        """What is known now; an old list is asked for anew, for those who look later."""
        self._touch()
        return tuple(self._names)

    def has(self, name: str) -> bool:
        """Whether the name is known now; see ``names``."""
        self._touch()
        return name in self._names

    def _touch(self) -> None:
        # Before the first answer ``keep_asking`` does it.
        if self._asked_at is None or self._asking:
            return
        if anyio.current_time() - self._asked_at < self._refresh_s:
            return
        # A group that has ended takes no task any more; the list stays as it is.
        with suppress(RuntimeError):
            self._tasks.start_soon(self._refresh_once, name="fabric's list of patterns")
            self._asking = True

    async def _refresh_once(self) -> None:
        try:
            await self.refresh()
        finally:
            self._asking = False

    async def refresh(self) -> bool:
        """Asks now; whether there was an answer."""
        try:
            body = await self._client.fetch(names_request)
            names = decode_names(body)
        except InferenceError as error:
            if self.error is None:
                _log.warning("fabric's patterns cannot be listed: %s", error)
            self.error = error
        else:
            if self.error is not None:
                _log.info("fabric is there again")
            self.error = None
            if names:
                self._names = dict.fromkeys(names)
        if self._asked_at is not None or self.error is None:
            self._asked_at = anyio.current_time()
        return self.error is None

    async def keep_asking(self, first: anyio.Event) -> None:
        """Asks until the first answer comes: a fabric that is down at the start is picked up.

        Args:
            first: set after the first try, whatever came of it.
        """
        wait_s = FIRST_WAIT_S
        while not await self.refresh():
            first.set()
            await anyio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)
        first.set()
