"""The small parts of the command line: text on a terminal, tables, failures, lazy commands."""

import sys
from types import SimpleNamespace

import click
import pytest

from woollama.core.errors import ConfigError, RequestError
from woollama.server.cli.failures import EXIT_FAULT, TRACEBACK, report
from woollama.server.cli.lazy import LazyCommands, Place
from woollama.server.cli.table import print_table
from woollama.server.cli.terminal import one_line, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x00\x07\x1b[0m\x7f", "␀␇␛[0m␡"),
        ("a\r\nb\rc", "a\nbc"),
        ("\x80\x9b\x9f", "\ufffd\ufffd\ufffd"),
        ("ä東🙂", "ä東🙂"),
    ],
)
def test_control_characters_are_shown(text: str, expected: str) -> None:
    assert expected == visible(text)


def test_one_line_is_one_line() -> None:
    assert "a b c" == one_line(" a\n\tb\r\n  c ")
    assert "xxx …" == one_line("xxxx", 3)


def test_columns_are_as_wide_as_they_look_and_empty_ones_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("A", "NONE", "B"), [("東京", "", "x"), ("abc", "", "y"), ("e\u0301", "", "z")])
    assert "A     B\n東京  x\nabc   y\ne\u0301     z\n" == capsys.readouterr().out


def test_a_table_without_rows_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [])
    assert "" == capsys.readouterr().out


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - a test of what is done with it
        return caught


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("One."), 78, "woollama: One."),
        (RequestError("One\ntwo.", hint="Do."), 1, "woollama: One two. Do."),
        (ExceptionGroup("", [ExceptionGroup("", [RequestError("In.")])]), 1, "woollama: In."),
        (BaseExceptionGroup("", [KeyboardInterrupt()]), 130, ""),
        (KeyboardInterrupt(), 130, ""),
        (click.exceptions.Exit(3), 3, ""),
        (PermissionError(13, "Permission denied", "/f"), 1, "woollama: /f: Permission denied"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a_failure_is_a_line_and_an_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code == report(error)
    assert said == capsys.readouterr().err.rstrip("\n")


@pytest.mark.parametrize("error", [KeyError("sk-secret"), ExceptionGroup("g", [ValueError()] * 2)])
def test_an_unexpected_error_is_a_line_without_what_it_says(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert EXIT_FAULT == report(raised(error))
    (line,) = capsys.readouterr().err.splitlines()
    assert f"an unexpected {type(error).__name__} in test_parts.py, line " in line
    assert f"{TRACEBACK}=1 shows where it comes from." in line
    assert "secret" not in line


def test_p_60_the_traceback_is_shown_only_to_who_asks_for_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    assert EXIT_FAULT == report(raised(KeyError("x")))
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_command_is_imported_when_it_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    command = click.Command("there")
    monkeypatch.setitem(sys.modules, "made_up", SimpleNamespace(there=command))
    places = {
        "there": Place("made_up:there", "Is there."),
        "broken": Place("no_such_module:x", "Cannot be imported."),
    }
    commands = LazyCommands(places)
    assert ["there", "broken"] == list(commands)
    assert "broken" in commands
    assert "Cannot be imported." == commands.summary("broken")
    assert command is commands["there"]
    with pytest.raises(ModuleNotFoundError):
        commands["broken"]
    with pytest.raises(KeyError):
        commands["nothing"]


def test_a_command_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = LazyCommands({})
    commands["own"] = click.Command("own", help="Does its own.")
    assert (1, "Does its own.") == (len(commands), commands.summary("own"))
    del commands["own"]
    assert "own" not in commands
