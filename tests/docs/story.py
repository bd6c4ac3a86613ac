"""A page read as a reader reads it: from top to bottom, every block done, every output compared.

- a block with ``title="name"`` is a file: a configuration file goes into the configuration
  directory, any other into the working directory;
- a ``console`` block is typed in: commands behind ``$``, what they print under them, ``…`` for
  anything. ``woollama serve``, and what has ``&`` behind it, goes on running to the end of the
  page;
- a ``python`` block without a title is a program of its own;
- what a comment ``<!-- not run: reason -->`` stands before is not done.

Addresses of servers are replaced by those of servers that run for the test.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.docs.blocks import Block, blocks_of, commands_of, fits

CONFIGURATION = frozenset({"inferencers.toml", "woollama.toml", "recipes.toml", "mcp.json", ".env"})
SDKS = frozenset({"anthropic", "ollama", "openai"})
DAEMON = "127.0.0.1:9665"
# The port of a server that a page has its reader write.
OWN_SERVER = "9777"
UPSTREAMS = (
    *("127.0.0.1:8080", "127.0.0.1:8000", "127.0.0.1:1234", "127.0.0.1:11434"),
    *("localhost:8080", "localhost:8000", "localhost:1234", "localhost:11434"),
)
# What `uv run` does for a reader has been done for the test.
RUNNERS = ("uv run --with openai ", "uv run --group clients ", "uv run ")
LIMIT_S = 90
READY = "http://"
"""In what a daemon prints when it listens."""
_CURL = Path(__file__).with_name("curl.py")


class Story:
    """One reader's machine: a home, a working directory, a daemon that may be running."""

    def __init__(self, home: Path, upstream: str, sdks: Iterable[str]) -> None:
        """Nothing is there but an empty home."""
        self._work = home / "work"
        self._config = home / ".config" / "woollama"
        self._bin = home / "bin"
        run = home / "run"
        for folder in (self._work, self._config, self._bin, run):
            folder.mkdir(parents=True)
        run.chmod(0o700)
        self._daemons: list[subprocess.Popen[str]] = []
        self._others: list[subprocess.Popen[str]] = []
        self._missing = SDKS - set(sdks)
        self._left_out: set[str] = set()
        self._port = free_port()
        self._addresses = {
            DAEMON: f"127.0.0.1:{self._port}",
            OWN_SERVER: str(free_port()),
            **dict.fromkeys(UPSTREAMS, upstream),
        }
        self._environ = {
            **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE")},
            "HOME": str(home),
            "PATH": os.pathsep.join(
                [str(self._bin), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
            ),
            "XDG_RUNTIME_DIR": str(run),
            "WOOLLAMA_ADDRESS": f"127.0.0.1:{self._port}",
            "WOOLLAMA_OLLAMA_URL": f"http://{upstream}",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        if shutil.which("curl") is None:
            tool = self._bin / "curl"
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{_CURL}" "$@"\n')
            tool.chmod(0o755)

    def read(self, block: Block) -> None:
        """Do what one block says."""
        if block.not_run is not None or self._needs_what_is_missing(block):
            return
        if block.title is not None:
            folder = self._config if block.title in CONFIGURATION else self._work
            (folder / block.title).write_text(self._put_addresses(block.text), "utf-8")
        elif block.language == "console":
            for command, expected in commands_of(block):
                self._type(block, command, expected)
        elif block.language == "python":
            self._run(block, [sys.executable, "-c", self._put_addresses(block.text)], None)

    def _needs_what_is_missing(self, block: Block) -> bool:
        named = {sdk for sdk in self._missing if f"from {sdk} import" in block.text}
        if named and block.title is not None:
            self._left_out.add(block.title)
        return bool(named) or any(name in block.text for name in self._left_out)

    def _type(self, block: Block, command: str, expected: str) -> None:
        for runner in RUNNERS:
            command = command.replace(runner, "")
        command = self._put_addresses(command)
        if command.startswith("woollama serve"):
            self._serve(block, command, expected)
        elif command.endswith("&"):
            self._others.append(self._start(command.removesuffix("&"), subprocess.DEVNULL))
            wait_for_port(int(self._addresses[OWN_SERVER]))
        else:
            self._run(block, ["sh", "-c", command], expected)

    def _run(self, block: Block, argv: list[str], expected: str | None) -> None:
        done = subprocess.run(
            argv,
            cwd=self._work,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        said = self._take_addresses(done.stdout)
        if expected is None:
            assert done.returncode == 0, f"{block.place}: exit {done.returncode}:\n{said}"
        else:
            assert fits(expected, said), f"{block.place}: {argv[-1]}\nprinted:\n{said}"

    def _serve(self, block: Block, command: str, expected: str) -> None:
        log = self._work / f"daemon-{len(self._daemons)}.log"
        with log.open("w") as out:
            daemon = self._start(command, out)
        self._daemons.append(daemon)
        deadline = time.monotonic() + LIMIT_S
        said = ""
        while time.monotonic() < deadline:
            ended = daemon.poll() is not None
            said = self._take_addresses(log.read_text())
            if ended:
                # One that refuses to start, and says why.
                self._daemons.remove(daemon)
                assert fits(expected, said), f"{block.place}: {command}\nprinted:\n{said}"
                return
            if READY in said and fits(f"{expected.rstrip()}…", said):
                return
            time.sleep(0.02)
        raise AssertionError(f"{block.place}: {command}\nprinted:\n{said}")

    def _start(self, command: str, out: IO[str] | int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            cwd=self._work,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _put_addresses(self, text: str) -> str:
        for printed, real in self._addresses.items():
            text = text.replace(printed, real)
        return text

    def _take_addresses(self, text: str) -> str:
        text = text.replace(self._addresses[DAEMON], DAEMON)
        return text.replace(self._environ["HOME"], "/home/you")

    def end(self) -> None:
        """Ends what is running; a daemon that was asked to end says so with exit code 0."""
        for daemon in self._daemons:
            daemon.send_signal(signal.SIGTERM)
        codes = [daemon.wait(LIMIT_S) for daemon in self._daemons]
        assert [0] * len(codes) == codes

    def kill(self) -> None:
        """Leaves nothing running, however the story went."""
        for process in (*self._daemons, *self._others):
            if process.poll() is None:
                process.kill()
                process.wait(LIMIT_S)


@contextmanager
def a_machine(upstream: str, sdks: Iterable[str]) -> Generator[Story]:
    """A fresh reader's machine; its path is short, because a socket's may not be long."""
    with tempfile.TemporaryDirectory(prefix="doc-") as folder:
        story = Story(Path(folder), upstream, sdks)
        try:
            yield story
            story.end()
        finally:
            story.kill()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port: int) -> None:
    """Returns when somebody listens on a port of 127.0.0.1."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on port {port}")


def read_page(page: str, upstream: str, *, sdks: Iterable[str] = ()) -> None:
    """Does everything that a page says.

    Args:
        page: its path below the root of the repository.
        upstream: ``host:port`` of the server that stands for all that the page names.
        sdks: the SDKs that are installed; blocks that need another are left to their own session.
    """
    with a_machine(upstream, sdks) as story:
        for block in blocks_of(page):
            story.read(block)
