"""JSON Schemas of the configuration files: `uv run python -m tools.schemas`.

They are made of the Structs that read the files; what is said of each key comes from the tables of
docs/reference/configuration.md, so that an editor shows what the page says.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, get_args

import msgspec

from woollama.core.providers.configured import InferencerTable, ModelTable
from woollama.core.recipes import PatternsTable, RecipeTable, VariableTable
from woollama.server.fabric.config import FabricConfig
from woollama.server.local.config import LocalConfig, ModelConfig
from woollama.server.mcp.entries import McpEntry, McpFile
from woollama.server.sections import SECTIONS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference" / "schemas"
PAGE = ROOT / "docs" / "reference" / "configuration.md"
DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]
Meanings = Mapping[str, Mapping[str, str]]


class Table(NamedTuple):
    """A table of a file: the Struct that reads it, and the heading of its keys on the page."""

    shape: type[msgspec.Struct]
    heading: str


def named(*names: str) -> dict[str, Schema]:
    """Properties that are tables of their own."""
    return {name: {"$ref": f"#/$defs/{name}"} for name in names}


def by_name(table: str) -> Schema:
    """A table of tables whose names people choose."""
    return {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{table}"}}


SECTION_TABLES = {
    name or "top": Table(shape, f"[{name}]" if name else "Before the first table")
    for name, shape in SECTIONS.items()
}
TABLES: Mapping[str, Mapping[str, Table]] = {
    "woollama.toml": {
        **SECTION_TABLES,
        "local": Table(LocalConfig, "[plugins.local]"),
        "local_model": Table(ModelConfig, '[plugins.local.models."<name>"]'),
    },
    "inferencers.toml": {
        "inferencer": Table(InferencerTable, "[inferencers.<name>]"),
        "model": Table(ModelTable, '[inferencers.<name>.models."<id>"]'),
    },
    "recipes.toml": {
        "recipe": Table(RecipeTable, "[recipes.<name>]"),
        "variable": Table(VariableTable, "[recipes.<name>.variables.<variable>]"),
        "patterns": Table(PatternsTable, "[patterns]"),
    },
    "mcp.json": {
        "file": Table(McpFile, "mcp.json"),
        "server": Table(McpEntry, "mcpServers.<name>"),
        "fabric": Table(FabricConfig, "fabric"),
    },
}
MODELS: Schema = {"anyOf": [{"type": "array", "items": {"type": "string"}}, by_name("model")]}
NESTED: Mapping[tuple[type[msgspec.Struct], str], Schema] = {
    (LocalConfig, "models"): by_name("local_model"),
    (InferencerTable, "models"): MODELS,
    (RecipeTable, "variables"): by_name("variable"),
    (McpFile, "mcpServers"): by_name("server"),
    (McpFile, "fabric"): {"$ref": "#/$defs/fabric"},
}
"""Keys that hold what is read by another Struct."""


def main() -> int:
    """Writes the schemas, and prints the names of those that changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in expected().items():
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(path.relative_to(ROOT))
    return 0


def expected() -> dict[str, str]:
    """The text of each schema by the name of its file."""
    meanings = read_meanings(PAGE.read_text("utf-8"))
    found: dict[str, str] = {}
    for file, tables in TABLES.items():
        defs = {
            name: schema_of(table.shape, table.heading, meanings, is_toml=file.endswith(".toml"))
            for name, table in tables.items()
        }
        schema = {"$schema": DRAFT, "title": file, **_root(file, defs), "$defs": defs}
        text = json.dumps(schema, indent=2, ensure_ascii=False)
        found[f"{file.partition('.')[0]}.schema.json"] = f"{text}\n"
    return found


def _root(file: str, defs: dict[str, Schema]) -> Schema:
    """The file itself; what it is made of is taken out of ``defs``."""
    match file:
        case "woollama.toml":
            root = defs.pop("top")
            root["properties"] |= named(*(name for name in SECTIONS if name))
            # The sections of plugins; only those that come along are known here.
            defs["plugins"]["properties"] |= named("local")
            defs["plugins"]["additionalProperties"] = {"type": "object"}
            return root
        case "inferencers.toml":
            return _closed({"inferencers": by_name("inferencer")})
        case "recipes.toml":
            return _closed({"recipes": by_name("recipe"), **named("patterns")})
        case _:
            return defs.pop("file")


def _closed(properties: dict[str, Schema]) -> Schema:
    # Keys that begin with _ are notes.
    notes: Schema = {"^_": {}}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": notes,
        "additionalProperties": False,
    }


def schema_of(
    shape: type[msgspec.Struct], heading: str, meanings: Meanings, *, is_toml: bool
) -> Schema:
    """The schema of one table, whose keys are under ``heading`` on the page."""
    fields = msgspec.structs.fields(shape)
    said = meanings.get(heading, {})
    properties: dict[str, Schema] = {}
    for field in fields:
        key = field.encode_name
        inner = _struct_in(field.type)
        if (shape, key) in NESTED:
            schema = NESTED[shape, key]
        elif inner is not None:
            # A small table has its key for a heading.
            schema = schema_of(inner, key, meanings, is_toml=is_toml)
        else:
            schema = _without_null(field.type) if is_toml else msgspec.json.schema(field.type)
        properties[key] = {**schema, **_said(said.get(key)), **_default(field)}
    required = [field.encode_name for field in fields if field.required]
    return _closed(properties) | ({"required": required} if required else {})


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    for choice in choices:
        if isinstance(choice, type) and issubclass(choice, msgspec.Struct):
            return choice
    return None


def _without_null(kind: Any) -> Schema:
    """The schema of a type in TOML, which has no word for null."""
    schema = msgspec.json.schema(kind)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if not choices:
        return schema
    return choices[0] if len(choices) == 1 else {**schema, "anyOf": choices}


def _said(meaning: str | None) -> Schema:
    return {"description": meaning} if meaning else {}


def _default(field: msgspec.structs.FieldInfo) -> Schema:
    # Empty tables and lists say nothing, and none is the absence of a value.
    default = field.default
    plain = isinstance(default, str | int | float | tuple) and default not in ("", ())
    return {"default": msgspec.to_builtins(default)} if plain else {}


def read_meanings(page: str) -> Meanings:
    """The last column of each table that begins with keys, by heading and key."""
    found: dict[str, dict[str, str]] = {}
    heading = ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip().replace("`", "")
        elif line.startswith("| `"):
            key, *_, meaning = _cells(line)
            found.setdefault(heading, {})[key.strip("`")] = _plain(meaning)
    return found


def _cells(line: str) -> Iterable[str]:
    return (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("| ")))


def _plain(markdown: str) -> str:
    text = re.sub(r",? see \[[^]]*\]\([^)]*\)|, see below", "", markdown)
    text = re.sub(r"\[(.*?)\]\([^)]*\)", r"\1", text)
    return text.replace("\\|", "|").replace("`", "")


if __name__ == "__main__":
    sys.exit(main())
