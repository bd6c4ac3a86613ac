"""Which wire rules no test names: `uv run python -m tools.rules`.

The rules are the tables of docs/reference/wire-rules.md. A rule is covered by a test whose name
begins with it (`test_re_5_…`, also `test_a_2_and_a_3_…` and `test_n_9_p_21_…`) or whose docstring
cites it (`RE-5`, `R-12 to R-16`), or by a golden exchange that lists it under `covers`. Exits with
1 when a rule is not covered, or when something cites a rule that the page does not have.
"""

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PAGE = Path("docs/reference/wire-rules.md")
LETTERS = ("A", "AE", "C", "CB", "N", "O", "OC", "OL", "R", "RE")

_ONE = rf"({'|'.join(sorted(LETTERS, key=len, reverse=True))})-(\d\d?)"
_ROW = re.compile(rf"^\| {_ONE} \| (.*) \|$", re.MULTILINE)
_CITED = re.compile(rf"(?<![\w-]){_ONE}(?: to (?:[A-Z]+-)?(\d\d?))?(?![\w-])")
_RULE = rf"_({'|'.join(LETTERS).lower()})_(\d\d?)(?=_|$)"
# What a name begins with: rules, and promises (P) and rulings (RU) among them.
_BEGINNING = re.compile(rf"^test(?:(?:_and)?(?:{_RULE}|_(?:p|ru)_\d\d?(?=_|$)))+")

Covered = dict[str, list[str]]


def read_page(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Every rule with its line, and the rules with a part that does not apply, with that part."""
    told, _, rest = text.partition("## Not applicable")
    rules = {f"{letters}-{number}": line for letters, number, line in _ROW.findall(told)}
    parts = {f"{letters}-{number}": line for letters, number, line in _ROW.findall(rest)}
    return rules, parts


def rules_of_name(name: str) -> list[str]:
    """The rules that the name of a test begins with."""
    beginning = _BEGINNING.match(name)
    found = re.findall(_RULE, beginning[0]) if beginning else []
    return [f"{letters.upper()}-{number}" for letters, number in found]


def rules_in(text: str) -> list[str]:
    """The rules that a docstring cites."""
    found: list[str] = []
    for letters, first, last in _CITED.findall(text):
        numbers = range(int(first), int(last or first) + 1)
        found += [f"{letters}-{number}" for number in numbers]
    return found


def covered_by_tests(tests: Path) -> Iterator[tuple[str, str]]:
    """Each rule that a test names, with the test."""
    for path in sorted(tests.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("test_"):
                continue
            cited = rules_of_name(node.name) + rules_in(ast.get_docstring(node) or "")
            yield from ((rule, f"{path}::{node.name}") for rule in cited)


def covered_by_exchanges(tests: Path) -> Iterator[tuple[str, str]]:
    """Each rule that a golden exchange stands for, with the exchange."""
    for path in sorted(tests.rglob("case.json")):
        for rule in json.loads(path.read_text("utf-8")).get("covers", ()):
            yield rule, str(path.parent)


def gather(tests: Path) -> tuple[Covered, Covered]:
    """What covers each rule: tests, and golden exchanges."""
    unit: Covered = defaultdict(list)
    golden: Covered = defaultdict(list)
    for rule, place in covered_by_tests(tests):
        unit[rule].append(place)
    for rule, place in covered_by_exchanges(tests):
        golden[rule].append(place)
    return unit, golden


def main(root: Path) -> int:
    """Print what is missing; the exit code says whether anything is."""
    rules, parts = read_page((root / PAGE).read_text("utf-8"))
    unit, golden = gather(root / "tests")
    missing = [rule for rule in rules if rule not in unit and rule not in golden]
    unknown = sorted((unit.keys() | golden.keys()) - rules.keys())
    only_golden = [rule for rule in rules if rule not in unit and rule in golden]
    print(f"{len(rules)} rules, {len(rules) - len(missing)} of them with a test")
    print(f"without a test: {', '.join(missing) or 'none'}")
    print(f"cited but not on the page: {', '.join(unknown) or 'none'}")
    print(f"shown by a golden exchange only: {', '.join(only_golden) or 'none'}")
    print("not applicable:")
    for rule, part in parts.items():
        print(f"  {rule}: {part.replace(' | ', ': ')}")
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))
