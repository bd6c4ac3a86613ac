"""A child process that serves: started on first use, started again when it died.

``Supervisor`` owns at most one process at a time. It starts it once for all who ask at the same
time, tells a failure to each of them, waits between starts that fail, and ends it with its group.
"""

import logging
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

import anyio
from anyio.abc import Process, TaskGroup

from woollama.core.canonical.value import Value
from woollama.core.errors import TransportError, WoollamaError
from woollama.core.scopes import open_tasks
from woollama.server.process import (
    Child,
    Launch,
    NotReady,
    end_process,
    hand_over,
    how_it_ended,
    kill_process,
    open_process,
)

__all__ = ["ChildEvent", "Failure", "Limits", "Supervisor", "explain_plainly"]

_log = logging.getLogger(__name__)

_PIPES_GRACE_S = 0.5
"""How long what a dead child wrote may still be on its way; its grandchildren may hold the pipe."""

ChildState = Literal["starting", "ready", "failed", "ended", "stopped"]
T = TypeVar("T")


class Limits(Value, frozen=True, kw_only=True):
    """The deadlines and the back-off of one child. All numbers are seconds but the last.

    Attributes:
        start_timeout_s: from the start of the process to its readiness.
        stop_timeout_s: between closing its stdin and killing it; it is asked to end in between,
            unless it has said itself that it will not serve.
        backoff_s: the wait before the second start in a row; the first one is immediate, each
            further one waits twice as long.
        backoff_limit_s: the longest wait.
        calm_s: a child that served for so long starts the count anew.
        log_limit_bytes: how much of the end of its output is kept for error messages.
    """

    start_timeout_s: float = 60.0
    stop_timeout_s: float = 4.0
    backoff_s: float = 0.5
    backoff_limit_s: float = 10.0
    calm_s: float = 30.0
    log_limit_bytes: int = 8192

    def delay_s(self, falls: int) -> float:
        """The wait before the next start after ``falls`` ends in a row that nobody asked for."""
        if falls < 2:
            return 0.0
        return min(self.backoff_s * 2.0 ** min(falls - 2, 64), self.backoff_limit_s)


class Failure(Value, frozen=True, kw_only=True):
    """Why a start did not lead to a serving child.

    Attributes:
        name: the child's name, as the supervisor was given it.
        reason: one clause, ``it ended with exit code 1`` or what the probe said.
        log: the end of what the child wrote, as text; may be empty.
    """

    name: str
    reason: str
    log: str = ""


class ChildEvent(Value, frozen=True, kw_only=True):
    """What a supervisor tells its observer, for a progress line or a log.

    Attributes:
        name: the child's name.
        state: ``starting``, then ``ready`` or ``failed``; ``ended`` when a serving child died,
            ``stopped`` when it was told to.
        pid: its process, None before there is one.
        elapsed_s: since the start of this run.
    """

    name: str
    state: ChildState
    pid: int | None
    elapsed_s: float


