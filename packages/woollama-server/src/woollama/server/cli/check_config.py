"""``woollama check-config``: every problem in every file at once; connects to nothing."""

import os

import click

from woollama.core.config.files import Problem, config_dir, read_file
from woollama.core.errors import ConfigError
from woollama.core.providers.configured import check_inferencers
from woollama.server.plugins.loader import load_plugins
from woollama.server.settings import load_settings

__all__ = ["check_config"]


@click.command("check-config")
@click.pass_context
def check_config(context: click.Context) -> None:
    """Check the configuration files; exits 1 when anything is wrong in them."""
    folder = config_dir()
    problems = [*_daemon(), *_inferencers()]
    if problems:
        for problem in problems:
            click.echo(str(problem))
        count = len(problems)
        click.echo(f"{count} problem{'s' if count != 1 else ''} in {folder}.", err=True)
        context.exit(1)
    present = [name for name in _FILES if (folder / name).exists()]
    found = ", ".join(present) if present else "no files, the defaults hold"
    click.echo(f"{folder}: {found}: nothing wrong.")


_FILES = ("woollama.toml", "inferencers.toml", "recipes.toml", "mcp.json", ".env")


def _daemon() -> list[Problem]:
    try:
        settings = load_settings(os.environ)
        load_plugins(
            settings.plugins.enabled,
            settings.plugins.tables,
            fabric=read_file(config_dir() / "mcp.json", None).get("fabric"),
            environ=os.environ,
            config_dir=config_dir(),
        )
    except ConfigError as error:
        return _lines(error)
    return []


def _inferencers() -> list[Problem]:
    _, problems = check_inferencers(config_dir() / "inferencers.toml", os.environ)
    return problems


def _lines(error: ConfigError) -> list[Problem]:
    return [Problem("", "", line) for line in error.message.splitlines()]
