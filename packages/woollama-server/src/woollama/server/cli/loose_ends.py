"""What one file names and no other has: providers and servers that are not there."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, cast

from woollama.core.config.files import Problem

__all__ = ["LooseEnds"]

_NEAR = 0.75


class LooseEnds:
    """Looks names up in what is known."""

    def __init__(self, providers: set[str], servers: set[str] | None) -> None:
        """The names of both; None when nothing is known of the servers."""
        self._providers = providers
        self._servers = servers

    def of_recipes(self, tree: Mapping[str, Any], file: str) -> Iterator[Problem]:
        """What ``recipes.toml`` names, of recipes that are wrong otherwise, too."""
        for name, recipe in _tables(tree.get("recipes")):
            place = f"recipes.{name}"
            for key in ("inferencer", "model"):
                yield from self.of_model(recipe.get(key), file, f"{place}.{key}")
            tools = recipe.get("tools")
            for tool in cast("list[object]", tools) if isinstance(tools, list) else ():
                yield from self._of_tool(tool, file, f"{place}.tools")
        for _, patterns in _tables({"": tree.get("patterns")}):
            default = patterns.get("default_inferencer")
            yield from self.of_model(default, file, "patterns.default_inferencer")

    def of_model(self, model: object, file: str, place: str) -> Iterator[Problem]:
        """The provider of one model name; what is no text is for others to report."""
        provider = model.partition("/")[0] if isinstance(model, str) else ""
        if provider and provider not in self._providers:
            message = f"there is no provider {provider!r}; {_near(provider, self._providers)}"
            yield Problem(file, place, message)

    def _of_tool(self, tool: object, file: str, place: str) -> Iterator[Problem]:
        if self._servers is None or not isinstance(tool, str):
            return
        server, dot, _ = tool.partition(".")
        if server not in self._servers:
            what = f"there is no server {server!r}" if dot else "is no tool: write server.tool"
            yield Problem(file, place, f"{tool!r}: {what}; {_near(server, self._servers)}")


def _near(name: str, known: set[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1, cutoff=_NEAR)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"


def _tables(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        for name, table in cast("Mapping[str, Any]", value).items():
            if isinstance(table, Mapping):
                yield name, cast("Mapping[str, Any]", table)
