"""The real daemon in a process of its own, as a user starts it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 30.0
_KEPT = ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")


class RunningDaemon:
    """A daemon that serves.

    Attributes:
        url: where, without ``/v1``.
        log: what it has written so far.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def stop(self) -> int:
        """Asks it to end; gives its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@contextmanager
def running_daemon(
    folder: Path, *arguments: str, files: Mapping[str, str], environ: Mapping[str, str]
) -> Generator[RunningDaemon]:
    """``woollama serve --port 0`` on a configuration of these files; stopped at the end."""
    config, runtime = folder / "config", folder / "run"
    for made in (config, runtime):
        made.mkdir(mode=0o700, exist_ok=True)
    for name, text in files.items():
        (config / name).write_text(text)
    log = folder / "serve.log"
    own = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own |= {"WOOLLAMA_CONFIG_DIR": str(config), "XDG_RUNTIME_DIR": str(runtime)}
    own |= {"HOME": str(folder), **environ}
    command = [sys.executable, "-m", "woollama.server", "serve", "--port", "0", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=own, cwd=folder)
    try:
        address = _address(process, runtime / "woollama.addr", log)
        yield RunningDaemon(process, f"http://{address}", log)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(DEADLINE_S)


def _address(process: subprocess.Popen[bytes], file: Path, log: Path) -> str:
    end = time.monotonic() + DEADLINE_S
    # The log says when connections are served; the file only where.
    while "OpenAI API" not in log.read_text() or not file.exists():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        os.sched_yield()
    return file.read_text().strip()
