"""The page of errors says what the code says."""

import ast
import inspect
from typing import get_args

from tests.docs.blocks import ROOT
from tests.docs.tables import tables_of
from woollama.core import errors
from woollama.core.errors import KINDS_BY_STATUS, ProviderError, WoollamaError, kind_of_status
from woollama.core.providers.provider import Kind

PAGE = "docs/reference/errors.md"
TABLES = tables_of(PAGE)
CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, WoollamaError)
]


def test_every_class_is_there_with_its_kind_status_and_type() -> None:
    made = [(each.__name__, each("x")) for each in CLASSES]
    expected = [[name, error.kind, str(error.status), error.type] for name, error in made]
    assert sorted(expected) == sorted(row for row in TABLES["Classes"] if len(row) == 4)


def test_the_tree_is_the_tree_of_the_classes() -> None:
    tree = (ROOT / PAGE).read_text("utf-8").split("```text\n")[1].split("```")[0]
    drawn: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in tree.splitlines():
        name = line.lstrip("│├└─ ").split()[0]
        depth = len(line) - len(line.lstrip("│├└─ "))
        while above and above[-1][0] >= depth:
            above.pop()
        drawn[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    assert {each.__name__: each.__bases__[0].__name__ for each in CLASSES} == drawn


def test_every_status_of_a_provider_has_its_kind() -> None:
    rows = [row for row in TABLES["Classes"] if len(row) == 2]
    expected = {str(status): kind for status, kind in KINDS_BY_STATUS.items()}
    expected |= {"any other 4xx": kind_of_status(418), "any other 5xx": kind_of_status(599)}
    assert expected == dict(rows)


def test_every_kind_that_the_code_names_is_explained_and_no_other() -> None:
    named = {each.default_kind for each in CLASSES} | set(KINDS_BY_STATUS.values())
    for path in (ROOT / "packages").rglob("*.py"):
        named |= _kinds_in(ast.parse(path.read_text("utf-8")))
    named -= set(get_args(Kind))  # a provider has a kind, too
    assert sorted(named) == [row[0] for row in TABLES["Kinds"]]


def _kinds_in(tree: ast.AST) -> set[str]:
    """The strings that are given as ``kind=`` in a call, or second to one of our errors."""
    names = {each.__name__ for each in CLASSES}
    given: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "kind":
            given.append(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            given.extend(node.args[1:2])
    return {
        value.value
        for value in given
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def test_a_kind_is_retryable_as_the_page_says() -> None:
    for kind, _, retryable in TABLES["Kinds"]:
        expected = ProviderError("x", kind=kind).retryable
        if kind != "connect":  # the transport decides
            assert expected is retryable.startswith("yes"), kind


def test_every_attribute_is_explained() -> None:
    public = {name for name in vars(WoollamaError("x")) if name != "native_type"} | {"type"}
    named = {
        part.strip(" `") for row in TABLES["What an error carries"] for part in row[0].split(",")
    }
    assert public == named
