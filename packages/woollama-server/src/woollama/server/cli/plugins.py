"""``woollama plugins``: what is installed, enabled and contributed."""

import os
from typing import Any

import click
import msgspec

from woollama.core.config.files import Problem
from woollama.core.errors import RequestError
from woollama.server.cli.start import begin
from woollama.server.cli.table import print_table
from woollama.server.cli.terminal import Screen, say, styled, visible
from woollama.server.mcp.config import check_mcp
from woollama.server.plugins.installed import find_installed
from woollama.server.plugins.loader import check_plugins
from woollama.server.plugins.overview import PluginView, describe_plugin, list_plugins
from woollama.server.plugins.selection import select_plugins
from woollama.server.settings import Settings

__all__ = ["plugins"]


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(context: click.Context) -> None:
    """List the plugins, or show one."""
    if context.invoked_subcommand is None:
        context.invoke(list_command, as_json=False)


@plugins.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_command(as_json: bool) -> None:
    """List what is installed; only what is enabled is imported."""
    settings = begin()
    fabric = _fabric(settings)
    installed = find_installed()
    _, problems = check_plugins(
        settings.plugins.enabled,
        settings.plugins.tables,
        fabric=fabric,
        found=installed,
        environ=os.environ,
        config_dir=settings.config_dir,
    )
    views = list_plugins(_names(settings, fabric), installed, problems)
    if as_json:
        _print_json([_shown(view) for view in views])
    else:
        _print_list(views, problems)


@plugins.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show_command(name: str, as_json: bool) -> None:
    """Show what NAME declares; imports it, enabled or not, and runs nothing of it."""
    settings = begin()
    fabric = _fabric(settings)
    installed = find_installed()
    if name not in installed:
        known = ", ".join(sorted(installed))
        raise RequestError(f"There is no plugin {name!r}. Installed are: {known}.")
    view = describe_plugin(
        name,
        installed,
        enabled=name in _names(settings, fabric),
        sections=settings.plugins.tables,
        fabric=fabric,
        environ=os.environ,
        config_dir=settings.config_dir,
    )
    if as_json:
        _print_json(_shown(view))
    else:
        _print_one(view)


def _fabric(settings: Settings) -> Any:
    # What else is wrong in this file keeps no plugin from being shown.
    config, _ = check_mcp(settings.config_dir / "mcp.json", os.environ)
    return config.fabric


def _names(settings: Settings, fabric: Any) -> tuple[str, ...]:
    return select_plugins(
        settings.plugins.enabled, settings.plugins.tables, fabric=fabric, environ=os.environ
    ).names


def _print_list(views: list[PluginView], problems: list[Problem]) -> None:
    rows = (
        (view.name, _state(view), view.distribution, ", ".join(view.contributes)) for view in views
    )
    print_table(("PLUGIN", "STATE", "FROM", "CONTRIBUTES"), rows)
    for problem in problems:
        say(visible(str(problem)), fg="red")


def _state(view: PluginView) -> str:
    if view.problems:
        return "in error"
    return "enabled" if view.enabled else "installed"


def _print_one(view: PluginView) -> None:
    click.echo(styled(f"{visible(view.name)}  ({_state(view)})", bold=True))
    if view.summary:
        click.echo(visible(view.summary))
    rows = [
        ("from", f"{view.distribution}, {view.place}"),
        ("api version", "" if view.api_version is None else str(view.api_version)),
        ("requires", ", ".join(view.requires)),
        *((kind.replace("_", " "), ", ".join(names)) for kind, names in view.details.items()),
        *(("setting", f"{key}, {default}") for key, default in view.settings.items()),
        *(("secret", f"{env}: {state}") for env, state in view.secrets.items()),
        *(("problem", problem) for problem in view.problems),
        *(("doubt", doubt) for doubt in view.doubts),
    ]
    for title, text in rows:
        if text:
            click.echo(visible(f"{title:<17} {text}"))


def _shown(view: PluginView) -> dict[str, Any]:
    return msgspec.structs.asdict(view)


def _print_json(body: object) -> None:
    with Screen() as screen:
        screen.document(msgspec.json.format(msgspec.json.encode(body, enc_hook=dict), indent=2))
