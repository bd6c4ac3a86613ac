"""The command in processes of its own, as somebody at a keyboard or a script starts it."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

LIMIT_S = 60.0
_KEPT = ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
_COMMAND = (sys.executable, "-m", "woollama.server")


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line on stderr."""
        (line,) = self.err.splitlines()
        return line


class Shell:
    """A home with nothing in it but what a test writes; no variable of the machine but a few.

    Attributes:
        config: the configuration directory.
        environ: what every command gets.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.config = home / "config"
        self.config.mkdir()
        run = home / "run"
        run.mkdir(mode=0o700)
        self.environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.environ |= {
            "COLUMNS": "80",
            "HOME": str(home),
            "TERM": "xterm-256color",
            "WOOLLAMA_CONFIG_DIR": str(self.config),
            "WOOLLAMA_OLLAMA_URL": "http://127.0.0.1:1",
            "XDG_RUNTIME_DIR": str(run),
        }

    def write(self, name: str, text: str) -> None:
        """One file of the configuration."""
        (self.config / name).write_text(text, "utf-8")

    def provider(self, url: str, table: str = "") -> None:
        """A provider ``up`` at this address, and no other that is configured."""
        self.write("inferencers.toml", f'[inferencers.up]\nbase_url = "{url}"\n{table}')

    def run(self, *arguments: str, stdin: bytes = b"", **environ: str) -> Ended:
        """The command, to its end, with pipes for all its streams."""
        done = subprocess.run(
            [*_COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            env=self.environ | environ,
            cwd=self.home,
            timeout=LIMIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def script(self, line: str, **environ: str) -> Ended:
        """A line of ``sh`` in which ``woollama`` is the command; stdin is a closed pipe."""
        named = " ".join(f"'{part}'" for part in _COMMAND)
        done = subprocess.run(
            ["sh", "-c", f'woollama() {{ {named} "$@"; }}\n{line}'],
            input=b"",
            capture_output=True,
            env=self.environ | environ,
            cwd=self.home,
            timeout=LIMIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def started(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, **environ: str
    ) -> Generator[subprocess.Popen[bytes]]:
        """The command on pipes, running."""
        process = subprocess.Popen(
            [*_COMMAND, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ | environ,
            cwd=self.home,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    @contextmanager
    def terminal(self, *arguments: str, **environ: str) -> Generator["Terminal"]:
        """The command with all its streams on a terminal of 80 columns, running."""
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [*_COMMAND, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self.environ | environ,
            cwd=self.home,
            start_new_session=True,
        )
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(master)


class Terminal:
    """What stands on a terminal, escape codes and all.

    Attributes:
        process: the command.
        seen: everything that has been written.
    """

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.seen = ""
        self._master = master

    def wait_for(self, mark: str) -> str:
        """Everything, once ``mark`` is there."""
        end = time.monotonic() + LIMIT_S
        while mark not in self.seen:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"no {mark!r} in {self.seen!r}"
            assert self._read(), f"ended without {mark!r}: {self.seen!r}"
        return self.seen

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Everything that is still written, and the exit status."""
        while self._read():
            pass
        return self.process.wait(LIMIT_S)

    def _read(self) -> bool:
        # A terminal whose last program has ended reads as an error.
        with suppress(OSError):
            data = os.read(self._master, 4096)
            self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
            return bool(data)
        return False
