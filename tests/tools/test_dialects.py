"""The table of what each dialect does is made by its tests, and the page has it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.dialects import BEGIN, END, PAGE, empty, table, written
from woollama.core.testing.dialect_contract import BEHAVIOURS
from woollama.core.wire import DIALECTS

ROOT = Path(__file__).parents[2]
CELLS = {"text": {"a": ["test_x[a]"], "b": ["test_x[b]", "test_y"]}, "tools": {"a": ["test_z"]}}


def test_every_cell_of_the_page_names_a_test_that_exists_and_passes() -> None:
    argv = [sys.executable, "-m", "tools.dialects", "--check"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stdout
    assert f"{PAGE} is up to date" in done.stdout


def test_the_page_has_a_row_for_each_behaviour_and_a_column_for_each_dialect() -> None:
    page = (ROOT / PAGE).read_text("utf-8")
    made = page.partition(BEGIN)[2].partition(END)[0].splitlines()
    assert [name for name in DIALECTS if f"| `{name}` |" in made[0]] == list(DIALECTS)
    assert list(BEHAVIOURS) == [row.split(" | ")[0].removeprefix("| ") for row in made[2:]]
    for name in BEHAVIOURS:
        assert 2 == page.count(f"\n| {name} | "), f"{name} is in the table and explained"


def test_a_table_has_the_tests_in_their_places() -> None:
    assert (
        "| behaviour | `a` | `b` |\n"
        "| --- | --- | --- |\n"
        "| text | `test_x[a]` | `test_x[b]` `test_y` |\n"
        "| tools | `test_z` |  |\n"
    ) == table(CELLS)
    assert ["b: tools"] == empty(CELLS)


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    assert f"a\n{BEGIN}x\n{END}b\n" == written(f"a\n{BEGIN}old\n{END}b\n", "x\n")
    with pytest.raises(ValueError, match="no place for the table"):
        written("a\n", "x\n")


def test_a_test_that_fails_is_no_cell(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest\n\n"
        "@pytest.mark.behaviour('a', 'text')\ndef test_good():\n    pass\n\n"
        "@pytest.mark.behaviour('a', 'tools')\ndef test_bad():\n    assert False\n"
    )
    code = (
        "import sys\nfrom tools.dialects import run\n"
        "found = run([sys.argv[1]])\n"
        "print('told', sorted(found.cells), [t.rpartition('::')[2] for t in found.failed])\n"
    )
    argv = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "told ['text'] ['test_bad']" in done.stdout
