"""Tool names on the wire: RU-45's one function with two pinned tables, and what always holds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.tools.names import (
    EXPORT_LIMIT,
    MODEL_LIMIT,
    is_wire_name,
    wire_name,
    wire_names,
)

# Pinned: a change of these is a change of what models and MCP clients have seen.
TOWARDS_MODELS = {
    "add": "add",
    "files.read": "files__read",
    "files.read.all": "files__read__all",
    "my-server.do_it": "my-server__do_it",
    "a" * 64: "a" * 64,
    "a" * 65: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_635361c4",
    "files.read file": "files__read_file_c80ea599",
    "wetter.für_heute": "wetter__f_r_heute_a278b9e5",
    "": "_e3b0c442",
}
TOWARDS_MCP_CLIENTS = {
    "add": "add",
    "files.read": "files__read",
    "a" * 40: "a" * 40,
    "a" * 41: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_c0f8bd4d",
    "filesystem.list_directory_with_sizes_and": "filesystem__list_directory_with_5fa845e6",
    "github.create_pull_request_review_comment": "github__create_pull_request_rev_2d7326db",
}

NAMES = st.one_of(
    st.text(max_size=90),
    st.from_regex(r"[a-z_]{1,40}(\.[a-z_]{1,60}){0,3}", fullmatch=True),
    st.sampled_from(["a.b", "a__b", "a b", "a_b", "a.b.c", "a__b.c", "a.b__c"]),
)


@pytest.mark.parametrize(("source", "expected"), TOWARDS_MODELS.items())
def test_ru_45_a_name_towards_a_model_is_pinned(source: str, expected: str) -> None:
    assert expected == wire_name(source)


@pytest.mark.parametrize(("source", "expected"), TOWARDS_MCP_CLIENTS.items())
def test_ru_45_a_re_exported_name_is_pinned(source: str, expected: str) -> None:
    assert expected == wire_name(source, limit=EXPORT_LIMIT)


def test_ru_45_the_limits_are_64_and_40() -> None:
    assert (64, 40) == (MODEL_LIMIT, EXPORT_LIMIT)


@given(NAMES, st.sampled_from([MODEL_LIMIT, EXPORT_LIMIT]))
def test_every_name_is_legal_and_the_same_each_time(source: str, limit: int) -> None:
    name = wire_name(source, limit=limit)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    assert 0 < len(name) <= limit
    assert name == wire_name(source, limit=limit)


@given(st.lists(NAMES, unique=True, max_size=12), st.sampled_from([MODEL_LIMIT, EXPORT_LIMIT]))
def test_several_names_are_told_apart_and_map_back(sources: list[str], limit: int) -> None:
    names = wire_names(sources, limit=limit)
    assert sources == list(names)
    assert len(sources) == len({name: source for source, name in names.items()})
    assert all(is_wire_name(name, limit=limit) for name in names.values())


@given(st.lists(NAMES, unique=True, max_size=8))
def test_names_do_not_depend_on_the_order(sources: list[str]) -> None:
    assert wire_names(sources) == wire_names(list(reversed(sources)))


def test_of_two_that_would_be_called_alike_the_one_with_that_name_keeps_it() -> None:
    assert {"a.b": "a__b_2e7336dc", "a__b": "a__b"} == wire_names(["a.b", "a__b"])


def test_of_two_that_would_be_called_alike_and_have_other_names_both_are_marked() -> None:
    names = wire_names(["a.b__c", "a__b.c"])
    assert 2 == len(set(names.values()))
    assert all(re.fullmatch(r"a__b__c_[0-9a-f]{8}", name) for name in names.values())


def test_a_name_that_looks_like_a_mark_is_still_told_apart() -> None:
    marked = wire_names(["a.b", "a__b"])["a.b"]
    names = wire_names(["a.b", "a__b", marked])
    assert {"a__b": "a__b", marked: marked} == {k: v for k, v in names.items() if k != "a.b"}
    assert re.fullmatch(r"a__b_[0-9a-f]{16}", names["a.b"])


def test_a_legal_name_stays_as_it_is() -> None:
    assert is_wire_name("get_weather")
    assert not is_wire_name("get.weather")
    assert not is_wire_name("")
    assert "get_weather" == wire_name("get_weather")
