"""The wheel of the core, installed with only what it declares to need, is a whole library."""

from pathlib import Path

import pytest

from tests.architecture.fresh_interpreter import run_fresh
from tests.architecture.scripted_upstream import ANSWER, scripted_upstream
from tests.architecture.workshop import build_distributions, make_environment

LOADED = """
import json, sys
import woollama.core
print(json.dumps({"modules": sorted(sys.modules), "file": woollama.core.__file__,
    "marker": woollama.core.__woollama__}))
"""

INSTALLED = """
import json
from importlib import metadata
print(json.dumps(sorted(d.metadata["Name"].lower() for d in metadata.distributions())))
"""

ASK = """
import json, sys
from woollama.core import complete_sync
text = complete_sync(
    "openai/gpt-x", [{"role": "user", "content": "Capital of France?"}],
    base_url=sys.argv[1], api_key="k",
)
print(json.dumps(text))
"""

ASK_FROM_MANY_LOOPS = """
import asyncio, json, sys
from concurrent.futures import ThreadPoolExecutor
from woollama.core import complete

def ask(_):
    message = {"role": "user", "content": "Capital of France?"}
    return asyncio.run(complete("openai/gpt-x", [message], base_url=sys.argv[1], api_key="k"))

with ThreadPoolExecutor(4) as pool:
    print(json.dumps(sorted(set(pool.map(ask, range(8))))))
"""


@pytest.fixture(scope="module")
def bare_python(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core-alone")
    built = build_distributions(repository, folder / "dist")
    wheel = next(
        path for path in built if path.name.startswith("woollama_core-") and path.suffix == ".whl"
    )
    return make_environment(folder / "venv", wheel)


def test_p_8_no_server_is_installed_with_the_core(bare_python: Path) -> None:
    installed = set(run_fresh(INSTALLED, python=bare_python))
    assert "woollama-core" in installed
    assert set() == installed & {"woollama-server", "starlette", "hypercorn", "mcp", "httptools"}


def test_the_import_loads_the_installed_core_and_no_server_module(bare_python: Path) -> None:
    loaded = run_fresh(LOADED, python=bare_python)
    assert loaded["marker"] == "router"
    assert loaded["file"].startswith(str(bare_python.parent.parent))
    assert [] == [name for name in loaded["modules"] if name.startswith("woollama.server")]


def test_complete_sync_answers(bare_python: Path) -> None:
    with scripted_upstream() as url:
        assert ANSWER == run_fresh(ASK, url, python=bare_python)


def test_p_5_complete_answers_on_many_loops_and_threads(bare_python: Path) -> None:
    with scripted_upstream() as url:
        assert [ANSWER] == run_fresh(ASK_FROM_MANY_LOOPS, url, python=bare_python)
