"""The table of docs/reference/dialects.md, made by running its tests.

`uv run python -m tools.dialects` runs every test that is marked `behaviour(dialect, name)` and
prints the table of those that passed; `--write` puts it into the page, `--check` compares it with
the page. Exits with 1 when a test failed, a cell is empty or the page is not up to date.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PAGE = Path("docs/reference/dialects.md")
SUITE = "tests/contract/test_dialect_behaviour.py"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"

Cells = Mapping[str, Mapping[str, Sequence[str]]]


class Recorder:
    """A pytest plugin: which marked tests passed, by behaviour and dialect, in their order."""

    def __init__(self) -> None:
        """Nothing has run."""
        self.cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self.failed: list[str] = []
        self._marked: dict[str, tuple[str, str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Takes note of the marks."""
        for item in items:
            mark = item.get_closest_marker("behaviour")
            if mark is not None:
                dialect, name = mark.args
                self._marked[item.nodeid] = (dialect, name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes note of what came of a test."""
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed and report.nodeid in self._marked:
            dialect, name = self._marked[report.nodeid]
            self.cells[name][dialect].append(report.nodeid.rpartition("::")[2])


def run(paths: Sequence[str]) -> Recorder:
    """Runs the marked tests of these files."""
    recorder = Recorder()
    options = ["-q", "--no-header", "-m", "behaviour", "-p", "no:cacheprovider"]
    pytest.main([*options, *paths], plugins=[recorder])
    return recorder


def table(cells: Cells) -> str:
    """The cells in Markdown: a row for each behaviour, a column for each dialect."""
    dialects = sorted({dialect for row in cells.values() for dialect in row})
    lines = [
        f"| behaviour | {' | '.join(f'`{dialect}`' for dialect in dialects)} |",
        f"| --- |{' --- |' * len(dialects)}",
    ]
    for name, row in cells.items():
        shown = [" ".join(f"`{test}`" for test in row.get(dialect, ())) for dialect in dialects]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def empty(cells: Cells) -> list[str]:
    """The behaviours that no passed test shows of a dialect."""
    dialects = sorted({dialect for row in cells.values() for dialect in row})
    return [
        f"{dialect}: {name}"
        for name, row in cells.items()
        for dialect in dialects
        if not row.get(dialect)
    ]


def written(page: str, made: str) -> str:
    """The page with the table put in its place."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE} has no place for the table")
    return f"{before}{begin}{made}{end}{after}"


def main(root: Path, arguments: Sequence[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.dialects", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="put the table into the page")
    what.add_argument("--check", action="store_true", help="compare it with the page")
    options = parser.parse_args(arguments)
    recorder = run([str(root / SUITE)])
    for test in recorder.failed:
        print(f"failed: {test}")
    for cell in empty(recorder.cells):
        print(f"no test: {cell}")
    if recorder.failed or not recorder.cells or empty(recorder.cells):
        return 1
    made = table(recorder.cells)
    page = (root / PAGE).read_text("utf-8")
    if options.write:
        (root / PAGE).write_text(written(page, made), "utf-8")
    elif options.check:
        if written(page, made) != page:
            print(f"{PAGE} is not up to date: uv run python -m tools.dialects --write")
            return 1
        print(f"{PAGE} is up to date")
    else:
        print(made, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1], sys.argv[1:]))
