"""The JSON Schemas in the docs are those of the Structs, and agree with the readers."""

import importlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import Block, blocks_of, pages
from tools.schemas import FOLDER, TABLES, expected
from woollama.core.errors import ConfigError
from woollama.core.providers.configured import check_inferencers
from woollama.core.recipes import check_recipes
from woollama.server.bundled import RECIPES
from woollama.server.mcp.config import check_mcp
from woollama.server.settings import load_settings

# It comes with the `mcp` package, and declares no types.
jsonschema: Any = importlib.import_module("jsonschema")

# The tutorial shows what becomes of a typing error.
FAULT = "base_ulr"
SCHEMAS = {file: json.loads(expected()[f"{file.partition('.')[0]}.schema.json"]) for file in TABLES}
EXAMPLES = [
    block
    for page in pages()
    for block in blocks_of(page)
    if block.title in TABLES and FAULT not in block.text
]


def faults(file: str, text: str) -> list[str]:
    """What is wrong with a file by its schema."""
    tree = tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
    validator = jsonschema.Draft202012Validator(SCHEMAS[file])
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(tree)]


def test_the_schemas_in_the_docs_are_up_to_date() -> None:
    """Else: `uv run python -m tools.schemas`."""
    assert expected() == {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()}


@pytest.mark.parametrize("file", TABLES)
def test_a_schema_is_one_and_says_something_of_every_key(file: str) -> None:
    schema = SCHEMAS[file]
    jsonschema.Draft202012Validator.check_schema(schema)
    not_built = {
        *("management_url", "management_protocol", "parallel", "pool_max"),
        *("queue_max", "queue_timeout", "virtual"),
    }
    for table in (schema, *schema["$defs"].values()):
        for key, about in table["properties"].items():
            assert (
                "$ref" in about
                or "description" in about
                or key
                in not_built
                | {
                    "inferencers",
                    "recipes",
                }
            ), key


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.place)
def test_what_the_docs_print_fits(block: Block) -> None:
    assert block.title is not None
    assert [] == faults(block.title, block.text)


def test_every_file_is_printed_somewhere_and_the_bundled_recipes_fit() -> None:
    assert set(TABLES) == {block.title for block in EXAMPLES}
    assert [] == faults("recipes.toml", RECIPES.read_text("utf-8"))


def read_settings(path: Path) -> list[Any]:
    try:
        load_settings({"WOOLLAMA_CONFIG_DIR": str(path.parent)})
    except ConfigError as error:
        return [error.message]
    return []


READERS: dict[str, Callable[[Path], list[Any]]] = {
    "woollama.toml": read_settings,
    "inferencers.toml": lambda path: check_inferencers(path, {})[1],
    "recipes.toml": lambda path: check_recipes(path)[1],
    "mcp.json": lambda path: check_mcp(path, {})[1],
}
RIGHT = [
    ("woollama.toml", "_note = 1\n[server]\nuds = 'x'\n_note = 1\n[plugins.other]\na = 1"),
    ("woollama.toml", "[plugins.local.models.m]\npath = '/m.gguf'"),
    ("inferencers.toml", "[inferencers.a]\nbase_url = 'http://a'\nmodels = ['x']\n_note = 1"),
    ("inferencers.toml", "[inferencers.a]\nbase_url = 'http://a'\nmodels = { x = { seed = 1 } }"),
    ("inferencers.toml", "[inferencers.a]\nbase_url = 'http://a'\nkey = { env = 'K' }"),
    ("recipes.toml", "[recipes.a]\nparams = { x = [1] }\n[recipes.a.variables.b]\ndefault = 1.5"),
    ("mcp.json", '{"mcpServers": {"a": {"command": "x", "tools": null, "_note": 1}}}'),
    ("mcp.json", '{"$schema": "./mcp.schema.json", "fabric": {"managed": true}}'),
]
WRONG = [
    ("woollama.toml", "[sever]"),
    ("woollama.toml", "[server]\nadress = ':1'"),
    ("woollama.toml", "[server]\nbody_limit_bytes = 0"),
    ("woollama.toml", "[retries]\nattempts = 21"),
    ("woollama.toml", "instance_id = 'a b'"),
    ("inferencers.toml", "[providers.a]"),
    ("inferencers.toml", "[inferencers.a]\nbase_ulr = 'http://a'"),
    ("inferencers.toml", "[inferencers.a]\nbase_url = 'http://a'\nmodels = 'x'"),
    ("inferencers.toml", "[inferencers.a]\nbase_url = 'http://a'\nkey = { hosts = [] }"),
    ("inferencers.toml", "[inferencers.a]\nbase_url = 'http://a'\nmodels.x = { context = 0 }"),
    ("recipes.toml", "[recipe.a]"),
    ("recipes.toml", "[recipes.a]\ntool = []"),
    ("recipes.toml", "[recipes.a]\ntools = 'x'"),
    ("recipes.toml", "[recipes.a.variables.b]\ndefualt = 1"),
    ("recipes.toml", "[patterns]\ndir = 1"),
    ("mcp.json", '{"mcpServer": {}}'),
    ("mcp.json", '{"mcpServers": {"a": {"command": "x", "arg": []}}}'),
    ("mcp.json", '{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}'),
    ("mcp.json", '{"mcpServers": {"a": {"command": ""}}}'),
]


@pytest.mark.parametrize(("file", "text"), RIGHT)
def test_what_a_reader_takes_its_schema_takes(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, "utf-8")
    assert [] == READERS[file](tmp_path / file)
    assert [] == faults(file, text)


@pytest.mark.parametrize(("file", "text"), WRONG)
def test_what_a_reader_refuses_its_schema_refuses(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, "utf-8")
    assert READERS[file](tmp_path / file)
    assert faults(file, text)
