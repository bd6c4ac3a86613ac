"""P-1: the core loads no server and reads no configuration that it was not asked to read."""

from pathlib import Path

import pytest

from tests.architecture.fresh_interpreter import run_fresh
from tests.architecture.scripted_upstream import ANSWER, scripted_upstream

SERVER_MODULES = ("fastapi", "uvicorn", "starlette", "hypercorn", "mcp", "woollama.server")

LOADED = """
import json, sys
import woollama.core
print(json.dumps(sorted(sys.modules)))
"""

# Opens that are Python's own way to import are left out; all others are reported.
WATCHED_CALL = """
import asyncio, json, os, sys

url, config = sys.argv[1:]
places = {sys.prefix, sys.base_prefix, *filter(None, sys.path)}
roots = tuple(os.path.realpath(place) + os.sep for place in places)
seen, touched = [], []

def watch(event, args):
    if event == "open" and isinstance(args[0], str) and args[0] != os.devnull:
        if not os.path.realpath(args[0]).startswith(roots):
            seen.append(args[0])
    if event.startswith(("open", "os.", "glob.", "pathlib.")):
        if any(config in str(arg) for arg in args):
            touched.append(event)

sys.addaudithook(watch)

from woollama.core import ModelRegistry, Provider, complete

async def main():
    provider = Provider("mine", url, None)
    registry = ModelRegistry(inferencers={"mine": provider})
    return await complete("mine/m", [{"role": "user", "content": "?"}], registry=registry)

text = asyncio.run(main())
print(json.dumps({"text": text, "opened": seen, "touched": touched}))
"""


@pytest.fixture
def broken_config(tmp_path: Path) -> Path:
    """A configuration folder whose every file would be refused by whoever reads it."""
    folder = tmp_path / "broken-config"
    folder.mkdir()
    for name in ("inferencers.toml", "recipes.toml", "woollama.toml", "mcp.json", ".env"):
        (folder / name).write_text("]{ this parses as nothing", "utf-8")
    return folder


def test_p_1_importing_the_core_loads_no_server() -> None:
    loaded = set(run_fresh(LOADED))
    assert set() == loaded.intersection(SERVER_MODULES)


def test_p_1_a_call_with_a_registry_reads_no_configuration(broken_config: Path) -> None:
    """Started in the folder of broken files too: nothing beside the program is read (P-6)."""
    with scripted_upstream() as url:
        answer = run_fresh(
            WATCHED_CALL,
            url,
            str(broken_config),
            environment={"WOOLLAMA_CONFIG_DIR": str(broken_config)},
            cwd=broken_config,
        )
    assert {"text": ANSWER, "opened": [], "touched": []} == answer
