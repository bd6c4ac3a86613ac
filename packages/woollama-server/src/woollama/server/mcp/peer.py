"""One MCP server over its whole life: connected, looked after, and connected again when it falls.

Nothing here imports the SDK before there is a server to connect to (ruling RU-60).
"""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from woollama.core.canonical.value import NOTHING
from woollama.server.mcp.entries import HttpServer, Protocol, StdioServer
from woollama.server.mcp.faults import (
    CLOSED,
    CallLost,
    CallTimedOut,
    FederationLoop,
    ServerFault,
    Unforeseen,
    Unreachable,
)
from woollama.server.mcp.federation import add_trail
from woollama.server.mcp.health import ChildLog, OnProgress, ServerHealth
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.questions import NOBODY, Direct, without_deadline
from woollama.server.mcp.roster import Roster, is_repeatable, read_roster
from woollama.server.mcp.sdk import Open, load_opener
from woollama.server.mcp.standing import Standing
from woollama.server.mcp.watch import Watch
from woollama.server.tracebacks import describe_exception

if TYPE_CHECKING:
    from woollama.server.mcp.session import Connection

__all__ = ["Peer"]

_log = logging.getLogger(__name__)

Listed = tuple[Mapping[str, Any], ...]


def _nobody() -> None:
    pass


