"""Rows under titles: for the eye on a terminal, one line a row in a pipe."""

import unicodedata
from collections.abc import Iterable, Sequence

import click

from woollama.server.cli.terminal import styled, visible

__all__ = ["print_table"]

_GAP = "  "


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints them; a column without any text is left out, and so is a table without rows."""
    lines = [[visible(cell) for cell in row] for row in rows]
    columns = [i for i in range(len(titles)) if any(line[i] for line in lines)]
    widths = {i: max(_width(line[i]) for line in [titles, *lines]) for i in columns}
    if columns:
        click.echo(styled(_row(titles, widths), bold=True))
    for line in lines:
        click.echo(_row(line, widths))


def _row(cells: Sequence[str], widths: dict[int, int]) -> str:
    padded = (cells[i] + " " * (width - _width(cells[i])) for i, width in widths.items())
    return _GAP.join(padded).rstrip()


def _width(text: str) -> int:
    """Columns of a terminal: some characters take two, marks on others none."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
