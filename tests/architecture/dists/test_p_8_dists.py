"""P-8: two wheels and two source distributions, right in themselves and installed by path."""

import subprocess
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.architecture.workshop import build_distributions, make_environment

NAMES = ("woollama_core", "woollama_server")


@pytest.fixture(scope="module")
def dist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build_distributions(repository, folder)
    return folder


@pytest.fixture(scope="module")
def version(repository: Path) -> str:
    text = (repository / "packages/woollama-core/pyproject.toml").read_text("utf-8")
    return tomllib.loads(text)["project"]["version"]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata_of(wheel: Path) -> Message:
    files = contents(wheel)
    return Parser().parsestr(
        next(body for name, body in files.items() if name.endswith("/METADATA")).decode("utf-8")
    )


def test_p_8_two_wheels_and_two_source_distributions(dist: Path, version: str) -> None:
    expected = {f"{name}-{version}-py3-none-any.whl" for name in NAMES}
    expected |= {f"{name}-{version}.tar.gz" for name in NAMES}
    assert expected == {path.name for path in dist.iterdir() if path.suffix in {".gz", ".whl"}}


@pytest.mark.parametrize("name", NAMES)
def test_p_8_the_metadata_says_what_it_is(dist: Path, version: str, name: str) -> None:
    metadata = metadata_of(next(dist.glob(f"{name}-*.whl")))
    assert metadata["Name"] == name.replace("_", "-")
    assert metadata["Version"] == version
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Summary"]
    body = metadata.get_payload()
    assert isinstance(body, str)
    assert body.startswith(f"# {metadata['Name']}")
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_p_8_versions_are_equal_and_the_server_pins_the_core(dist: Path, version: str) -> None:
    metadata = metadata_of(next(dist.glob("woollama_server-*.whl")))
    assert f"woollama-core[fast]=={version}" in metadata.get_all("Requires-Dist", [])


def test_p_8_wheels_share_the_namespace_and_nothing_else(dist: Path) -> None:
    core, server = (set(contents(next(dist.glob(f"{name}-*.whl")))) for name in NAMES)
    assert set() == core & server
    for files, package in ((core, "woollama/core"), (server, "woollama/server")):
        assert f"{package}/__init__.py" in files
        assert f"{package}/py.typed" in files
        outside = [f for f in files if not f.startswith(f"{package}/") and ".dist-info/" not in f]
        assert outside == []
        assert [] == [f for f in files if "__pycache__" in f]


@pytest.mark.parametrize("name", NAMES)
def test_p_8_a_source_distribution_holds_what_builds_it(dist: Path, name: str) -> None:
    with tarfile.open(next(dist.glob(f"{name}-*.tar.gz"))) as archive:
        files = {member.partition("/")[2] for member in archive.getnames()}
    package = name.replace("_", "/")
    assert {"pyproject.toml", "README.md", "LICENSE", f"src/{package}/__init__.py"} <= files


def test_p_8_installed_together_by_path_the_command_runs(
    dist: Path, version: str, tmp_path: Path
) -> None:
    python = make_environment(tmp_path / "venv", *sorted(dist.glob("*.whl")))
    run = subprocess.run(
        [python.parent / "woollama", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert version in run.stdout
