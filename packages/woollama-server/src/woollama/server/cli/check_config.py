"""``woollama check-config``: every problem in every file at once; connects to nothing."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

import click

from woollama.core.config.files import Problem
from woollama.core.providers import Provider
from woollama.server.cli.checking import FILES, Findings, check_all
from woollama.server.cli.table import print_table
from woollama.server.cli.terminal import broken, say, styled, visible

__all__ = ["check_config"]


@click.command("check-config")
@click.pass_context
def check_config(context: click.Context) -> None:
    """Check the configuration files; connects to nothing.

    Prints everything that is wrong, one line each, with file and place, and exits 1 when anything
    is; otherwise what inferencers.toml configures.
    """
    findings = check_all(os.environ)
    for warning in findings.warnings:
        click.echo(styled(f"warning: {_line(warning)}", fg="yellow"))
    if findings.problems:
        if sys.stdout.isatty():
            _show_problems(findings.problems)
        else:
            for problem in findings.problems:
                click.echo(_line(problem))
        count = len(findings.problems)
        plural = "" if count == 1 else "s"
        say(f"{count} problem{plural} in {findings.folder}.", fg="red")
        context.exit(1)
    _show(findings)


def _show_problems(problems: Sequence[Problem]) -> None:
    """For a person: under the name of each file what is wrong in it."""
    width = shutil.get_terminal_size().columns
    for file, found in groupby(problems, key=lambda problem: problem.file):
        click.echo(styled(visible(file or "configuration"), bold=True))
        for problem in found:
            line = _line(Problem("", problem.place, problem.message))
            click.echo(broken(line, width, indent="  "))


def _line(problem: Problem) -> str:
    return visible(str(problem))


def _show(findings: Findings) -> None:
    if findings.providers:
        titles = ("PROVIDER", "KIND", "DIALECT", "CONTEXT", "EFFORTS", "KEY")
        print_table(titles, _rows(findings.providers))
        click.echo()
    present = [name for name in FILES if (findings.folder / name).exists()]
    found = ", ".join(present) if present else "no files, the defaults hold"
    click.echo(f"{findings.folder}: {found}: nothing wrong.")


def _rows(providers: tuple[Provider, ...]) -> Iterator[tuple[str, ...]]:
    """Each provider, and each of its models that something is declared of."""
    for provider in providers:
        yield provider.name, provider.kind, provider.dialect_for("").name, "", "", _key(provider)
        for model, declared in provider.model_settings.items():
            yield (
                f"{provider.name}/{model}",
                "",
                provider.dialect_for(model).name,
                f"{declared.context:,}" if declared.context is not None else "",
                ", ".join(declared.efforts),
                "",
            )


def _key(provider: Provider) -> str:
    credential = provider.credential
    if credential is None:
        return "none"
    return f"{credential.env} ({'set' if os.environ.get(credential.env) else 'not set'})"
