"""`${VAR}` in the values of a file: every row of the core API, section 8, and what only we say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.config.variables import expand

ENVIRON = {"V": "value", "W": "w", "EMPTY": "", "INJECT": '"\n[other]\nx = "${V}'}


def expanded(text: str) -> tuple[Any, tuple[str, ...]]:
    tree, missing = expand({"key": text}, ENVIRON)
    return tree["key"], missing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${V}", "value"),
        ("a${V}b${W}c", "avaluebwc"),
        ("${EMPTY}", ""),
        ("${V:-d}", "value"),
        ("${UNSET:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b}", "a:-b"),
        ("${UNSET:-${W}/x}", "${W/x}"),
        ("$V", "$V"),
        ("${V", "${V"),
        ("a ${V and $W", "a ${V and $W"),
        ("${}", ""),
        ("${INJECT}", ENVIRON["INJECT"]),
        ("no reference", "no reference"),
    ],
)
def test_a_reference_becomes_its_value(text: str, value: str) -> None:
    assert (value, ()) == expanded(text)


def test_every_missing_name_is_listed_in_first_seen_order() -> None:
    tree = {"a": "${B} ${A}", "b": ["${C}", {"d": "${A} ${B}"}]}
    _, missing = expand(tree, ENVIRON)
    assert ("B", "A", "C") == missing


def test_numbers_booleans_lists_and_tables_keep_their_kind() -> None:
    tree = {"a": 1, "b": True, "c": [1.5, "${V}"], "d": {"e": None}}
    expected = {"a": 1, "b": True, "c": [1.5, "value"], "d": {"e": None}}
    assert (expected, ()) == expand(tree, ENVIRON)


def test_names_are_never_expanded() -> None:
    assert ({"${V}": "value"}, ()) == expand({"${V}": "${V}"}, ENVIRON)


def test_a_key_with_an_underscore_is_a_note_and_so_is_what_is_under_it() -> None:
    tree = {"_note": "${UNSET}", "t": {"_n": {"deep": "${UNSET}"}, "k": "${V}"}, "l": [{"_x": 1}]}
    assert ({"t": {"k": "value"}, "l": [{}]}, ()) == expand(tree, ENVIRON)


def test_a_name_that_a_person_chose_is_no_note() -> None:
    tree = {"tables": {"_mine": {"key": "${V}", "_note": "${UNSET}"}}, "_note": "${UNSET}"}
    expected = {"tables": {"_mine": {"key": "value"}}}
    assert (expected, ()) == expand(tree, ENVIRON, named=[("tables",)])


def test_everything_below_a_free_table_is_chosen() -> None:
    tree = {"t": {"x": {"free": {"_a": {"_b": "${V}"}}, "_note": 1}}}
    expected = {"t": {"x": {"free": {"_a": {"_b": "value"}}}}}
    assert (expected, ()) == expand(tree, ENVIRON, named=[("t", "*", "free", "**")])


def test_without_an_environment_every_text_stays() -> None:
    assert ({"a": "${UNSET}"}, ()) == expand({"a": "${UNSET}", "_n": 1}, None)


TEXTS = st.text(st.characters(exclude_characters="$"))


@given(st.dictionaries(TEXTS.filter(lambda key: not key.startswith("_")), TEXTS))
def test_text_without_a_dollar_is_never_changed(tree: dict[str, str]) -> None:
    assert (tree, ()) == expand(tree, {})


@given(st.text())
def test_a_value_is_put_in_once_and_never_read_again(value: str) -> None:
    assert ({"key": f"<{value}>"}, ()) == expand({"key": "<${V}>"}, {"V": value})
