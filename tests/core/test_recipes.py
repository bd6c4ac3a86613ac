"""``recipes.toml``: what it may hold, and everything that is wrong in it at once."""

from pathlib import Path

import pytest

from woollama.core.errors import ConfigError
from woollama.core.recipes import RecipeBook, check_recipes, load_recipes


def write(folder: Path, text: str) -> Path:
    path = folder / "recipes.toml"
    path.write_text(text, "utf-8")
    return path


FULL = """
[recipes.greeter]
inferencer = "ollama/qwen3"
system = "Greet {{who}} in {0} ${HOME} words."
tools = ["clock.now", "search"]
params = { temperature = 0.2, num_ctx = 4096 }
description = "Says hello."
_note = "notes begin with an underscore"

[recipes.greeter.variables.who]
default = "the world"
choices = ["the world", "Ada"]
description = "Whom to greet."

[recipes.other]
model = "openai/gpt-x/y"

[recipes._bare]

[patterns]
dir = "prompts"
default_inferencer = "ollama/qwen3"
"""


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    book = load_recipes(write(tmp_path, FULL))
    assert {
        "inferencer": "ollama/qwen3",
        "system": "Greet {{who}} in {0} ${HOME} words.",
        "tools": ["clock.now", "search"],
        "params": {"temperature": 0.2, "num_ctx": 4096},
        "variables": {
            "who": {
                "default": "the world",
                "choices": ["the world", "Ada"],
                "description": "Whom to greet.",
            }
        },
        "description": "Says hello.",
    } == book.recipes["greeter"]
    assert {"inferencer": "openai/gpt-x/y", "tools": [], "params": {}} == book.recipes["other"]
    assert ["greeter", "other", "_bare"] == list(book.recipes)
    assert (tmp_path / "prompts", "ollama/qwen3") == (book.patterns_dir, book.default_inferencer)


def test_a_prompt_is_not_expanded_and_its_braces_stay(tmp_path: Path) -> None:
    """Prompts speak of ``${VAR}`` and ``{…}`` as they speak of everything else."""
    text = 'Answer as {"k": {"v": 1}} with {{who}} and {0} %s ${NOPE}'
    path = write(tmp_path, f"[recipes.r]\nmodel = 'a/b'\nsystem = '{text}'\n")
    assert text == load_recipes(path).recipes["r"].get("system")


def test_a_missing_file_holds_nothing(tmp_path: Path) -> None:
    assert RecipeBook() == load_recipes(tmp_path / "recipes.toml")
    assert RecipeBook() == load_recipes(None, {"WOOLLAMA_CONFIG_DIR": str(tmp_path)})


def test_the_file_of_the_configuration_directory_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "[recipes.r]\nmodel = 'a/b'\n")
    assert ["r"] == list(load_recipes(None, {"WOOLLAMA_CONFIG_DIR": str(tmp_path)}).recipes)
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(tmp_path))
    assert ["r"] == list(load_recipes().recipes)


def test_a_bom_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recipes.toml"
    path.write_bytes(b"\xef\xbb\xbf[recipes.r]\nmodel = 'a/b'\nsystem = '\xc3\xa9'\n")
    assert "é" == load_recipes(path).recipes["r"].get("system")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("~/prompts", "HOME/prompts"),
        ("prompts", "CONFIG/prompts"),
        ("/abs/prompts", "/abs/prompts"),
    ],
)
def test_p_6_the_folder_of_patterns_is_never_under_the_working_directory(
    given: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, config = tmp_path / "home", tmp_path / "config"
    config.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(config)
    write(config, f'[patterns]\ndir = "{given}"\n')
    wanted = expected.replace("HOME", str(home)).replace("CONFIG", str(config))
    for path in (config / "recipes.toml", Path("recipes.toml")):
        assert Path(wanted) == load_recipes(path).patterns_dir


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
colour = "red"
[recipes.a]
inferencer = "ollama"
sytem = "typo"
tools = "search"
[recipes.b]
inferencer = "a/b"
model = "a/c"
[recipes.c.variables.v]
defualt = 1
[recipes.""]
model = "a/b"
[recipes.d]
model = "nomodel"
[patterns]
directory = "x"
default_inferencer = "nomodel"
""",
    )
    with pytest.raises(ConfigError) as caught:
        load_recipes(path)
    said = caught.value.message
    for place in (
        "colour: unknown table",
        "recipes.a.sytem: unknown key; did you mean 'system'?",
        "recipes.a.tools: expected `array`",
        "recipes.b: 'inferencer' and 'model'",
        "recipes.c.variables.v.defualt: unknown key; did you mean 'default'?",
        "recipes: a recipe needs a name",
        "recipes.d: 'nomodel' names no model",
        "patterns.directory: unknown key",
    ):
        assert place in said
    assert all(line.startswith(str(path)) for line in said.splitlines())
    assert 400 == caught.value.status


def test_a_default_inferencer_without_a_model_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, '[patterns]\ndefault_inferencer = "ollama/"\n')
    with pytest.raises(ConfigError, match="names no model"):
        load_recipes(path)


def test_what_is_right_is_given_beside_what_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path, "[recipes.good]\nmodel = 'a/b'\n[recipes.bad]\nx = 1\n")
    book, problems = check_recipes(path)
    assert ["good"] == list(book.recipes)
    assert ["recipes.bad.x"] == [problem.place for problem in problems]


@pytest.mark.parametrize("text", ["recipes = 3", "[recipes", "recipes = []"])
def test_a_file_without_its_shape_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"recipes\.toml"):
        load_recipes(write(tmp_path, text))


def test_the_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = write(tmp_path, "[recipes.a]\nmodel = 'a/b'\n")
    assert ["a"] == list(load_recipes(path).recipes)
    write(tmp_path, "[recipes.b]\nmodel = 'a/b'\n")
    assert ["b"] == list(load_recipes(path).recipes)