class Peer:
    """A supervised server.

    Attributes:
        server: what ``mcp.json`` says of it.
        roster: its tools, as last listed; they are kept while it is away.
        done: set when ``run`` has ended.
    """

    def __init__(
        self,
        server: StdioServer | HttpServer,
        *,
        instance_id: str,
        environ: Mapping[str, str],
        lineage: Mapping[str, str],
        limits: McpLimits,
        on_change: Callable[[], None],
        on_resources: Callable[[], None] = _nobody,
    ) -> None:
        """Nothing is tried before ``run``.

        Args:
            server: what ``mcp.json`` says of it.
            instance_id: ours.
            environ: the environment, of which a child gets little.
            lineage: what our children are to know of us, as variables.
            limits: of every server.
            on_change: called when tools come or go.
            on_resources: called when resources may have come or gone.
        """
        self.server = server
        self.roster = Roster()
        self.done = anyio.Event()
        self._instance_id = instance_id
        self._environ = environ
        self._lineage = lineage
        self._limits = limits.of(server)
        self._on_change = on_change
        self._on_resources = on_resources
        self._standing = Standing()
        self._connection: Connection | None = None
        self._calls = 0
        self._log = ChildLog(limits.log_limit_bytes)
        self._traced = ""
        self._stop = anyio.Event()
        self._trying = anyio.CancelScope()
        self._greeting: Protocol = server.mode

    @property
    def name(self) -> str:
        """The server's name in ``mcp.json``."""
        return self.server.name

    @property
    def connected(self) -> bool:
        """Whether calls go through now, as far as known."""
        return self._connection is not None and not self._connection.ended.is_set()

    @property
    def settling(self) -> bool:
        """Whether the first try is not over yet."""
        return self._standing.settling

    @property
    def health(self) -> ServerHealth:
        """How it is doing."""
        connection, standing = self._connection, self._standing
        fallen = standing.state == "connected" and not self.connected
        return ServerHealth(
            name=self.name,
            transport="stdio" if isinstance(self.server, StdioServer) else "http",
            health="retrying" if fallen else standing.state,
            reason=standing.reason,
            attempts=standing.attempts,
            tools=len(self.roster.tools),
            left_out=self.roster.left_out,
            protocol=connection.protocol if connection is not None else None,
            last_error=standing.last_error,
            stderr=self.server.redact(self._log.text) if self._log else None,
        )

    def stop(self) -> None:
        """Ends it in order; ``done`` tells when."""
        self._stop.set()
        if self._connection is not None:
            self._connection.end("it was stopped")
        else:
            self._trying.cancel()

    async def settled(self) -> None:
        """Waits until the first try is over."""
        await self._standing.settled()

    async def run(self) -> None:
        """Connects again and again, until it is stopped or the server turns out to be ourselves.

        What nobody has foreseen is a fall like any other: it concerns this server alone.
        """
        try:
            while not self._stop.is_set():
                held_s = await self._attempt()
                if self._standing.state == "failed":
                    return
                await self._pause(held_s)
            self._standing.to("failed", "it was stopped")
        finally:
            self.done.set()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None,
        *,
        meta: Mapping[str, Any] | None = None,
        trail: Iterable[str] = (),
        on_progress: OnProgress | None = None,
        direct: Direct = NOBODY,
    ) -> dict[str, Any]:
        """Runs a tool; see ``Connection.call_tool``.

        A call that got lost is made once more if the server cannot have got it, or if the tool says
        that this does no harm. While a person is asked, its time does not run.

        Raises:
            ServerFault: there is no result.
        """
        with self._limited(f"{tool!r} did not answer") as scope:
            return await self._call(
                tool,
                arguments,
                meta=meta,
                trail=tuple(trail),
                on_progress=on_progress,
                direct=without_deadline(direct, scope),
            )

    async def resources(self, *, trail: Iterable[str] = ()) -> tuple[Listed, Listed]:
        """Its resources and templates of resources; none while it is away.

        Args:
            trail: the ids of the woollamas that ask for them; one that is among them is not asked
                for what it has asked for.

        Raises:
            ServerFault: it did not give them.
        """
        connection = self._connection
        asking = (*trail, self._instance_id)
        if connection is None or connection.ended.is_set():
            return (), ()
        if connection.instances.intersection(asking):
            return (), ()
        with self._limited("its list of resources did not come"):
            meta = add_trail(None, asking) if connection.instances else None
            return await connection.resources.listed(meta=meta)

    async def read_resource(
        self, uri: str, *, meta: Mapping[str, Any] | None = None, trail: Iterable[str] = ()
    ) -> dict[str, Any]:
        """A resource of it; see ``ResourceBook.read`` and, for the trail, ``call``.

        Raises:
            ServerFault: there is no result.
        """
        with self._limited(f"{uri!r} did not come"):
            connection = await self._reach()
            if connection.instances:
                meta = add_trail(meta, (*trail, self._instance_id))
            return await connection.resources.read(uri, meta=meta)

    @contextmanager
    def _limited(self, what: str) -> Generator[anyio.CancelScope]:
        """Something that is asked of the server, within the time of a call."""
        seconds = self._limits.call_timeout_s
        self._calls += 1
        try:
            with anyio.move_on_after(seconds) as scope:
                yield scope
        except ServerFault as fault:
            # A server may repeat what it was sent, its credential too.
            fault.message = self.server.redact(fault.message)
            raise
        finally:
            self._calls -= 1
        if scope.cancelled_caught:
            raise CallTimedOut(f"{what} within {seconds:g} s")

    async def _call(
        self, tool: str, arguments: Mapping[str, Any] | None, **more: Any
    ) -> dict[str, Any]:
        connection = await self._reach()
        try:
            return await connection.call_tool(tool, arguments, **more)
        except CallLost as lost:
            self._note(lost.message)
            if lost.gone:
                connection.end(lost.message)
            else:
                connection.doubted.set()
            if not (lost.unsent or is_repeatable(self.roster.tools.get(tool, NOTHING))):
                raise
        return await (await self._reach()).call_tool(tool, arguments, **more)

    async def _reach(self) -> "Connection":
        """The connection, waiting a moment for one that is coming."""
        end = anyio.current_time() + self._limits.patience_s
        while True:
            connection = self._connection
            if connection is not None and not connection.ended.is_set():
                return connection
            left_s = end - anyio.current_time()
            standing = self._standing
            too_late = standing.next_try is not None and standing.next_try > end
            if left_s <= 0 or too_late or standing.state == "failed" or self._stop.is_set():
                reason = standing.reason or CLOSED
                raise Unreachable(f"MCP server {self.name!r} is not there: {reason}")
            with anyio.move_on_after(left_s):
                await standing.news()

    async def _attempt(self) -> float | None:
        """See ``_try``; the boundary that keeps the daemon and the other servers from a fault."""
        try:
            return await self._try(await to_thread.run_sync(load_opener))
        except Exception as error:  # noqa: BLE001 - one server's fault is not the others'
            self._connection = None
            self._trace(error)
            self._fall(Unforeseen(error).message)
            return None

    async def _try(self, open_connection: Open) -> float | None:
        """One connection, from the try to its end; for how long it held, None: it never was."""
        self._standing.try_now()
        began: float | None = None
        reason = f"it was not ready within {self._limits.connect_timeout_s:g} s"
        try:
            with anyio.move_on_after(self._limits.connect_timeout_s) as self._trying:
                async with open_connection(
                    self.server,
                    mode=self._greeting,
                    instance_id=self._instance_id,
                    environ=self._environ,
                    lineage=self._lineage,
                    limits=self._limits,
                    log=self._log,
                ) as connection:
                    await self._list(connection)
                    self._trying.deadline = float("inf")
                    began = anyio.current_time()
                    self._rise(connection)
                    watch = Watch(
                        connection,
                        limits=self._limits,
                        refresh=self._list,
                        busy=lambda: self._calls > 0,
                        note=self._note,
                        on_resources=self._on_resources,
                    )
                    await watch.run()
                    self._fall(connection.reason or CLOSED)
        except FederationLoop as fault:
            self._connection = None
            self.roster = Roster()
            self._standing.to("failed", fault.message)
            _log.error("MCP server %r is left out: %s", self.name, fault.message)
            self._on_change()
            return None
        except ServerFault as fault:
            reason = fault.message
            if isinstance(fault, Unforeseen):
                self._note(reason)
                self._trace(fault)
        if began is None or self._connection is not None:
            self._fall(reason)
        if began is None:
            self._greet_otherwise()
            return None
        return anyio.current_time() - began

    def _rise(self, connection: "Connection") -> None:
        self._connection = connection
        self._standing.attempts = 0
        # What it speaks need not be asked again.
        self._greeting = "legacy" if connection.legacy else self.server.mode
        self._standing.to("connected", None)
        _log.info(
            "MCP server %r is connected: %d tools, protocol %s",
            self.name,
            len(self.roster.tools),
            connection.protocol,
        )
        self._on_change()
        self._on_resources()

    def _fall(self, reason: str) -> None:
        was_connected = self._connection is not None
        self._connection = None
        if reason == CLOSED and self._log.ending is not None:
            reason = self._log.ending
        reason = self.server.redact(reason)
        self._standing.last_error = reason
        if self._stop.is_set():
            return
        level = logging.WARNING if was_connected or self._standing.falls == 0 else logging.INFO
        _log.log(level, "MCP server %r is not there: %s; it is tried again", self.name, reason)
        self._standing.to("retrying", reason)
        if was_connected:
            self._on_change()
            self._on_resources()

    def _greet_otherwise(self) -> None:
        """Some older programs end at a request that they do not know: the next try has none."""
        if self.server.mode == "auto":
            stdio = isinstance(self.server, StdioServer)
            self._greeting = "legacy" if stdio and self._greeting == "auto" else "auto"

    async def _pause(self, held_s: float | None) -> None:
        with anyio.move_on_after(self._standing.wait_s(held_s, self._limits)):
            await self._stop.wait()

    async def _list(self, connection: "Connection") -> None:
        listed, unsendable = await connection.list_tools()
        roster = read_roster(
            listed, instance_id=self._instance_id, only=self.server.tools, unsendable=unsendable
        )
        if roster == self.roster:
            return
        self.roster = roster
        for name, why in roster.left_out.items():
            _log.info("MCP server %r: its tool %r is left out: %s", self.name, name, why)
        if self.connected:
            self._on_change()

    def _note(self, error: str) -> None:
        self._standing.last_error = self.server.redact(error)

    def _trace(self, error: BaseException) -> None:
        """Says where it came from, once: each try would say the same again."""
        trace = describe_exception(error)
        level = logging.DEBUG if trace == self._traced else logging.ERROR
        self._traced = trace
        _log.log(level, "MCP server %r failed unexpectedly:\n%s", self.name, trace)
