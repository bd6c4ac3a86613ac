"""Files that people edit meanwhile: seen at once, kept when broken, never outside the folder."""

import logging
import os
from pathlib import Path

import pytest

from woollama.core.errors import ConfigError
from woollama.core.patterns.files import LIMIT_BYTES, PatternFolder, WatchedFile, is_pattern_name


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name / "system.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def text(folder: PatternFolder, name: str) -> str | None:
    prompt = folder.find(name)
    return None if prompt is None else prompt.text


def age(path: Path, seconds: int) -> None:
    """Makes a file look as old as that."""
    found = path.stat()
    moment = found.st_mtime_ns - seconds * 1_000_000_000
    os.utime(path, ns=(moment, moment))


def test_a_text_is_the_files_to_the_byte(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf# A\r\n\r\n{{x}} \xe2\x80\x8b\r end"
    put(tmp_path, "a", data)
    put(tmp_path, "empty", b"")
    folder = PatternFolder(tmp_path)
    assert ["a", "empty"] == folder.names()
    assert data.decode() == text(folder, "a")
    assert "" == text(folder, "empty")


def test_an_edit_is_seen_at_once_also_within_one_tick_of_the_clock(tmp_path: Path) -> None:
    folder = PatternFolder(tmp_path)
    for written in ("one", "two", "six"):
        path = put(tmp_path, "a", written.encode())
        moment = 1_700_000_000_000_000_000
        os.utime(path, ns=(moment, moment))
        assert written == text(folder, "a")


def test_an_edit_with_an_old_time_is_seen(tmp_path: Path) -> None:
    folder = PatternFolder(tmp_path)
    age(put(tmp_path, "a", b"one"), 3600)
    assert "one" == text(folder, "a")
    age(put(tmp_path, "a", b"other"), 7200)
    assert "other" == text(folder, "a")


def test_an_old_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    age(path, 3600)
    reads: list[Path] = []

    def read(given: Path) -> str:
        reads.append(given)
        return given.read_text()

    file = WatchedFile((path,), read, "")
    assert ["x", "x", "x"] == [file.value() for _ in range(3)]
    assert [path] == reads


def test_a_new_and_a_removed_pattern_are_seen(tmp_path: Path) -> None:
    folder = PatternFolder(tmp_path)
    assert [] == folder.names()
    path = put(tmp_path, "a", b"x")
    assert ["a"] == folder.names()
    path.unlink()
    assert (None, []) == (text(folder, "a"), folder.names())
    put(tmp_path, "a", b"y")
    assert "y" == text(folder, "a")
    path.unlink()
    path.parent.rmdir()
    assert ([], None) == (folder.names(), text(folder, "a"))


def test_a_missing_folder_has_no_patterns(tmp_path: Path) -> None:
    folder = PatternFolder(tmp_path / "nowhere")
    assert ([], None, {}) == (folder.names(), text(folder, "a"), folder.problems())


BROKEN = [
    (b"\xff\xfe", "is not UTF-8"),
    (b"x" * (LIMIT_BYTES + 1), "more than"),
]


@pytest.mark.parametrize(("data", "said"), BROKEN, ids=["bytes", "size"])
def test_a_broken_edit_keeps_the_last_good_version_and_says_so(
    data: bytes, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    folder = PatternFolder(tmp_path)
    put(tmp_path, "a", b"good")
    assert "good" == text(folder, "a")
    put(tmp_path, "a", data)
    assert ["good", "good"] == [text(folder, "a") for _ in range(2)]
    assert ["a"] == folder.names()
    assert said in folder.problems()["a"]
    assert 1 == len(caplog.records), "said once"
    assert "system.md" in caplog.text
    put(tmp_path, "a", b"better")
    assert ("better", {}) == (text(folder, "a"), folder.problems())


def test_a_file_that_was_never_good_is_no_pattern_and_a_problem(tmp_path: Path) -> None:
    folder = PatternFolder(tmp_path)
    put(tmp_path, "a", b"\xff")
    assert (None, []) == (text(folder, "a"), folder.names())
    assert ["a"] == list(folder.problems())


def test_a_file_that_cannot_be_looked_at_keeps_its_last_good_version(tmp_path: Path) -> None:
    path = put(tmp_path, "a", b"good")
    folder = PatternFolder(tmp_path)
    assert "good" == text(folder, "a")
    path.unlink()
    path.symlink_to(path)
    assert "good" == text(folder, "a")
    assert "a" in folder.problems()
    assert ["a"] == folder.names()


def test_a_folder_in_the_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a" / "system.md").mkdir(parents=True)
    folder = PatternFolder(tmp_path)
    assert (None, ["a"]) == (text(folder, "a"), list(folder.problems()))


ODD = [
    "summarize_pull-requests",
    "with space",
    "näme",
    "名前",
    "a.b",
    "%2e%2e",
    "a:b",
    "~",
    "-x",
    "*",
]


@pytest.mark.parametrize("name", ODD)
def test_names_with_odd_characters_are_names(name: str, tmp_path: Path) -> None:
    put(tmp_path, name, b"x")
    folder = PatternFolder(tmp_path)
    assert ([name], "x") == (folder.names(), text(folder, name))


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../outside",
        "a/../../outside",
        "/etc",
        "inside/a",
        "..\\outside",
        "a\0b",
        ".hidden",
        "\udc80",
        "x" * 5000,
    ],
)
def test_a_name_cannot_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    put(tmp_path, "outside", b"secret")
    put(tmp_path / "library" / "inside", "a", b"x")
    put(tmp_path / "library", ".hidden", b"x")
    folder = PatternFolder(tmp_path / "library")
    assert text(folder, name) is None
    assert {} == folder.problems()
    assert name == "x" * 5000 or not is_pattern_name(name)


def test_a_folder_whose_name_is_no_text_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "fine", b"x")
    os.mkdir(os.fsencode(tmp_path) + b"/\x80")  # noqa: PTH102 - a Path has no such name
    assert ["fine"] == PatternFolder(tmp_path).names()


def test_the_first_file_that_exists_hides_the_others(tmp_path: Path) -> None:
    own, bundled = tmp_path / "own", tmp_path / "bundled"
    bundled.write_text("bundled")

    def read(path: Path) -> str:
        if path.read_text() == "broken":
            raise ConfigError("broken")
        return path.read_text()

    file = WatchedFile((own, bundled), read, "empty")
    assert "bundled" == file.value()
    own.write_text("own")
    assert "own" == file.value()
    own.write_text("broken")
    assert ("own", "broken") == (file.value(), file.problem)
    own.unlink()
    assert ("bundled", None) == (file.value(), file.problem)
    bundled.unlink()
    assert ("empty", None) == (file.value(), file.problem)
