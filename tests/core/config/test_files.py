"""Reading a file: where it is, and everything that is wrong in it at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from woollama.core.config.files import (
    Problem,
    config_dir,
    read_file,
    read_table,
    refuse,
)
from woollama.core.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"WOOLLAMA_CONFIG_DIR": "/a", "XDG_CONFIG_HOME": "/b"}, "/a"),
        ({"WOOLLAMA_CONFIG_DIR": "~/mine"}, "/home/me/mine"),
        ({"WOOLLAMA_CONFIG_DIR": "", "XDG_CONFIG_HOME": "/b"}, "/b/woollama"),
        ({"XDG_CONFIG_HOME": ""}, "/home/me/.config/woollama"),
        ({"XDG_CONFIG_HOME": "here"}, "/home/me/.config/woollama"),
        ({"XDG_CONFIG_HOME": "."}, "/home/me/.config/woollama"),
        ({}, "/home/me/.config/woollama"),
    ],
)
def test_p_6_the_directory_is_named_by_the_environment_and_never_the_working_one(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert Path(expected) == config_dir(environ)


def test_the_directory_comes_from_the_process_when_no_environment_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", "/somewhere")
    assert Path("/somewhere") == config_dir()


def test_a_home_that_cannot_be_found_is_told_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="no-such-user") as caught:
        config_dir({"WOOLLAMA_CONFIG_DIR": "~no-such-user-here/x"})
    assert "WOOLLAMA_CONFIG_DIR" in str(caught.value)


def write(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.toml", "", {}),
        ("a.toml", 'x = "${V}"  # ${UNSET}', {"x": "v"}),
        ("a.toml", b'\xef\xbb\xbfx = "bom"', {"x": "bom"}),
        ("a.toml", b"x = 1\r\ny = 2\r\n", {"x": 1, "y": 2}),
        ("a.json", '{"x": "${V}"}', {"x": "v"}),
        ("a.json", b'\xef\xbb\xbf{"x": 1}', {"x": 1}),
        ("a.json", " \n", {}),
    ],
)
def test_a_file_is_parsed_and_expanded(
    tmp_path: Path, name: str, content: str | bytes, expected: object
) -> None:
    assert expected == read_file(write(tmp_path, name, content), {"V": "v"})


@pytest.mark.parametrize("name", ["no.toml", "no.json"])
def test_a_file_that_is_missing_is_empty(tmp_path: Path, name: str) -> None:
    assert {} == read_file(tmp_path / name, {})


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", "]{ nothing", "is not valid TOML"),
        ("a.toml", "x = 1\nx = 2", "is not valid TOML"),
        ("a.toml", "[inferencers.a]\n[inferencers.a]", "is not valid TOML"),
        ("a.toml", b"x = '\xff'", "cannot be read"),
        ("a.toml", "x = " + "[" * 5000, "is not valid TOML"),
        ("a.json", "{", "is not valid JSON"),
        ("a.json", '{"x": 1, "x": 2}', "the key 'x' stands twice"),
        ("a.json", '{"t": {"y": 1, "x": 1, "y": 2}}', "the key 'y' stands twice"),
        ("a.json", "[]", "must hold a table at the top"),
        ("a.json", "[" * 100_000, "is not valid JSON"),
        ("a.toml", 'x = "${UNSET_A} ${UNSET_B}"', "unset variables: UNSET_A, UNSET_B;"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(ConfigError) as caught:
        read_file(path, {})
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
    assert ("invalid_config", 400, "invalid_request_error") == (
        caught.value.kind,
        caught.value.status,
        caught.value.type,
    )


def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path / "a.toml", {})


class Shape(msgspec.Struct):
    address: str
    port: int = 1
    mode: Literal["a", "b"] = "a"
    names: list[str] = []
    texts: dict[str, str] = {}
    seconds: float = 1.0
    inner: "Inner | None" = None


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    env: str


class Checked(msgspec.Struct):
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("Count must be at least 1")


def problems_of(raw: object, place: str = "shape") -> list[str]:
    value, problems = read_table(raw, Shape, file="f.toml", place=place)
    assert (value is None) is bool(problems)
    return [str(problem) for problem in problems]


def test_a_table_that_fits_is_its_value() -> None:
    raw = {"address": "h", "port": 2, "mode": "b", "names": ["x"], "inner": {"env": "E"}}
    value, problems = read_table(raw, Shape, file="f.toml", place="shape")
    assert [] == problems
    assert Shape("h", 2, "b", ["x"], inner=Inner("E")) == value


def test_every_problem_is_told_at_once_with_file_and_place() -> None:
    raw = {
        "adress": "h",
        "zzz": 1,
        "port": "2",
        "mode": "c",
        "names": ["x", 1],
        "texts": {"a": 1},
        "seconds": True,
        "inner": {"env": "E", "plce": 1},
    }
    assert [
        "f.toml: shape.adress: unknown key; did you mean 'address'?",
        "f.toml: shape.zzz: unknown key; known are address, inner, mode, names, port, seconds, "
        "texts",
        "f.toml: shape.port: expected `int`, got `str`",
        "f.toml: shape.mode: must be 'a' or 'b', not 'c'",
        "f.toml: shape.names: expected `str`, got `int` (at [1])",
        "f.toml: shape.texts: expected `str`, got `int`",
        "f.toml: shape.seconds: expected `float`, got `bool`",
        "f.toml: shape.inner: object contains unknown field `plce`",
        "f.toml: shape: needs the key 'address'",
    ] == problems_of(raw)


def test_the_top_of_a_file_has_no_place() -> None:
    assert [
        "f.toml: adres: unknown key; did you mean 'address'?",
        "f.toml: needs the key 'address'",
    ] == problems_of({"adres": ""}, place="")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [("x", "a string"), (True, "a boolean"), (1, "a number"), ([], "a list"), (None, "nothing")],
)
def test_what_is_no_table_is_named(raw: object, kind: str) -> None:
    assert [f"f.toml: shape: must be a table, not {kind}"] == problems_of(raw)


def test_what_a_shape_itself_refuses_is_a_problem() -> None:
    _, problems = read_table({"count": 0}, Checked, file="f.toml", place="t")
    assert ["f.toml: t: count must be at least 1"] == [str(problem) for problem in problems]


def test_all_problems_are_one_error_a_line_each() -> None:
    error = refuse([Problem("f", "a.b", "is wrong"), Problem("g", "", "too")])
    assert "f: a.b: is wrong\ng: too" == str(error)
