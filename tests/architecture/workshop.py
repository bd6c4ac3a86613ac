"""Build the distributions and make environments to install them in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def run_uv(*args: str | Path, cwd: Path) -> str:
    """Run uv, as the one that started us when it did; its failure fails the test."""
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv is not None, "needs uv on PATH"
    inherited = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    run = subprocess.run(
        [uv, *args], cwd=cwd, capture_output=True, text=True, check=False, env=inherited
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def build_distributions(repository: Path, out: Path) -> list[Path]:
    """Two wheels and two source distributions, each wheel built from its source distribution."""
    run_uv("build", "--quiet", "--all-packages", "--out-dir", out, cwd=repository)
    return sorted(path for path in out.iterdir() if path.suffix in {".gz", ".whl"})


def make_environment(folder: Path, *requirements: str | Path) -> Path:
    """A new environment of this Python with these packages and what they need: its interpreter."""
    run_uv("venv", "--quiet", "--no-project", "--python", sys.executable, folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    run_uv("pip", "install", "--quiet", "--python", python, *requirements, cwd=folder.parent)
    return python
