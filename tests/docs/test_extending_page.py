"""P-62: the page on plugins builds a pattern backend in one package, and its code is run."""

import os
import subprocess
import sys

from tests.docs.blocks import ROOT, blocks_of
from tests.docs.tables import tables_of
from woollama.server.plugins.contract import Plugin, PluginContext

PAGE = "docs/howto/extending.md"
EXAMPLE = ROOT / "docs/examples/woollama-proverbs"
FILES = ("pyproject.toml", "src/woollama_proverbs/__init__.py", "tests/test_proverbs.py")


def test_p_62_what_the_page_prints_is_what_the_example_holds() -> None:
    printed = [block.text for block in blocks_of(PAGE) if block.language in {"toml", "python"}]
    files = [(EXAMPLE / file).read_text("utf-8") for file in FILES]
    assert files == [text for text in printed if text in files]


def test_p_62_the_examples_own_tests_pass() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=EXAMPLE,
        env={**os.environ, "PYTHONPATH": str(EXAMPLE / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == run.returncode, run.stdout + run.stderr
    assert "2 passed" in run.stdout


def test_the_page_names_everything_that_a_plugin_can_say() -> None:
    rows = tables_of(PAGE)["What a plugin says"]
    named = {
        name
        for row in rows
        for name in row[0].replace("`", "").replace("(context)", "").split(", ")
    }
    public = {name for name in vars(Plugin) if not name.startswith("_")} | set(
        Plugin.__annotations__
    )
    assert public == named


def test_the_page_names_everything_in_a_context() -> None:
    text = (ROOT / PAGE).read_text("utf-8").partition("`context` has")[2].partition("\n\n")[0]
    assert set(PluginContext.__struct_fields__) == set(text.split("`")[1::2])
