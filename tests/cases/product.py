"""The product as a process: the real command, its output, its end."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["Product"]

COMMAND = Path(sys.executable).parent / "woollama"
"""The console command of the environment that runs the tests."""

_PROBE = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
_POLL_S = 0.03
_STOP_S = 10


class Product:
    """One daemon.

    Attributes:
        port: where it listens.
    """

    def __init__(self, port: int, folder: Path, environ: Mapping[str, str]) -> None:
        """Starts it; ``folder`` is where it is at home and where its output is kept."""
        self.port = port
        self._folder = folder
        self._log = folder / "product.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(COMMAND), "serve", "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                cwd=folder,
                # A person's Ctrl-C is ours: it ends the tests, which then end the daemon.
                start_new_session=True,
            )

    @property
    def exit_code(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    @property
    def log(self) -> str:
        """All that it has written."""
        return self._log.read_text("utf-8", "replace")

    def is_up(self, timeout_s: float, wait: Callable[[float], object]) -> bool:
        """Whether it answered a request in time, before it ended."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end and self.exit_code is None:
            if self._answers():
                return True
            wait(_POLL_S)
        return False

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(_PROBE.format(port=self.port).encode())
                answer = connection.recv(16)
                return answer.startswith(b"HTTP/") and self.exit_code is None
        except OSError:
            return False

    def stop(self) -> None:
        """Ends it, with a signal that asks first, and what it has left behind."""
        if self.exit_code is None:
            started = self._descendants()
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_STOP_S)
            for process in started:
                self._end_if_ours(process)

    def _descendants(self) -> list[int]:
        found: list[int] = []
        todo = [self._process.pid]
        while todo:
            for children in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
                try:
                    started = [int(pid) for pid in children.read_text().split()]
                except OSError:  # it has ended meanwhile
                    continue
                found += started
                todo += started
        return found

    def _end_if_ours(self, process: int) -> None:
        # By now the number may be another program's: ours has our directory in its arguments.
        try:
            if str(self._folder) in Path(f"/proc/{process}/cmdline").read_text():
                os.kill(process, signal.SIGKILL)
        except OSError:
            return

    def rss_kb(self) -> int:
        """The memory that it holds; 0 when it has ended."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) if found else 0

    def fds(self) -> int:
        """How many descriptors it has open; 0 when it has ended."""
        try:
            return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))
        except OSError:
            return 0
