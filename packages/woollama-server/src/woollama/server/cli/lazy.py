"""Commands that are imported when they are called: each needs other parts of the house."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import NamedTuple

import click

__all__ = ["LazyCommands", "LazyGroup", "Place"]


class Place(NamedTuple):
    """Where a command is, as ``module:name``, and the line that the list of commands has for it."""

    where: str
    summary: str


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name; one is imported when it is looked up."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        """Imports nothing yet."""
        self._places = places
        self._known: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._known:
            module, _, attribute = self._places[name].where.partition(":")
            self._known[name] = getattr(import_module(module), attribute)
        return self._known[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._places, **self._known})

    def __len__(self) -> int:
        return len({**self._places, **self._known})

    def __contains__(self, name: object) -> bool:
        # Inherited it would import, to see whether it can.
        return name in self._places or name in self._known

    def summary(self, name: str) -> str:
        """The line for the list of commands, without importing when there is one."""
        place = self._places.get(name)
        return place.summary if place is not None else self[name].get_short_help_str(60)


class LazyGroup(click.Group):
    """A group of such commands: neither its help nor a wrong name imports one."""

    def __init__(self, name: str | None = None, *, commands: LazyCommands, **more: object) -> None:
        """``more`` is click's."""
        super().__init__(name, commands, **more)  # pyright: ignore[reportArgumentType] - click's
        self._lazy = commands

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._lazy.summary(name)) for name in self._lazy])
