"""RU-1: another project's `woollama.core` exists; the server starts only on ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOREIGN = '''
"""Somebody else's woollama.core."""
__version__ = "0.7.0"
'''
START = "from woollama.server.cli import main; main()"


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["ask", "hello"]])
def test_ru_1_the_server_refuses_a_foreign_core(tmp_path: Path, command: list[str]) -> None:
    foreign = tmp_path / "woollama" / "core"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text(FOREIGN, "utf-8")
    run = subprocess.run(
        [sys.executable, "-c", START, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    assert "woollama.core" in run.stderr
    assert str(foreign) in run.stderr, "the message names what was found"
    assert "pip install" in run.stderr, "the message says what to do"
