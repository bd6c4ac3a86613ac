"""``woollama check-config``: every problem in every file at once; connects to nothing."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from woollama.core.config.files import Problem, config_dir
from woollama.core.errors import ConfigError
from woollama.core.providers import Provider
from woollama.core.providers.configured import check_inferencers
from woollama.core.recipes import RecipeBook, check_recipes
from woollama.server.bundled.servers import BUNDLED
from woollama.server.environment import read_environment
from woollama.server.mcp.config import McpConfig, check_mcp
from woollama.server.plugins.loader import load_plugins
from woollama.server.settings import load_settings

__all__ = ["check_config"]

_FILES = ("woollama.toml", "inferencers.toml", "recipes.toml", "mcp.json", ".env")


@click.command("check-config")
@click.pass_context
def check_config(context: click.Context) -> None:
    """Check the configuration files; exits 1 when anything is wrong in them."""
    folder = config_dir()
    problems, warnings = _check(folder)
    for warning in warnings:
        click.echo(f"warning: {warning}")
    if problems:
        for problem in problems:
            click.echo(str(problem))
        count = len(problems)
        click.echo(f"{count} problem{'s' if count != 1 else ''} in {folder}.", err=True)
        context.exit(1)
    present = [name for name in _FILES if (folder / name).exists()]
    found = ", ".join(present) if present else "no files, the defaults hold"
    click.echo(f"{folder}: {found}: nothing wrong.")


def _check(folder: Path) -> tuple[list[Problem], tuple[Problem, ...]]:
    try:
        environ: Mapping[str, str] = read_environment(os.environ)
    except ConfigError as error:
        return _lines(error), ()
    mcp, problems = check_mcp(folder / "mcp.json", environ)
    providers, found = check_inferencers(folder / "inferencers.toml", environ)
    problems = [*_daemon(environ, mcp, providers), *found, *problems]
    book, found = check_recipes(folder / "recipes.toml")
    servers = {server.name for server in (*mcp.servers, *BUNDLED)} | set(mcp.skipped)
    names = {provider.name for provider in providers} | {"local"}
    found.extend(_loose_ends(book, str(folder / "recipes.toml"), names, servers))
    return [*problems, *found], tuple(mcp.warnings)


def _loose_ends(
    book: RecipeBook, file: str, providers: set[str], servers: set[str]
) -> Iterator[Problem]:
    """What recipes name and no other file has."""
    for name, recipe in book.recipes.items():
        place = f"recipes.{name}"
        model = recipe.get("inferencer") or recipe.get("model") or ""
        provider = model.partition("/")[0]
        if provider and provider not in providers:
            known = ", ".join(sorted(providers))
            message = f"there is no provider {provider!r}; known are {known}"
            yield Problem(file, f"{place}.inferencer", message)
        for tool in recipe.get("tools") or ():
            server = tool.partition(".")[0]
            if server not in servers:
                message = f"{tool!r} names a server that mcp.json has not; write server.tool"
                yield Problem(file, f"{place}.tools", message)


def _daemon(
    environ: Mapping[str, str], mcp: McpConfig, providers: tuple[Provider, ...]
) -> list[Problem]:
    try:
        settings = load_settings(environ)
        load_plugins(
            settings.plugins.enabled,
            settings.plugins.tables,
            fabric=mcp.fabric,
            environ=environ,
            config_dir=settings.config_dir,
            taken=[provider.name for provider in providers],
        )
    except ConfigError as error:
        return _lines(error)
    return []


def _lines(error: ConfigError) -> list[Problem]:
    return [Problem("", "", line) for line in error.message.splitlines()]
