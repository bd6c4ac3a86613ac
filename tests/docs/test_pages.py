"""Every page is done from top to bottom, as a reader would."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks_of, commands_of, fits, pages
from tests.docs.story import CONFIGURATION, read_page
from tests.docs.upstream import serve_upstream
from woollama.core.providers.configured import check_inferencers

# Their blocks are shown with `sh` and need files of the reader's own; their authors test them.
NOT_STORIES = frozenset({"docs/howto/embedded-model.md", "docs/howto/tools-and-recipes.md"})
STORIES = [
    page
    for page in pages()
    if page not in NOT_STORIES
    and any(block.not_run is None for block in blocks_of(page) if block.language != "text")
]
BLOCKS = [block for page in pages() if page not in NOT_STORIES for block in blocks_of(page)]
# The tutorial shows what becomes of a typing error.
FAULT = "base_ulr"
# Languages that are shown and not run: what they hold is checked below, or is for other programs.
SHOWN = frozenset({"ini", "js", "json", "nginx", "text", "toml", "yaml"})


@pytest.fixture(scope="module")
def upstream() -> Generator[str]:
    with serve_upstream() as address:
        yield address


@pytest.mark.parametrize("page", STORIES)
def test_a_page_does_what_it_says(page: str, upstream: str) -> None:
    read_page(page, upstream)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_is_of_a_language_that_a_test_knows(block: Block) -> None:
    assert block.language in {"console", "python", *SHOWN}, block.place
    if block.language == "console":
        assert commands_of(block)


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language in {"json", "python", "toml"}],
    ids=lambda block: block.place,
)
def test_a_block_is_well_formed(block: Block) -> None:
    match block.language:
        case "json":
            json.loads(block.text)
        case "python":
            ast.parse(block.text)
        case _:
            tomllib.loads(block.text)


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.title == "inferencers.toml" and FAULT not in block.text],
    ids=lambda block: block.place,
)
def test_printed_providers_are_taken_without_a_complaint(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "inferencers.toml"
    path.write_text(block.text, "utf-8")

    _, problems = check_inferencers(path, os.environ)

    assert [] == problems


def test_configuration_files_are_printed_under_their_own_names() -> None:
    titles = {block.title for block in BLOCKS if block.language == "toml" and block.title}
    assert set() == titles - CONFIGURATION


def test_the_stand_in_for_curl_asks_what_the_pages_ask(upstream: str) -> None:
    url = f"http://{upstream}/v1"
    question = '{"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}'
    asked = ["-s", f"{url}/chat/completions", "-H", "content-type: application/json"]

    models = _curl("-s", f"{url}/models")
    answer = _curl(*asked, "-d", question)
    refusal = _curl("-si", f"{url}/nothing")

    assert "qwen3" in models
    assert "Hello!" in answer
    assert refusal.startswith("HTTP/1.1 404 ")


def _curl(*arguments: str) -> str:
    argv = [sys.executable, str(Path(__file__).with_name("curl.py")), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


def test_an_ellipsis_stands_for_anything() -> None:
    assert fits("Listening on …\n…\nready", "Listening on x:1\na\nb\nready\n")
    assert not fits("Listening on …", "listening on x")
    assert fits("", "\n")


def test_a_fence_knows_its_line_its_title_and_why_it_is_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: no reason -->\n"
        '```toml title="x.toml"\na = 1\n```\n\ntext\n\n'
        "   ```console\n   $ a \\\n      b\n   c\n   ```\n"
    )
    relative = os.path.relpath(page, ROOT)

    first, second = blocks_of(relative)

    assert (2, "toml", "x.toml", "no reason", "a = 1\n") == first[1:]
    assert (8, "console", None, None) == second[1:5]
    assert [("a \\\n   b", "c\n")] == commands_of(second)
