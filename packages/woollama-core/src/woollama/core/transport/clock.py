"""The time limits of one exchange: one timer, not one a read."""

import asyncio

from woollama.core.errors import TransportError
from woollama.core.transport.base import Timeouts
from woollama.core.transport.connection import Connection
from woollama.core.transport.network import timed_out

__all__ = ["Clock"]


class Clock:
    """Counts the silence of a peer, only while something is waited for.

    A slow reader's own pauses are not the peer's silence.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, timeouts: Timeouts) -> None:
        """The end of everything is counted from now."""
        self._loop = loop
        self._timeouts = timeouts
        whole = timeouts.whole
        self._end = loop.time() + whole if whole is not None else None
        self._connection: Connection | None = None
        self._seconds: float | None = None
        self._what = ""
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fires = 0.0

    def for_connecting(self) -> float | None:
        """How many seconds a connection may take from now on."""
        self._what, self._seconds = "did not accept a connection", self._timeouts.connect
        if self._end is None:
            return self._seconds
        left = max(self._end - self._loop.time(), 0.0)
        return left if self._seconds is None else min(left, self._seconds)

    def for_answer(self, connection: Connection) -> None:
        """From now on the head of the reply is waited for.

        Raises:
            TimeoutError: the end of everything has passed.
        """
        self._wait(connection, "did not answer", self._timeouts.first_byte)

    def for_more(self, connection: Connection) -> None:
        """From now on more of the body is waited for.

        Raises:
            TimeoutError: the end of everything has passed.
        """
        self._wait(connection, "sent nothing more", self._timeouts.between)

    def _wait(self, connection: Connection, what: str, seconds: float | None) -> None:
        self._connection, self._what, self._seconds = connection, what, seconds
        end = self._end
        if end is None and seconds is None:
            return
        now = self._loop.time()
        due = now + seconds if seconds is not None else end
        if end is not None:
            if end <= now:
                raise TimeoutError
            due = end if due is None or end < due else due
        self._due = due
        # A timer that fires too early sets itself again; one that fires too late is of no use.
        if due is not None and (self._timer is None or due < self._fires):
            self._set(due)

    def rest(self) -> None:
        """It has come.

        Raises:
            TimeoutError: the end of everything has passed.
        """
        self._due = None
        if self._end is not None and self._end <= self._loop.time():
            raise TimeoutError

    def stop(self) -> None:
        """Nothing is waited for any more."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def failure(self, url: str) -> TransportError:
        """The error of the limit that passed."""
        if self._end is not None and self._end <= self._loop.time():
            return timed_out(url, "did not finish", self._timeouts.whole)
        connecting = self._connection is None
        return timed_out(url, self._what, self._seconds, connecting=connecting)

    def _set(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires = due
        self._timer = self._loop.call_at(due, self._check)

    def _check(self) -> None:
        self._timer = None
        due = self._due
        if due is None or self._connection is None:
            return
        if due > self._loop.time():
            self._set(due)
        else:
            self._connection.give_up()
