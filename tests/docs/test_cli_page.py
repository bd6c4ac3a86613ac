"""The page of the command line has every command with every option, and no other."""

import re
from collections.abc import Iterator

import click

from tests.docs.blocks import ROOT
from tests.docs.tables import tables_of
from woollama.server.cli.commands import woollama

PAGE = "docs/reference/cli.md"
TABLES = tables_of(PAGE)


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        full = f"{path} {name}"
        yield full, command
        if isinstance(command, click.Group):
            yield from _commands(command, full)


COMMANDS = dict(_commands(woollama, "woollama"))


def test_every_command_has_its_heading() -> None:
    headings = re.findall(r"^## (woollama .+)$", (ROOT / PAGE).read_text("utf-8"), re.MULTILINE)
    assert sorted(COMMANDS) == sorted(headings)


def test_every_argument_and_option_is_there() -> None:
    for name, command in COMMANDS.items():
        expected = {
            ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
            if isinstance(parameter, click.Option)
            else f"`{(parameter.name or '').upper()}{'…' if parameter.nargs == -1 else ''}`"
            for parameter in command.params
        }
        printed = {
            cell if cell.startswith("`") else f"`{cell}`" for cell, _ in TABLES.get(name, [])
        }
        assert expected == printed, name


def test_every_exit_code_is_there() -> None:
    from woollama.server import binding
    from woollama.server.cli import failures

    codes = {
        str(value)
        for module in (binding, failures)
        for name, value in vars(module).items()
        if name.startswith("EXIT_")
    }
    assert codes | {"0"} == {row[0] for row in TABLES["Exit codes"]}
