"""Run a piece of Python in an interpreter of its own, and read the JSON that it prints."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_fresh(
    code: str,
    *args: str,
    python: str | Path = sys.executable,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Any:
    """The value that `code` prints as JSON on its last line; its failure fails the test."""
    run = subprocess.run(
        [python, "-X", "faulthandler", "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])
