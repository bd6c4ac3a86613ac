"""The example plugin in an environment of its own: installed, enabled, used, broken in six ways."""

import os
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.workshop import build_distributions, make_environment, run_uv
from tests.docs.tables import tables_of
from tests.docs.upstream import serve_upstream

PAGE = "docs/howto/extending.md"
ENABLED = (
    '[plugins]\nenabled = ["local", "proverbs"]\n\n[plugins.proverbs]\nmodel = "ollama/qwen3"\n'
)
MORE = '\n[plugins.proverbs.more]\ncalm = "Still waters run {{how}}."\n'


@pytest.fixture(scope="module")
def python(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with our two wheels and the example's."""
    dist = tmp_path_factory.mktemp("dist")
    build_distributions(repository, dist)
    example = repository / "docs/examples/woollama-proverbs"
    run_uv("build", "--quiet", "--wheel", "--out-dir", dist, example, cwd=dist)
    return make_environment(tmp_path_factory.mktemp("env") / "venv", *sorted(dist.glob("*.whl")))


@pytest.fixture(scope="module")
def upstream() -> Generator[str]:
    with serve_upstream() as address:
        yield address


Woollama = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def woollama(python: Path, tmp_path: Path, upstream: str) -> Woollama:
    """Runs the command with a ``woollama.toml`` of its own."""

    def run(*arguments: str, config: str = ENABLED + MORE) -> subprocess.CompletedProcess[str]:
        (tmp_path / "woollama.toml").write_text(config, "utf-8")
        return subprocess.run(
            [python.parent / "woollama", *arguments],
            cwd=tmp_path,
            env={
                "PATH": os.environ.get("PATH", ""),
                "HOME": str(tmp_path),
                "WOOLLAMA_CONFIG_DIR": str(tmp_path),
                "WOOLLAMA_OLLAMA_URL": f"http://{upstream}",
                "COLUMNS": "200",
                # Its module is changed within a second, which compiled files do not notice.
                "PYTHONDONTWRITEBYTECODE": "1",
                "NO_COLOR": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_p_62_installed_it_is_listed_and_not_enabled(woollama: Woollama) -> None:
    run = woollama("plugins", "list", config="")
    assert 0 == run.returncode, run.stderr
    assert "proverbs  installed  woollama-proverbs 0.1.0" in run.stdout


def test_p_62_enabled_it_is_shown_with_what_it_contributes(woollama: Woollama) -> None:
    assert "proverbs  enabled    woollama-proverbs 0.1.0  pattern_backends, routes" in (
        woollama("plugins", "list").stdout
    )
    shown = woollama("plugins", "show", "proverbs").stdout
    for line in (
        "proverbs  (enabled)",
        "from              woollama-proverbs 0.1.0, woollama_proverbs:ProverbsPlugin",
        "pattern backends  proverbs",
        "routes            GET /x/proverbs/count",
        "setting           model, default null",
    ):
        assert line in shown.splitlines()


def test_p_62_its_patterns_are_listed_shown_and_run(woollama: Woollama) -> None:
    listed = woollama("patterns").stdout
    for name in ("wise", "haste", "calm"):
        assert f"{name} " in listed
    assert "Still waters run {{how}}." in woollama("patterns", "show", "calm").stdout
    asked = woollama("ask", "-p", "wise", "-v", "topic=sheep", "What is the capital of France?")
    assert ("Paris.\n", 0) == (asked.stdout, asked.returncode), asked.stderr
    model = woollama("ask", "-m", "woollama/haste", "What is the capital of France?")
    assert "Paris.\n" == model.stdout, model.stderr


def test_its_own_tests_pass_where_it_is_installed(python: Path, repository: Path) -> None:
    folder = repository / "docs/examples/woollama-proverbs/tests"
    program = "import test_proverbs as t; t.test_it_keeps_the_contract(); "
    program += "t.test_its_patterns_are_rendered()"
    run = subprocess.run(
        [python, "-c", program],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == run.returncode, run.stderr


class Way(NamedTuple):
    """One way to break it: in its module, in the configuration, or by a line at its end."""

    old: str
    new: str
    where: str = "module"


WAYS = (
    Way("api_version = 1", "api_version = 2"),
    Way("model =", "modell =", "config"),
    Way(', "proverbs"', "", "config"),
    Way("    config_type =", '    requires = ("weather",)\n    config_type ='),
    Way('    id = "proverbs"', '    id = "sayings"'),
    Way('"""Proverbs as patterns: a plugin of woollama."""', 'raise ValueError("no")'),
)


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_p_61_broken_in_six_ways_it_says_what_the_page_prints(
    python: Path, woollama: Woollama, number: int
) -> None:
    rows = tables_of(PAGE)["When it is refused"]
    assert len(WAYS) == len(rows)
    (module,) = python.parents[1].glob("lib/python*/site-packages/woollama_proverbs/__init__.py")
    good = module.read_text("utf-8")
    way = WAYS[number]
    files = {"module": good, "config": ENABLED}
    assert way.old in files[way.where]
    files[way.where] = files[way.where].replace(way.old, way.new, 1)
    try:
        module.write_text(files["module"], "utf-8")
        run = woollama("models", config=files["config"])
    finally:
        module.write_text(good, "utf-8")
    assert 78 == run.returncode, run.stdout
    assert f"woollama.toml: {rows[number][1]}" in run.stderr.replace("plugins.enabled: ", "")
    assert "Traceback" not in run.stderr
