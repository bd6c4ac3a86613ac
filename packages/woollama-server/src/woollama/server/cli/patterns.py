"""``woollama patterns``: the prompts by name."""

import anyio
import click
import msgspec
from rich.console import Console
from rich.table import Table

from woollama.core.errors import UnknownPattern
from woollama.core.patterns import Pattern
from woollama.server.cli.start import begin
from woollama.server.lifespan import open_services
from woollama.server.routes.w1 import pattern_entry
from woollama.server.settings import Settings

__all__ = ["patterns"]


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def patterns(context: click.Context, as_json: bool) -> None:
    """List the recipes and patterns, or show one."""
    if context.invoked_subcommand is not None:
        return
    found = anyio.run(_list, begin())
    if as_json:
        _print_json([pattern_entry(pattern) for pattern in found])
    else:
        _print(found)


@patterns.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show NAME: what it runs on, its variables, its prompt."""
    pattern, prompt = anyio.run(_show, begin(), name)
    if as_json:
        _print_json({**pattern_entry(pattern), "prompt": prompt})
        return
    console = Console(highlight=False, markup=False)
    console.print(f"{pattern.name}  ({pattern.source})", style="bold")
    if pattern.description:
        console.print(pattern.description)
    console.print(f"runs on   {pattern.model or 'no model: give one with -m'}")
    for variable in pattern.variables:
        parts = [f"variable  {variable.name}"]
        if variable.default is not None:
            parts.append(f"default {variable.default!r}")
        if variable.choices:
            parts.append(f"one of {', '.join(variable.choices)}")
        if variable.description:
            parts.append(variable.description)
        console.print("; ".join(parts))
    console.print()
    click.echo(prompt)


async def _list(settings: Settings) -> list[Pattern]:
    async with open_services(settings, mcp_servers=False) as services:
        return list(services.directory.catalog.list())


async def _show(settings: Settings, name: str) -> tuple[Pattern, str]:
    async with open_services(settings, mcp_servers=False) as services:
        found = services.directory.catalog.find(name)
        if found is None:
            raise UnknownPattern(f"There is no pattern {name!r}: `woollama patterns` lists them.")
        backend, pattern = found
        return pattern, await backend.render(name, {})


def _print(found: list[Pattern]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("PATTERN", "SOURCE", "RUNS ON", "VARIABLES"):
        table.add_column(title, overflow="fold")
    for pattern in found:
        names = ", ".join(variable.name for variable in pattern.variables)
        table.add_row(pattern.name, pattern.source, pattern.model or "", names)
    Console(highlight=False, markup=False).print(table)


def _print_json(body: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(body), indent=2).decode())
