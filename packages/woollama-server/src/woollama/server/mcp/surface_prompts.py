"""Every recipe and pattern as a prompt, its variables as arguments (promise P-41)."""

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from woollama.core.directory import near_names
from woollama.core.errors import InferenceError
from woollama.core.patterns import Pattern, PatternCatalog, PatternVariable
from woollama.core.tools import wire_names

__all__ = ["Prompts"]

_CHOICES_LIMIT = 100
"""The most values that one completion may have (specification, completion)."""


class Prompts:
    """The patterns of a catalog, as they are at the moment."""

    def __init__(self, catalog: PatternCatalog) -> None:
        """Looks at ``catalog`` with each question."""
        self._catalog = catalog

    def listed(self) -> list[dict[str, Any]]:
        """The items of ``prompts/list``."""
        patterns = self._catalog.list()
        names = wire_names(pattern.name for pattern in patterns)
        return [_described(pattern, names[pattern.name]) for pattern in patterns]

    async def get(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """The result of ``prompts/get``: the prompt as ``/w1`` renders it, as a user's message.

        Args:
            name: the prompt's name, or the pattern's own.
            arguments: for its variables. One that is left out has its default; without one its
                token stays in the text as it is.

        Raises:
            MCPError: there is no such prompt, or its backend cannot render it so.
        """
        pattern = self._find(name)
        held = self._catalog.find(pattern.name)
        assert held is not None, "it was found a moment ago"
        try:
            text = await held[0].render(pattern.name, arguments)
        except InferenceError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        message = {"role": "user", "content": {"type": "text", "text": text}}
        described = {"description": pattern.description} if pattern.description else {}
        return {**described, "messages": [message]}

    def choices(self, name: str, argument: str, begun: str) -> list[str]:
        """The values that a variable may have and that begin with ``begun``.

        Raises:
            MCPError: there is no such prompt.
        """
        pattern = self._find(name)
        found = [variable for variable in pattern.variables if variable.name == argument]
        choices = found[0].choices if found else ()
        return [choice for choice in choices if choice.startswith(begun)][:_CHOICES_LIMIT]

    def _find(self, name: str) -> Pattern:
        held = self._catalog.find(name)
        if held is not None:
            return held[1]
        patterns = self._catalog.list()
        names = wire_names(pattern.name for pattern in patterns)
        for pattern in patterns:
            if names[pattern.name] == name:
                return pattern
        near = near_names(name, names.values())
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}.{near}")


def _described(pattern: Pattern, name: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": name,
        # Some clients show nothing else, and some insist on one.
        "description": pattern.description or f"The {_kind(pattern)} {pattern.name!r}.",
        "arguments": [_argument(variable) for variable in pattern.variables],
    }
    if name != pattern.name:
        described["title"] = pattern.name
    return described


def _kind(pattern: Pattern) -> str:
    return "recipe" if pattern.source == "recipe" else "pattern"


def _argument(variable: PatternVariable) -> dict[str, Any]:
    """An argument has no place for a default or for choices: they are told in its description."""
    told = [variable.description] if variable.description else []
    if variable.choices:
        told.append(f"One of: {', '.join(variable.choices)}.")
    if variable.default is not None:
        told.append(f"Default: {variable.default!r}.")
    argument: dict[str, Any] = {"name": variable.name, "required": variable.default is None}
    if told:
        argument["description"] = " ".join(told)
    return argument
