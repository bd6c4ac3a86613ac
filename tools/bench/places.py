"""Where things are: this tool's files and the peers; and what child processes are given."""

import os
import socket
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = Path(__file__).resolve().parent / "targets"


def bench_home() -> Path:
    """Where ``setup.sh`` puts the peers and the results go: ``$BENCH_HOME``, else under tmp."""
    given = os.environ.get("BENCH_HOME")
    return Path(given) if given else Path(tempfile.gettempdir()) / "woollama-bench"


def litellm_python() -> Path:
    """The interpreter of LiteLLM's own virtual environment, which may not be installed."""
    return bench_home() / "litellm" / "bin" / "python"


def our_command() -> str:
    """The server to measure: ``$WOOLLAMA_BIN``, else the ``woollama`` on the path."""
    given = os.environ.get("WOOLLAMA_BIN", "woollama")
    return str(Path(given).absolute()) if os.sep in given else given


def module_argv(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of this tool in a process of its own."""
    return [sys.executable, "-m", f"tools.bench.{module}", *arguments]


def child_env(**more: str) -> dict[str, str]:
    """The environment of every child process.

    Only what a program needs to start: no key, no proxy and no configuration of the caller can
    change what is measured or send a byte off this machine.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, **more}


def module_env() -> dict[str, str]:
    """The environment for ``module_argv``: as ``child_env``, and this tool can be imported."""
    return child_env(PYTHONPATH=str(ROOT))


def free_port() -> int:
    """A loopback port that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
