"""Which plugins run: the list, the variable that replaces it, and fabric's own section."""

from collections.abc import Mapping
from typing import Any

import pytest

from woollama.core.config.files import Problem
from woollama.server.plugins.selection import Section, Selection, select_plugins

LEFTOVER = "is a section of a plugin that is not enabled"


def names(
    *enabled: str, fabric: Any = None, variable: str | None = None, **tables: Mapping[str, Any]
) -> Selection:
    environ = {} if variable is None else {"WOOLLAMA_PLUGINS": variable}
    return select_plugins(enabled, tables, fabric=fabric, environ=environ)


def test_the_list_is_taken_as_it_is() -> None:
    assert ("b", "a") == names("b", "a").names


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("none", ()),
        ("NONE", ()),
        ("b", ("b",)),
        ("b, c,b", ("b", "c")),
        ("", ("a",)),
        (" ", ("a",)),
    ],
)
def test_the_variable_replaces_the_list(variable: str, expected: tuple[str, ...]) -> None:
    assert expected == names("a", variable=variable).names


def test_fabric_is_enabled_by_its_section() -> None:
    chosen = names("local", fabric={"url": "http://127.0.0.1:1"})
    assert ("local", "fabric") == chosen.names
    section = Section(raw={"url": "http://127.0.0.1:1"}, file="mcp.json", place="fabric")
    assert {"fabric": section} == chosen.sections
    assert () == chosen.problems


def test_fabric_keeps_its_place_in_a_list_that_names_it() -> None:
    assert ("fabric", "local") == names("fabric", "local", fabric={}).names


def test_fabric_without_a_section_is_told_where_it_goes() -> None:
    (problem,) = names("fabric").problems
    assert "write one into mcp.json, or remove it from enabled" in problem.message


def test_ru_3_a_section_of_fabric_in_the_other_file_is_told_where_it_goes() -> None:
    chosen = select_plugins(("fabric",), {"fabric": {"url": "x"}}, fabric={})
    message = 'is read from mcp.json: move it there, under the key "fabric"'
    assert (Problem("woollama.toml", "plugins.fabric", message),) == chosen.problems
    assert {} == chosen.sections["fabric"].raw


def test_variables_in_fabrics_section_are_expanded() -> None:
    raw = {"url": "http://127.0.0.1:${PORT:-8080}", "env": {"_A": "${B}"}}
    chosen = select_plugins((), {}, fabric=raw, environ={"B": "b"})
    expected = {"url": "http://127.0.0.1:8080", "env": {"_A": "b"}}
    assert expected == chosen.sections["fabric"].raw


def test_an_unset_variable_in_fabrics_section_is_named() -> None:
    chosen = select_plugins((), {}, fabric={"url": "${A}", "command": "${B}"})
    message = "unset variables: A, B; set each, or write ${NAME:-default}"
    assert (Problem("mcp.json", "fabric", message),) == chosen.problems


def test_p_61_leftover_sections_are_refused_whatever_the_variable_names() -> None:
    for variable in (None, "b"):
        chosen = names("a", variable=variable, a={}, left={})
        assert [("plugins.left", True)] == [
            (each.place, LEFTOVER in each.message) for each in chosen.problems
        ]


def test_the_safe_mode_looks_at_no_section() -> None:
    chosen = names("a", variable="none", fabric={"url": "${UNSET}"}, left={})
    assert ((), ()) == (chosen.names, chosen.problems)
