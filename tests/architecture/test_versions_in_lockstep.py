"""Both distributions have one version, and the server takes exactly that core."""

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import woollama.core


def project(repository: Path, name: str) -> dict[str, Any]:
    text = (repository / "packages" / name / "pyproject.toml").read_text("utf-8")
    return tomllib.loads(text)["project"]


def test_the_distributions_have_one_version(repository: Path) -> None:
    core, server = project(repository, "woollama-core"), project(repository, "woollama-server")
    assert core["version"] == server["version"]


def test_the_server_pins_the_core_exactly(repository: Path) -> None:
    core, server = project(repository, "woollama-core"), project(repository, "woollama-server")
    pins = [line for line in server["dependencies"] if line.startswith("woollama-core")]
    assert [f"woollama-core[fast]=={core['version']}"] == pins


def test_the_code_knows_its_version(repository: Path) -> None:
    core = project(repository, "woollama-core")
    assert core["version"] == woollama.core.__version__
    assert core["version"] == metadata.version("woollama-core")
    assert core["version"] == metadata.version("woollama-server")


def test_both_support_the_same_pythons(repository: Path) -> None:
    core, server = project(repository, "woollama-core"), project(repository, "woollama-server")
    assert core["requires-python"] == server["requires-python"]


def test_the_licence_is_one_text(repository: Path) -> None:
    licence = (repository / "LICENSE").read_bytes()
    for name in ("woollama-core", "woollama-server"):
        assert licence == (repository / "packages" / name / "LICENSE").read_bytes()
