"""Looks after one connection: follows what is said of the tools, sees that the server is there."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from woollama.core.scopes import open_tasks
from woollama.server.mcp.faults import FederationLoop, Refused, ServerFault
from woollama.server.mcp.limits import McpLimits

if TYPE_CHECKING:
    from woollama.server.mcp.session import Connection

__all__ = ["Watch"]

Look = Callable[["Connection"], Awaitable[None]]


class Watch:
    """A connection under watch.

    A process that ends is noticed by its pipe. Of a server over HTTP nobody hears when it is gone,
    so a quiet one is asked now and then; and so is each after a call that broke off.
    """

    def __init__(
        self,
        connection: "Connection",
        *,
        limits: McpLimits,
        refresh: Look,
        busy: Callable[[], bool],
        note: Callable[[str], None],
        on_resources: Callable[[], None],
    ) -> None:
        """Nothing is asked before ``run``.

        Args:
            connection: a greeted one.
            limits: how often, and how long for an answer.
            refresh: reads the list of tools anew.
            busy: whether calls are under way: a server at work need not answer anything else.
            note: gets what went wrong.
            on_resources: called when the server says that its resources have changed.
        """
        self._connection = connection
        self._limits = limits
        self._refresh = refresh
        self._busy = busy
        self._note = note
        self._on_resources = on_resources

    async def run(self) -> None:
        """Until the connection ends.

        Raises:
            FederationLoop: the server said that it is ourselves.
        """
        connection = self._connection
        async with open_tasks() as tasks:
            tasks.start_soon(connection.follow)
            tasks.start_soon(self._keep_list)
            tasks.start_soon(self._hear_of_resources)
            tasks.start_soon(self._keep_asking)
            await connection.ended.wait()
            tasks.cancel_scope.cancel()

    async def _keep_list(self) -> None:
        while True:
            await self._connection.next_change()
            await self._look(self._refresh, self._limits.connect_timeout_s)

    async def _hear_of_resources(self) -> None:
        book = self._connection.resources
        while True:
            await book.changed.wait()
            book.changed = anyio.Event()
            self._on_resources()

    async def _keep_asking(self) -> None:
        connection = self._connection
        while True:
            with anyio.move_on_after(self._limits.ping_interval_s):
                await connection.doubted.wait()
            if connection.doubted.is_set():
                connection.doubted = anyio.Event()
            elif self._busy():
                continue
            # One that does not say when its tools change is asked for them instead.
            look = _ping if connection.follows else self._refresh
            problem = await self._look(look, self._limits.ping_timeout_s)
            if problem is not None:
                connection.end(problem)

    async def _look(self, look: Look, seconds: float) -> str | None:
        """Asks something; what is wrong with the connection, None when nothing is."""
        try:
            with anyio.fail_after(seconds):
                await look(self._connection)
        except FederationLoop:
            raise
        except Refused as fault:
            self._note(fault.message)
        except ServerFault as fault:
            self._note(fault.message)
            return fault.message
        except TimeoutError:
            problem = f"it did not answer within {seconds:g} s"
            self._note(problem)
            return problem
        return None


async def _ping(connection: "Connection") -> None:
    await connection.ping()
