"""A time limit that is set again and again, and nearly never passes."""

import asyncio
from collections.abc import Callable

__all__ = ["Alarm"]


class Alarm:
    """Calls back at the time that was set last.

    A connection has limits that begin with each request. A timer of the event loop for each of them
    costs a walk through all timers, twice: here a timer that rings too early is set again then.
    """

    __slots__ = ("_callback", "_due", "_loop", "_rings", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        """Not set."""
        self._loop = loop
        self._callback = callback
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings = 0.0

    @property
    def is_set(self) -> bool:
        """Whether it is going to call."""
        return self._due is not None

    def set(self, due: float | None) -> None:
        """Puts it to another time.

        Args:
            due: in the event loop's time; None: never.
        """
        self._due = due
        if due is not None and (self._timer is None or due < self._rings):
            self._start(due)

    def set_in(self, seconds: float) -> None:
        """Puts it to so many seconds from now."""
        self.set(self._loop.time() + seconds)

    def close(self) -> None:
        """Nothing refers to its owner any more."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings = due
        self._timer = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        due = self._due
        if due is not None and due > self._loop.time():
            self._start(due)
        elif due is not None:
            self._due = None
            self._callback()
