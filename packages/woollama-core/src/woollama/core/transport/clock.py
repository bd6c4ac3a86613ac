"""The time limits of one exchange: when a connection is to give up, and what is said then."""

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
        connection.give_up_at(due)

    def rest(self) -> None:
        """It has come.

        Raises:
            TimeoutError: the end of everything has passed.
        """
        if self._connection is not None:
            self._connection.give_up_at(None)
        if self._end is not None and self._end <= self._loop.time():
            raise TimeoutError

    def failure(self, url: str) -> TransportError:
        """The error of the limit that passed."""
        if self._end is not None and self._end <= self._loop.time():
            return timed_out(url, "did not finish", self._timeouts.whole)
        connecting = self._connection is None
        return timed_out(url, self._what, self._seconds, connecting=connecting)
