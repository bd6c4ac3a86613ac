"""What runs during a comparison: the mock upstream and the targets, each a process of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tools.bench.places import (
    TARGETS,
    bench_home,
    child_env,
    free_port,
    module_argv,
    module_env,
    our_command,
)
from tools.bench.target import DIRECT, Target

_STOP_S = 10
_LOG_BYTES = 2000


class StageError(Exception):
    """A process that did not come up; the message ends with what it printed last."""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """A running server.

    Attributes:
        pid: Its process, which leads a process group of its own.
        port: Where it listens on loopback.
        up_s: Seconds from its start to its open port.
    """

    pid: int
    port: int
    up_s: float


class Stage:
    """Starts servers and stops, by process id, every one that it started.

    A context manager: entering it starts the mock upstream, leaving it stops everything and
    removes the scratch folders.
    """

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._scratch = Path(tempfile.mkdtemp(prefix="bench-"))
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._upstream: Actor | None = None

    def __enter__(self) -> Self:
        """Start the mock upstream."""
        port = free_port()
        argv = module_argv("upstream", "--port", str(port))
        try:
            self._upstream = self._run("upstream", argv, port, wait_s=10, env=module_env())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop everything."""
        self.close()

    @property
    def upstream(self) -> Actor:
        """The mock upstream.

        Raises:
            StageError: The stage was not entered.
        """
        if self._upstream is None:
            raise StageError("the stage is entered with `with`")
        return self._upstream

    def start(self, target: Target) -> Actor:
        """Start a target; ``direct`` is the mock itself, which runs already.

        Raises:
            StageError: Its port did not open in time, or it ended before.
        """
        if target.name == DIRECT:
            return self.upstream
        state = self._scratch / target.name
        state.mkdir(exist_ok=True)
        port = free_port()
        env = child_env(
            PORT=str(port),
            UPSTREAM=str(self.upstream.port),
            STATE=str(state),
            HOME=str(state),
            TARGETS=str(TARGETS),
            BENCH_HOME=str(bench_home()),
            WOOLLAMA_BIN=our_command(),
        )
        argv = ["/bin/sh", str(target.script)]
        return self._run(target.name, argv, port, wait_s=target.wait_s, env=env)

    def stop(self, name: str) -> None:
        """Stop a target: SIGTERM to its process group, SIGKILL when it does not heed that."""
        child = self._children.pop(name, None)
        if child is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(_STOP_S)
            except ProcessLookupError:
                child.poll()
                return
            except subprocess.TimeoutExpired:
                continue
            return

    def close(self) -> None:
        """Stop everything and remove the scratch folders."""
        for name in list(self._children):
            self.stop(name)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _run(
        self, name: str, argv: list[str], port: int, *, wait_s: float, env: dict[str, str]
    ) -> Actor:
        log = self._scratch / f"{name}.log"
        with log.open("wb") as out:
            began_s = time.monotonic()
            child = subprocess.Popen(argv, stdout=out, stderr=out, env=env, start_new_session=True)
        self._children[name] = child
        if not _port_opens(port, child, wait_s):
            ended = child.poll()
            what = f"no open port within {wait_s:g} s" if ended is None else f"ended with {ended}"
            self.stop(name)
            said = log.read_bytes()[-_LOG_BYTES:].decode(errors="replace").strip()
            raise StageError(f"{name}: {what}\n{said}")
        return Actor(pid=child.pid, port=port, up_s=time.monotonic() - began_s)


def _port_opens(port: int, child: subprocess.Popen[bytes], wait_s: float) -> bool:
    end_s = time.monotonic() + wait_s
    while time.monotonic() < end_s and child.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
        except OSError:
            time.sleep(0.005)
        else:
            return True
    return False
