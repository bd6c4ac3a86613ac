"""Recipes: a model, a system prompt, tools and parameters under one name; and their file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import msgspec

from woollama.core.canonical import NOTHING, Value
from woollama.core.config.files import Problem, config_dir, read_file, read_table, refuse
from woollama.core.errors import ConfigError, RequestError

__all__ = [
    "Recipe",
    "RecipeBook",
    "Variable",
    "check_recipes",
    "inferencer_of",
    "load_recipes",
    "make_recipe",
]


class Variable(TypedDict, total=False):
    """What is declared of a ``{{token}}``: what it is filled with, what fits, what it is for."""

    default: Any
    choices: Sequence[Any]
    description: str


class Recipe(TypedDict):
    """A model with a system prompt, tools and parameters; any mapping with these keys is one.

    ``inferencer`` is ``<provider>/<model>``; ``model`` is the same under its other name. ``tools``
    is the list of tools it may call, nothing else. ``params`` are fields of each request.
    """

    inferencer: NotRequired[str]
    model: NotRequired[str]
    system: NotRequired[str | None]
    tools: NotRequired[Sequence[str] | None]
    params: NotRequired[Mapping[str, Any] | None]
    variables: NotRequired[Mapping[str, Variable]]
    description: NotRequired[str]


def make_recipe(
    inferencer: str,
    system: str | None = None,
    tools: Iterable[str] = (),
    params: Mapping[str, Any] | None = None,
) -> Recipe:
    """A recipe.

    Args:
        inferencer: ``<provider>/<model>``.
        system: the system prompt, sent as it is; None sends none.
        tools: the names of the tools it may call.
        params: fields of each request (``temperature`` …); ``num_ctx`` is Ollama's.
    """
    return Recipe(
        inferencer=inferencer, system=system, tools=list(tools), params=dict(params or {})
    )


def inferencer_of(recipe: Mapping[str, Any]) -> str:
    """The ``<provider>/<model>`` of a recipe, under either name.

    Raises:
        RequestError: it has none, or two that differ.
    """
    found = [recipe[key] for key in ("inferencer", "model") if recipe.get(key) is not None]
    if len(found) == 2 and found[0] != found[1]:
        raise RequestError(
            "A recipe's 'inferencer' and 'model' are two names of one thing, and these differ: "
            f"{recipe['inferencer']!r} and {recipe['model']!r}. Keep one.",
            param="model",
        )
    name = found[0] if found else None
    if not isinstance(name, str) or not name:
        raise RequestError(
            "A recipe needs an 'inferencer': write '<provider>/<model>'.", param="inferencer"
        )
    return name


class RecipeBook(Value, frozen=True, kw_only=True):
    """What ``recipes.toml`` holds.

    Attributes:
        recipes: by name, in the file's order.
        patterns_dir: the folder of ``<name>/system.md`` files; None is none. It may be missing.
        default_inferencer: what patterns without an inferencer of their own run on.
    """

    recipes: Mapping[str, Recipe] = NOTHING
    patterns_dir: Path | None = None
    default_inferencer: str | None = None


class VariableTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """``[recipes.<name>.variables.<variable>]``: what is declared of a ``{{variable}}``."""

    default: str | int | float | bool | None = None
    choices: list[str | int | float | bool] = []
    description: str | None = None


class RecipeTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """``[recipes.<name>]``: one recipe. ``model`` is another name of ``inferencer``."""

    inferencer: str | None = None
    model: str | None = None
    system: str | None = None
    tools: list[str] = []
    params: dict[str, Any] = {}
    variables: dict[str, dict[str, Any]] = {}
    description: str | None = None


class PatternsTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """``[patterns]``: a folder of patterns, and what they run on."""

    dir: str | None = None
    default_inferencer: str | None = None


_NAMED_TABLES = (
    ("recipes",),
    ("recipes", "*", "variables"),
    ("recipes", "*", "params"),
)


def load_recipes(path: Path | None = None, environ: Mapping[str, str] | None = None) -> RecipeBook:
    """``recipes.toml``, read anew each time; a missing file holds nothing.

    ``${VAR}`` is not expanded: prompts speak of variables as they speak of everything else.

    Args:
        path: the file; None is the one in the configuration directory.
        environ: says where that directory is; None is the process's own.

    Raises:
        ConfigError: anything wrong in the file, all of it at once.
    """
    if path is None:
        path = config_dir(os.environ if environ is None else environ) / "recipes.toml"
    book, problems = check_recipes(path)
    if problems:
        raise refuse(problems)
    return book


def check_recipes(path: Path) -> tuple[RecipeBook, list[Problem]]:
    """As ``load_recipes``, but the problems are returned beside what could be read."""
    file = str(path)
    try:
        tree = read_file(path, None, named=_NAMED_TABLES)
    except ConfigError as error:
        return RecipeBook(), [Problem("", "", error.message)]
    problems = [
        Problem(file, key, "unknown table; known are [recipes.<name>] and [patterns]")
        for key in tree
        if key not in {"recipes", "patterns"}
    ]
    patterns, found = read_table(
        tree.get("patterns", {}), PatternsTable, file=file, place="patterns"
    )
    problems.extend(found)
    patterns = patterns if patterns is not None else PatternsTable()
    problems.extend(_inferencer_problems(patterns.default_inferencer, file, "patterns"))
    tables = tree.get("recipes", {})
    if not isinstance(tables, Mapping):
        return RecipeBook(), [*problems, Problem(file, "recipes", "must be a table")]
    recipes: dict[str, Recipe] = {}
    for name, raw in cast("Mapping[str, Any]", tables).items():
        recipe, found = _recipe(name, raw, file)
        problems.extend(found)
        if recipe is not None:
            recipes[name] = recipe
    book = RecipeBook(
        recipes=recipes,
        patterns_dir=_folder(patterns.dir, path),
        default_inferencer=patterns.default_inferencer or None,
    )
    return book, problems


def _folder(given: str | None, path: Path) -> Path | None:
    # A relative folder is beside the file, never under the working directory (promise P-6).
    return path.absolute().parent / Path(given).expanduser() if given else None


def _recipe(name: str, raw: object, file: str) -> tuple[Recipe | None, list[Problem]]:
    place = f"recipes.{name}"
    table, problems = read_table(raw, RecipeTable, file=file, place=place)
    if not name:
        problems.append(Problem(file, "recipes", "a recipe needs a name"))
    if table is None:
        return None, problems
    if table.inferencer and table.model and table.inferencer != table.model:
        message = "'inferencer' and 'model' are two names of one thing and differ; keep one"
        problems.append(Problem(file, place, message))
    inferencer = table.inferencer or table.model
    problems.extend(_inferencer_problems(inferencer, file, place))
    variables: dict[str, Variable] = {}
    for variable, declared in table.variables.items():
        where = f"{place}.variables.{variable}"
        read, found = read_table(declared, VariableTable, file=file, place=where)
        problems.extend(found)
        if read is not None:
            variables[variable] = cast("Variable", _given(read))
    if problems:
        return None, problems
    recipe = Recipe(tools=table.tools, params=table.params)
    if inferencer:
        recipe["inferencer"] = inferencer
    if table.system is not None:
        recipe["system"] = table.system
    if variables:
        recipe["variables"] = variables
    if table.description is not None:
        recipe["description"] = table.description
    return recipe, []


def _given(table: VariableTable) -> dict[str, Any]:
    return {
        key: value
        for key, value in msgspec.structs.asdict(table).items()
        if value is not None and value != []
    }


def _inferencer_problems(name: str | None, file: str, place: str) -> list[Problem]:
    if not name:
        return []
    provider, _, model = name.partition("/")
    if provider and model:
        return []
    return [Problem(file, place, f"{name!r} names no model: write '<provider>/<model>'")]