class _Run(Generic[T]):
    """One life of the child, from the wait before its start to its end."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self.begun_at = anyio.current_time()
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self.reached: tuple[T] | None = None
        self.ready_at: float | None = None
        self.failure: Failure | None = None
        self.reason: str | None = None
        self.fell = False
        self.pid: int | None = None

    @property
    def stopping(self) -> bool:
        return self.scope.cancel_called

    def fail(self, failure: Failure) -> None:
        if not self.settled.is_set():
            self.failure = failure
            self.settled.set()


def explain_plainly(failure: Failure) -> WoollamaError:
    """The error of a start that failed, when nobody can say it better."""
    return TransportError(
        f"{failure.name} did not start: {failure.reason}",
        kind="overloaded",
        status=503,
        payload=failure.log or None,
    )


class Supervisor(Generic[T]):
    """Keeps one child: ``start`` it as often as you like, there is never more than one.

    Its tasks live in the given group; cancelling that ends the child too, in order. A child that
    dies is started again by the next ``start``, after a back-off. ``T`` is what the probe returns.
    """

    def __init__(
        self,
        name: str,
        tasks: TaskGroup,
        *,
        launch: Callable[[], Launch[T]],
        limits: Limits,
        explain: Callable[[Failure], WoollamaError] = explain_plainly,
        on_event: Callable[[ChildEvent], None] | None = None,
    ) -> None:
        """No process yet; ``explain`` makes the error of a failed start."""
        self.name = name
        self._tasks = tasks
        self._launch = launch
        self._limits = limits
        self._explain = explain
        self._on_event = on_event
        self._run: _Run[T] | None = None
        self._falls = 0
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """The process that runs now, starting ones included; None when there is none."""
        run = self._run
        return None if run is None or run.ended.is_set() else run.pid

    @property
    def serving(self) -> bool:
        """Whether the child is known to be ready and not known to have ended."""
        run = self._run
        return run is not None and run.reached is not None and not run.ended.is_set()

    async def start(self) -> T:
        """What the probe said of the serving child; starts it when there is none.

        Callers that come while it starts share that start, its failure included. Cancelling one of
        them leaves the start to the others.

        Raises:
            WoollamaError: what ``explain`` makes of a failed start. Within the back-off after one,
                it is raised again without a new try.
        """
        run = self._run
        while run is not None and run.stopping and not run.ended.is_set():
            await run.ended.wait()
            run = self._run
        if run is None or run.ended.is_set():
            run = self._begin(run)
        await run.settled.wait()
        if run.reached is None:
            raise self._explain(run.failure or Failure(name=self.name, reason="it was stopped"))
        return run.reached[0]

    async def died(self, within_s: float) -> bool:
        """Whether the child has ended, waiting a moment for the news.

        For a user whose connection failed and who wants to know whether ``start`` would help.
        """
        run = self._run
        if run is None:
            return True
        with anyio.move_on_after(within_s):
            await run.ended.wait()
        return run.ended.is_set()

    async def stop(self) -> None:
        """End the child in order: close its stdin, ask, kill. Nothing when there is none."""
        run = self._run
        if run is not None:
            run.scope.cancel()
            await run.ended.wait()

    def _begin(self, last: _Run[T] | None) -> _Run[T]:
        wait_s = max(0.0, self._not_before - anyio.current_time())
        if last is not None and last.failure is not None and wait_s > 0:
            error = self._explain(last.failure)
            error.retry_after = wait_s
            raise error
        run: _Run[T] = _Run(wait_s)
        self._tasks.start_soon(self._live, run, name=f"child {self.name}")
        self._run = run
        return run

    async def _live(self, run: _Run[T]) -> None:
        try:
            with run.scope:
                await anyio.sleep(run.wait_s)
                await self._attend(run)
        finally:
            self._note_end(run)
            run.fail(Failure(name=self.name, reason="it was stopped"))
            run.ended.set()

    def _note_end(self, run: _Run[T]) -> None:
        if not run.fell:
            self._tell(run, "stopped")
            return
        now = anyio.current_time()
        if run.ready_at is not None and now - run.ready_at >= self._limits.calm_s:
            self._falls = 0
        self._falls += 1
        self._not_before = now + self._limits.delay_s(self._falls)
        self._tell(run, "ended" if run.reached else "failed")

    async def _attend(self, run: _Run[T]) -> None:
        """Start the process, learn whether it is ready, wait for its end."""
        launch = self._launch()
        run.begun_at = anyio.current_time()
        self._tell(run, "starting")
        try:
            process = await open_process(launch)
        except OSError as error:
            run.fell = True
            run.fail(Failure(name=self.name, reason=f"{launch.argv[0]!r} does not run: {error}"))
            return
        child = Child(process, log_limit_bytes=self._limits.log_limit_bytes)
        run.pid = process.pid
        try:
            await self._follow(run, launch, child, process)
            run.fell = True
            reason = run.reason or how_it_ended(process.returncode)
            if run.reached is not None:
                _log.warning("%s (pid %d) died: %s", self.name, process.pid, reason)
            run.fail(Failure(name=self.name, reason=reason, log=child.log))
        finally:
            await end_process(process, stop_timeout_s=self._limits.stop_timeout_s)

    async def _follow(
        self, run: _Run[T], launch: Launch[T], child: Child, process: Process
    ) -> None:
        """Probe it and read what it writes, until it has ended and was heard out."""
        assert process.stdout is not None
        assert process.stderr is not None
        async with open_tasks() as tasks:
            tasks.start_soon(child.read_output, process.stdout)
            tasks.start_soon(child.read_log, process.stderr)
            tasks.start_soon(self._probe, run, launch, child, process)
            await process.wait()
            tasks.cancel_scope.deadline = anyio.current_time() + _PIPES_GRACE_S

    async def _probe(self, run: _Run[T], launch: Launch[T], child: Child, process: Process) -> None:
        try:
            with anyio.fail_after(self._limits.start_timeout_s):
                await hand_over(launch.first_input, process)
                reached = await launch.ready(child)
        except TimeoutError:
            run.reason = f"it was not ready within {self._limits.start_timeout_s:g} s"
        except NotReady as error:
            run.reason = str(error)
            # Killed at once it could not write to its log what is wrong.
            with anyio.move_on_after(self._limits.stop_timeout_s):
                if process.stdin is not None:
                    await process.stdin.aclose()
                await process.wait()
                return
        except anyio.EndOfStream:
            # How it ends says more than that it wrote nothing.
            with anyio.move_on_after(_PIPES_GRACE_S):
                await process.wait()
                return
            run.reason = "it closed its output before it was ready"
        else:
            run.ready_at = anyio.current_time()
            run.reached = (reached,)
            run.settled.set()
            self._tell(run, "ready")
            return
        kill_process(process)

    def _tell(self, run: _Run[T], state: ChildState) -> None:
        elapsed_s = anyio.current_time() - run.begun_at
        pid = "" if run.pid is None else f"pid {run.pid}, "
        _log.info("%s: %s (%s%.2f s)", self.name, state, pid, elapsed_s)
        if self._on_event is not None:
            self._on_event(
                ChildEvent(name=self.name, state=state, pid=run.pid, elapsed_s=elapsed_s)
            )
