"""Our own patterns: recipes and a folder of ``<name>/system.md`` files, as they are at the moment.

Both are looked at anew with every question, so an edit is seen at once; a file that an edit broke
stands in its last good version, and ``problems`` says what is wrong with it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from woollama.core.canonical import NOTHING, RunEvent, Value
from woollama.core.config.files import Problem
from woollama.core.errors import ConfigError, RequestError, UnknownPattern
from woollama.core.patterns.backend import Pattern, PatternCall, PatternVariable
from woollama.core.patterns.files import PatternFolder, WatchedFile
from woollama.core.patterns.images import check_images
from woollama.core.patterns.template import fill, value_text, variables_of
from woollama.core.providers import ModelRegistry, Target
from woollama.core.recipes import Recipe, RecipeBook, load_recipes
from woollama.core.runs import RunLimits, RunPlan, open_run, plan_run, resolve_inferencer
from woollama.core.runs.plan import Link
from woollama.core.runs.toolset import ToolSource
from woollama.core.tools.spec import PreparedTools

__all__ = ["NativePatterns", "overlay"]

_OWN = "woollama/"


class _Prompt(Value, frozen=True, kw_only=True):
    """A pattern of ours, and what it is made of."""

    pattern: Pattern
    system: str
    recipe: Mapping[str, Any] = NOTHING


class NativePatterns:
    """Recipes first, then the folder that ``[patterns] dir`` of their file names."""

    def __init__(
        self,
        paths: Sequence[Path],
        registry: ModelRegistry | Callable[[], ModelRegistry],
        *,
        tools: ToolSource | None = None,
        limits: RunLimits = RunLimits(),  # noqa: B008 - an immutable value
        link: Callable[[Target], Link] | None = None,
    ) -> None:
        """Reads the recipes once.

        Args:
            paths: the candidates for ``recipes.toml``; one that exists hides those behind it.
            registry: finds the providers; a function is asked for each run.
            tools: who has the tools that recipes name.
            limits: of each run.
            link: how a target is reached; None is by the running loop's own transport.

        Raises:
            ConfigError: the recipes cannot be used as they are.
        """
        self._registry = registry
        self._tools = tools
        self._limits = limits
        self._link = link
        self._book = WatchedFile(tuple(paths), load_recipes, RecipeBook())
        self._folder = PatternFolder(Path())
        self._book.value()
        if self._book.problem is not None:
            raise ConfigError(self._book.problem)

    @property
    def id(self) -> str:
        """``native``."""
        return "native"

    def list(self) -> Sequence[Pattern]:
        """See ``PatternBackend.list``; sorted by name."""
        book = self._book.value()
        folder = self._folder_of(book)
        names = sorted({*book.recipes, *(() if folder is None else folder.names())})
        found = (self._find(book, name) for name in names)
        return tuple(prompt.pattern for prompt in found if prompt is not None)

    def find(self, name: str) -> Pattern | None:
        """See ``PatternBackend.find``."""
        found = self._find(self._book.value(), name)
        return None if found is None else found.pattern

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with files as they stand now, whose last good version is in force."""
        book = self._book.value()
        folder = self._folder_of(book)
        found = [] if self._book.problem is None else [Problem("", "", self._book.problem)]
        if folder is not None:
            folder.names()
            found += [
                Problem(str(folder.folder / name / "system.md"), "", message)
                for name, message in folder.problems().items()
            ]
        return tuple(found)

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        """See ``PatternBackend.render``: the prompt, a blank line, the input.

        Without an input it is the prompt alone; an empty one still gets its blank line.

        Raises:
            UnknownPattern: there is none of this name.
            RequestError: the variables are no mapping, or a value has no JSON form.
        """
        system = _filled(self._get(name), variables)
        return system if input is None else f"{system}\n\n{input}"

    @asynccontextmanager
    async def open_run(self, call: PatternCall) -> AsyncGenerator[AsyncIterator[RunEvent]]:
        """See ``PatternBackend.open_run``: the prompt is the system message, then the messages.

        Raises:
            UnknownPattern: there is none of this name.
            UnknownModel: no provider has the model it runs on.
            RequestError: it has no model to run on, or the call cannot be done as asked.
        """
        prompt = self._get(call.name)
        target = self._target(prompt, call)
        await check_images(call.messages, target)
        if isinstance(self._tools, PreparedTools):
            await self._tools.prepare(prompt.recipe.get("tools") or ())
        async with open_run(self._plan(call, prompt, target)) as events:
            yield events

    def _plan(self, call: PatternCall, prompt: _Prompt, target: Target) -> RunPlan:
        return plan_run(
            target,
            call.messages,
            system=_filled(prompt, call.variables),
            allow=prompt.recipe.get("tools"),
            tools=self._tools,
            params=overlay(prompt.recipe.get("params") or NOTHING, call.options),
            stream=call.stream,
            limits=self._limits,
            link=self._link(target) if self._link is not None else Link(),
        )

    def _target(self, prompt: _Prompt, call: PatternCall) -> Target:
        name = call.model or prompt.pattern.model
        if name is None:
            raise RequestError(
                f"The pattern {call.name!r} names no model to run on: give one, or set "
                "default_inferencer under [patterns].",
                param="model",
            )
        if name.startswith(_OWN):
            raise RequestError(
                f"A pattern runs on the model of a provider, not on another pattern: {name!r}.",
                param="model",
            )
        registry = self._registry
        return resolve_inferencer(registry() if callable(registry) else registry, name)

    def _get(self, name: str) -> _Prompt:
        found = self._find(self._book.value(), name)
        if found is None:
            raise UnknownPattern(f"There is no pattern {name!r}.", param="name")
        return found

    def _find(self, book: RecipeBook, name: str) -> _Prompt | None:
        recipe = book.recipes.get(name)
        if recipe is not None:
            return _of_recipe(name, recipe, book.default_inferencer)
        folder = self._folder_of(book)
        prompt = None if folder is None else folder.find(name)
        if prompt is None:
            return None
        pattern = Pattern(
            name=name,
            variables=tuple(PatternVariable(name=variable) for variable in prompt.variables),
            source="directory",
            model=book.default_inferencer,
        )
        return _Prompt(pattern=pattern, system=prompt.text)

    def _folder_of(self, book: RecipeBook) -> PatternFolder | None:
        if book.patterns_dir is None:
            return None
        if book.patterns_dir != self._folder.folder:
            self._folder = PatternFolder(book.patterns_dir)
        return self._folder


