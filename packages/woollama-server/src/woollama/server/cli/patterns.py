"""``woollama patterns``: the prompts by name."""

from typing import Any

import anyio
import click
import msgspec

from woollama.core.directory import near_names
from woollama.core.errors import UnknownPattern
from woollama.core.patterns import Pattern
from woollama.server.cli.start import begin
from woollama.server.cli.table import print_table
from woollama.server.cli.terminal import Screen, styled, visible
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
        return
    rows = (
        (
            pattern.name,
            pattern.source,
            pattern.model or "",
            ", ".join(variable.name for variable in pattern.variables),
        )
        for pattern in found
    )
    print_table(("PATTERN", "SOURCE", "RUNS ON", "VARIABLES"), rows)
    if not found:
        click.echo("There is no recipe and no pattern.", err=True)


@patterns.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show NAME: what it runs on, its variables, its prompt."""
    pattern, prompt = anyio.run(_show, begin(), name)
    if as_json:
        _print_json({**pattern_entry(pattern), "prompt": prompt})
        return
    click.echo(styled(f"{visible(pattern.name)}  ({pattern.source})", bold=True))
    if pattern.description:
        click.echo(visible(pattern.description))
    click.echo(f"runs on   {visible(pattern.model or 'no model: give one with -m')}")
    for variable in pattern.variables:
        parts = [f"variable  {variable.name}"]
        if variable.default is not None:
            parts.append(f"default {variable.default!r}")
        if variable.choices:
            parts.append(f"one of {', '.join(variable.choices)}")
        if variable.description:
            parts.append(variable.description)
        click.echo(visible("; ".join(parts)))
    click.echo()
    with Screen() as screen:
        screen.text(prompt)


async def _list(settings: Settings) -> list[Pattern]:
    async with open_services(settings, mcp_servers=False) as services:
        return list(services.directory.catalog.list())


async def _show(settings: Settings, name: str) -> tuple[Pattern, str]:
    async with open_services(settings, mcp_servers=False) as services:
        catalog = services.directory.catalog
        found = catalog.find(name)
        if found is None:
            near = near_names(name, [pattern.name for pattern in catalog.list()])
            message = f"There is no pattern {name!r}: `woollama patterns` lists them.{near}"
            raise UnknownPattern(message)
        backend, pattern = found
        return pattern, await backend.render(name, {})


def _print_json(body: Any) -> None:
    with Screen() as screen:
        screen.document(msgspec.json.format(msgspec.json.encode(body), indent=2))
