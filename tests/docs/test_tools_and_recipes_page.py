"""The page on tools and recipes: each program is run against a scripted Ollama, as printed."""

import itertools
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.core.scripted import call
from tests.docs.blocks import Block, blocks_of
from tests.docs.story import a_machine
from woollama.core.canonical import Reply, Usage
from woollama.core.recipes import load_recipes
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.upstream import serve_in_thread

PAGE = "docs/howto/tools-and-recipes.md"
BLOCKS = list(blocks_of(PAGE))


def programs() -> list[tuple[Block, Block]]:
    """Each program, and the output that is printed under it."""
    pairs = itertools.pairwise(BLOCKS)
    return [(first, second) for first, second in pairs if first.language == "python"]


def used(prompt: int, completion: int) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


SCRIPTS: dict[str, list[Reply]] = {
    "def area": [
        say(calls=[call("area", '{"width":3,"height":4}')], usage=used(20, 7)),
        say("The room has 12 square metres.", usage=used(30, 8)),
    ],
    "def weather": [
        say(calls=[call("weather", '{"city":"Rome"}')]),
        say("The sky over Rome is blue."),
    ],
    "class Library": [
        say(calls=[call("library__read", '{"page":"Rome"}')]),
        say("It says that Rome is the capital of Italy."),
    ],
    "def delete": [
        say(calls=[call("delete", '{"path":"notes.txt"}')]),
        say("I have not deleted it."),
    ],
}


def script_for(text: str) -> Iterable[Reply]:
    return next((replies for mark, replies in SCRIPTS.items() if mark in text), ())


@pytest.mark.parametrize(
    ("program", "output"), programs(), ids=[program.place for program, _ in programs()]
)
def test_a_program_prints_what_the_page_says(program: Block, output: Block, tmp_path: Path) -> None:
    fake = OllamaFake(script_for(program.text))
    path = tmp_path / "program.py"
    path.write_text(program.text, "utf-8")
    with serve_in_thread(fake) as upstream:
        run = subprocess.run(
            [sys.executable, "-X", "utf8", path],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
            cwd=tmp_path,
            env={"WOOLLAMA_OLLAMA_URL": upstream.url, "HOME": str(tmp_path)},
        )
    assert "" == run.stderr
    assert output.text.rstrip("\n") == run.stdout.rstrip("\n")
    assert len(list(script_for(program.text))) == len(fake.requests), "the whole script was used"


def test_every_program_has_its_output_and_every_script_its_program() -> None:
    assert ["text"] * len(programs()) == [output.language for _, output in programs()]
    texts = "".join(program.text for program, _ in programs())
    assert [] == [mark for mark in SCRIPTS if mark not in texts]


def test_the_recipes_of_the_page_can_be_loaded(tmp_path: Path) -> None:
    (block,) = [block for block in BLOCKS if block.title == "recipes.toml"]
    path = tmp_path / "recipes.toml"
    path.write_text(block.text, "utf-8")
    book = load_recipes(path)
    assert ["translator", "clerk"] == list(book.recipes)
    assert tmp_path / "prompts" == book.patterns_dir


@pytest.mark.live
def test_what_is_typed_into_a_terminal_does_what_the_page_says() -> None:
    """The embedded model answers for the recipes that come along, a scripted Ollama for ours."""
    reckon = [
        say(calls=[call("sums__calculate", '{"expression":"17 * 23"}')]),
        say("It is 391."),
    ]
    spanish = say("Buenos días.")
    fake = OllamaFake([spanish, *reckon, *reckon, spanish])
    with (
        serve_in_thread(fake) as upstream,
        a_machine(upstream.url.removeprefix("http://"), ()) as story,
    ):
        for block in BLOCKS:
            if block.language == "console" or block.title is not None:
                story.read(block)
    asked = [request.json() for request in fake.requests if request.method == "POST"]
    assert 6 == len(asked)
    assert {"num_ctx": 8192, "temperature": 0} == asked[-1]["options"]
    systems = {each["messages"][0]["content"] for each in asked}
    assert {"Translate into Spanish.", "Use the tools for every number."} == systems
    results = [m["content"] for each in asked for m in each["messages"] if m["role"] == "tool"]
    assert ["391", "391"] == results
