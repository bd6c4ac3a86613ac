"""One child process: how it is started, heard and ended.

The child is led through pipes. Its stdin stays open for as long as we live, so a child that reads
it to its end notices our death however we die; a program that does not is run under ``guard.py``,
which does it in its place. On POSIX each child leads a process group of its own: a terminal's
Ctrl-C does not reach it, and what it started ends with it.
"""

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import anyio
from anyio.abc import ByteReceiveStream, Process

from woollama.core.canonical.value import Value

__all__ = [
    "Child",
    "Launch",
    "NotReady",
    "end_process",
    "hand_over",
    "how_it_ended",
    "kill_process",
    "open_process",
]

_GUARD = Path(__file__).with_name("guard.py")
_FIRST_LINE_LIMIT_BYTES = 65536
_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL
_KILL_WAIT_S = 5.0
"""How long the operating system may take to end a killed process."""

T = TypeVar("T")


class NotReady(Exception):
    """Raised by a readiness probe: the child runs, and says that it will not serve."""


class Child:
    """A running process as its readiness probe sees it."""

    def __init__(self, process: Process, *, log_limit_bytes: int) -> None:
        """Supervisors make these."""
        self.pid = process.pid
        self._log_limit_bytes = log_limit_bytes
        self._log = bytearray()
        self._line = bytearray()
        self._line_done = anyio.Event()

    @property
    def log(self) -> str:
        """The end of what the child wrote to stderr, and to stdout behind its first line."""
        return self._log.decode("utf-8", "replace")

    async def first_line(self) -> str:
        """The first line of the child's stdout, without its end; the deadline is the caller's.

        Raises:
            EndOfStream: stdout ended, or grew beyond 64 KiB, before a line was complete. A probe
                lets it pass: the supervisor says what became of the child.
        """
        await self._line_done.wait()
        line, ended, _ = bytes(self._line).partition(b"\n")
        if not ended:
            raise anyio.EndOfStream
        return line.decode("utf-8", "replace").rstrip("\r")

    async def read_log(self, stream: ByteReceiveStream) -> None:
        """Keep the end of a stream until it ends."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                self._keep(await stream.receive())

    async def read_output(self, stream: ByteReceiveStream) -> None:
        """Set the first line aside, keep the end of the rest until the stream ends."""
        try:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while b"\n" not in self._line and len(self._line) < _FIRST_LINE_LIMIT_BYTES:
                    self._line += await stream.receive()
        finally:
            self._line_done.set()
        await self.read_log(stream)

    def _keep(self, data: bytes) -> None:
        self._log += data
        del self._log[: -self._log_limit_bytes]


class Launch(Value, Generic[T], frozen=True, kw_only=True):
    """How to start a child once. Made anew for every start, so it can hold a fresh key or port.

    Attributes:
        argv: the program and its arguments; no secrets, everybody can read them.
        env: the whole environment of the child.
        ready: given the running child, returns what its users need to reach it; raises
            ``NotReady``. It is cancelled at the deadline.
        cwd: the working directory, None for ours.
        first_input: written to its stdin at once; the place for secrets.
        watches_stdin: whether it ends by itself when its stdin ends. A program that does not is
            run under a guard that does, and reads nothing.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    ready: Callable[[Child], Awaitable[T]]
    cwd: str | None = None
    first_input: bytes = b""
    watches_stdin: bool = False

    def __repr__(self) -> str:
        """Neither environment nor input: both can hold keys."""
        return f"Launch(argv={self.argv!r})"


async def open_process(launch: Launch[T]) -> Process:
    """Start it, its three standard streams being pipes.

    Raises:
        OSError: there is no such program, or the system has no room for it.
    """
    # -P: a script's own directory is otherwise searched first, and ours holds a whole server.
    guard = () if launch.watches_stdin else (sys.executable, "-P", str(_GUARD))
    return await anyio.open_process(
        [*guard, *launch.argv],
        cwd=launch.cwd,
        env=launch.env,
        start_new_session=True,
    )


async def hand_over(data: bytes, process: Process) -> None:
    """Write to the child's stdin; one that has ended is found out by its end."""
    if data and process.stdin is not None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.send(data)


async def end_process(process: Process, *, stop_timeout_s: float) -> None:
    """Close stdin, wait, ask, wait, kill; then nothing of the child or its group is left.

    Each wait is half the time. The first suffices for a child that watches its stdin, unless it
    is busy with its start.
    """
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        for ask in (None, signal.SIGTERM):
            if process.returncode is None:
                if ask is not None:
                    _signal(process, ask)
                with anyio.move_on_after(stop_timeout_s / 2):
                    await process.wait()
        _signal(process, _KILL)
        with anyio.move_on_after(_KILL_WAIT_S):
            await process.aclose()


def _signal(process: Process, number: signal.Signals) -> None:
    """To the child's whole group, which may outlive its leader."""
    if sys.platform == "win32":
        if process.returncode is None:
            process.send_signal(number)
        return
    # macOS answers EPERM for a group of which only the unreaped leader is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def kill_process(process: Process) -> None:
    """End a process and its group at once."""
    _signal(process, _KILL)


def how_it_ended(returncode: int | None) -> str:
    """A clause for a person: ``it ended with exit code 1``, ``it was killed by SIGKILL``."""
    if returncode is not None and returncode < 0:
        with suppress(ValueError):
            return f"it was killed by {signal.Signals(-returncode).name}"
    return f"it ended with exit code {returncode}"
