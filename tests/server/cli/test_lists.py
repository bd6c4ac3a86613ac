"""``woollama models`` and ``woollama patterns``: what is there, and what could not be asked."""

import json
from collections.abc import Callable

import pytest

from tests.server.cli.shell import Ended, Shell
from tests.server.cli.upstream import Speaker, refusal
from woollama.core.testing.upstream import Exchange, serve_in_thread, whole
from woollama.server.cli.commands import run

Run = Callable[..., Ended]
RECIPES = """
[recipes.sums]
inferencer = "up/alpha"
description = "Adds up."
system = "Add {{what}} in {{style}}."

[recipes.sums.variables.style]
default = "short"
choices = ["short", "long"]
description = "How it is said."

[patterns]
dir = "prompts"
"""


@pytest.fixture
def woollama(
    shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs a command in this process; of the built-in providers none has a key."""
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(shell.config))
    monkeypatch.setenv("WOOLLAMA_OLLAMA_URL", "http://127.0.0.1:1")
    for name in ("ANTHROPIC", "OPENAI", "GROQ", "TOGETHER", "OPENROUTER"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)

    def woollama(*arguments: str) -> Ended:
        code = run(arguments)
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return woollama


def remark(done: Ended, start: str) -> str:
    """The one line beside the list that begins so."""
    (line,) = [line for line in done.err.splitlines() if line.startswith(start)]
    return line


# Models


def test_the_models_are_a_table_and_the_rest_is_beside_it(shell: Shell, woollama: Run) -> None:
    shell.write("recipes.toml", '[recipes.sums]\ninferencer = "up/alpha"\n')
    table = "discover = true\n[inferencers.up.models.big]\ncontext = 32000\nefforts = ['low']\n"
    with serve_in_thread(Speaker("")) as upstream:
        shell.provider(upstream.url, table)
        done = woollama("models")
    assert 0 == done.code
    title, *rows = done.out.splitlines()
    assert ["MODEL", "DIALECT", "CONTEXT", "EFFORTS"] == title.split()
    assert ["up/big", "compatible", "32,000", "low"] == rows[0].split()
    assert [["up/alpha", "compatible"], ["up/beta", "compatible"]] == [
        row.split() for row in rows[1:3]
    ]
    assert [] == [line for line in done.out.splitlines() if line != line.rstrip()]
    assert "ollama: http://127.0.0.1:1 cannot be reached: connection refused." == remark(
        done, "ollama:"
    )
    assert "openai (OPENAI_API_KEY)" in remark(done, "Without a key: ")
    assert "Prompts are models, too: woollama/sums." == remark(done, "Prompts")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (refusal(401, "Bad key."), "up: Bad key."),
        (whole(b"<html>"), "up: "),
        (refusal(500, "\x1b[31mfire\nfire"), "up: ␛[31mfire fire"),
    ],
    ids=["401", "html", "500"],
)
def test_a_provider_that_could_not_be_asked_is_named_with_its_reason(
    reply: bytes, expected: str, shell: Shell, woollama: Run
) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(reply)

    with serve_in_thread(script) as upstream:
        shell.provider(upstream.url, "discover = true\n")
        done = woollama("models")
    assert 0 == done.code
    assert expected in remark(done, "up: ")


def test_one_that_is_not_asked_says_what_to_do(shell: Shell, woollama: Run) -> None:
    shell.provider("http://127.0.0.1:1/v1")
    assert "up: no list is asked for; name a model yourself" in woollama("models").err


def test_json_is_everything_for_a_program(shell: Shell, woollama: Run) -> None:
    shell.write("recipes.toml", '[recipes.sums]\ninferencer = "up/alpha"\n')
    with serve_in_thread(Speaker("")) as upstream:
        shell.provider(upstream.url, "discover = true\n")
        done = woollama("models", "--json")
    assert (0, "") == (done.code, done.err)
    entries = {entry["provider"]: entry for entry in json.loads(done.out)}
    up = entries["up"]
    assert ("openai", None) == (up["kind"], up["error"])
    alpha: dict[str, object] = {
        "id": "up/alpha",
        "dialect": "compatible",
        "context": None,
        "efforts": [],
    }
    assert alpha == up["models"][0]
    assert "connection refused" in entries["ollama"]["error"]
    assert [] == entries["ollama"]["models"]
    own = [model for model in entries["woollama"]["models"] if model["id"] == "woollama/sums"]
    assert ["up/alpha"] == [model["runs_on"] for model in own]
    keys = {frozenset(entry) for entry in entries.values()}
    assert [{"provider", "kind", "base_url", "error", "models"}] == [set(each) for each in keys]


def test_a_long_name_stays_on_one_line_in_a_pipe(shell: Shell) -> None:
    name = "organisation/" + "very-long-" * 20 + "model"
    shell.provider("http://127.0.0.1:1/v1", f'models = ["{name}"]\n')
    assert f"up/{name}" in {line.split()[0] for line in shell.run("models").out.splitlines()}


def test_many_prompts_are_not_all_named(shell: Shell, woollama: Run) -> None:
    shell.write(
        "recipes.toml", "".join(f'[recipes.r{i}]\ninferencer = "up/m"\n' for i in range(10, 30))
    )
    shell.provider("http://127.0.0.1:1/v1")
    assert remark(woollama("models"), "Prompts").endswith("woollama/r15 and 14 more.")


# Patterns


@pytest.fixture
def prompts(shell: Shell) -> None:
    shell.provider("http://127.0.0.1:1/v1")
    shell.write("recipes.toml", RECIPES)
    folder = shell.config / "prompts" / "translate"
    folder.mkdir(parents=True)
    (folder / "system.md").write_text("Into {{language}}.\x1b[31m", "utf-8")


@pytest.mark.usefixtures("prompts")
def test_the_patterns_are_a_table(woollama: Run) -> None:
    expected = (
        "PATTERN    SOURCE     RUNS ON   VARIABLES\n"
        "sums       recipe     up/alpha  what, style\n"
        "translate  directory            language\n"
    )
    assert (0, expected, "") == woollama("patterns")


@pytest.mark.usefixtures("prompts")
def test_json_of_the_patterns_is_that_of_w1(woollama: Run) -> None:
    done = woollama("patterns", "--json")
    sums, translate = json.loads(done.out)
    assert ("sums", "recipe", "up/alpha", "Adds up.") == tuple(
        sums[key] for key in ("name", "source", "model", "description")
    )
    assert [{"name": "language"}] == translate["variables"]
    assert "model" not in translate


@pytest.mark.usefixtures("prompts")
def test_one_pattern_is_shown_with_its_defaults_filled_in(woollama: Run) -> None:
    expected = (
        "sums  (recipe)\n"
        "Adds up.\n"
        "runs on   up/alpha\n"
        "variable  what\n"
        "variable  style; default 'short'; one of short, long; How it is said.\n"
        "\n"
        "Add {{what}} in short.\n"
    )
    assert (0, expected, "") == woollama("patterns", "show", "sums")


@pytest.mark.usefixtures("prompts")
def test_one_without_a_model_says_how_to_give_it_one(woollama: Run) -> None:
    done = woollama("patterns", "show", "translate")
    assert "runs on   no model: give one with -m\n" in done.out
    # In a pipe the prompt is what it is.
    assert done.out.endswith("Into {{language}}.\x1b[31m\n")


@pytest.mark.usefixtures("prompts")
def test_json_of_one_has_its_prompt(woollama: Run) -> None:
    shown = json.loads(woollama("patterns", "show", "sums", "--json").out)
    assert ("sums", "Add {{what}} in short.") == (shown["name"], shown["prompt"])


@pytest.mark.usefixtures("prompts")
def test_a_wrong_name_is_one_line_with_the_near_ones(woollama: Run) -> None:
    done = woollama("patterns", "show", "sum")
    expected = "There is no pattern 'sum': `woollama patterns` lists them. Near names: sums."
    assert (1, "", f"woollama: {expected}\n") == done


def test_no_pattern_at_all_is_said(shell: Shell, woollama: Run) -> None:
    shell.write("recipes.toml", "[recipes]\n")
    assert (0, "", "There is no recipe and no pattern.\n") == woollama("patterns")


@pytest.mark.parametrize(
    "arguments",
    [("models",), ("models", "--json"), ("patterns",), ("patterns", "show", "x")],
    ids=" ".join,
)
def test_a_refused_configuration_is_exit_code_78(
    arguments: tuple[str, ...], shell: Shell, woollama: Run
) -> None:
    shell.write("recipes.toml", "[recipes")
    done = woollama(*arguments)
    assert (78, "") == (done.code, done.out)
    assert "recipes.toml: is not valid TOML" in done.line