def overlay(params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's parameters with a call's put over them, key by key.

    ``num_ctx`` is the same as ``options.num_ctx``, so one replaces the other; Ollama's ``options``
    are themselves put together key by key.
    """
    under, over = _spread(params), _spread(options)
    both = {**under, **over}
    inside = [given.get("options") for given in (under, over)]
    if all(isinstance(given, Mapping) for given in inside):
        both["options"] = {**cast("dict[str, Any]", inside[0]), **cast("dict[str, Any]", inside[1])}
    return both


def _spread(params: Mapping[str, Any]) -> dict[str, Any]:
    """``options.num_ctx`` at the top, as ``num_ctx``, unless both are there."""
    spread = dict(params)
    options = spread.get("options")
    if isinstance(options, Mapping) and "num_ctx" in options and "num_ctx" not in spread:
        inside = dict(cast("Mapping[str, Any]", options))
        spread["num_ctx"] = inside.pop("num_ctx")
        spread["options"] = inside
    return spread


def _of_recipe(name: str, recipe: Recipe, default: str | None) -> _Prompt:
    system = recipe.get("system") or ""
    pattern = Pattern(
        name=name,
        variables=_variables(system, recipe.get("variables") or NOTHING),
        source="recipe",
        model=recipe.get("inferencer") or recipe.get("model") or default,
        description=recipe.get("description"),
    )
    return _Prompt(pattern=pattern, system=system, recipe=cast("Mapping[str, Any]", recipe))


def _variables(text: str, declared: Mapping[str, Any]) -> tuple[PatternVariable, ...]:
    return tuple(_variable(name, declared.get(name) or NOTHING) for name in variables_of(text))


def _variable(name: str, declared: Mapping[str, Any]) -> PatternVariable:
    default = declared.get("default")
    return PatternVariable(
        name=name,
        default=None if default is None else value_text(default, name),
        choices=tuple(value_text(choice, name) for choice in declared.get("choices") or ()),
        description=declared.get("description"),
    )


def _filled(prompt: _Prompt, variables: object) -> str:
    if not isinstance(variables, Mapping):
        raise RequestError(
            f"'variables' must be an object, not {type(variables).__name__}.", param="variables"
        )
    defaults = {v.name: v.default for v in prompt.pattern.variables if v.default is not None}
    # What is supplied wins, an empty text too (RU-44).
    return fill(prompt.system, {**defaults, **cast("Mapping[str, Any]", variables)})
