"""What the command says of itself, and what it answers when it is called wrongly."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from tests.server.cli.shell import Shell
from woollama.core import __version__
from woollama.server.cli import main
from woollama.server.cli.commands import run, woollama

WIDTH = 80
# What `woollama --version` has no use for; together most of what the daemon loads.
HEAVY = (
    "httptools",
    "httpx2",
    "hypercorn",
    "mcp",
    "rich",
    "starlette",
    "uvicorn",
    "xllamacpp",
)
IMPORTS = f"""
import sys
from woollama.server.cli.commands import run
code = run(sys.argv[1:])
loaded = sorted(name for name in {HEAVY!r} if name in sys.modules)
print("loaded", *loaded, file=sys.stderr)
sys.exit(code)
"""


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


EVERY = tuple(commands(woollama))


def loaded(shell: Shell, *arguments: str) -> set[str]:
    """The heavy libraries that are imported when the command ends."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=shell.environ,
        timeout=60,
        check=False,
    )
    (*_, line) = done.stderr.splitlines()
    assert line.startswith("loaded"), done.stderr
    return set(line.split()[1:])


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_it_says_its_version(flag: str, shell: Shell) -> None:
    assert (0, f"woollama, version {__version__}\n", "") == shell.run(flag)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself_on_a_narrow_terminal(
    flag: str,
    path: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert 0 == run([*path, flag])
    printed = capsys.readouterr()
    assert "" == printed.err
    assert printed.out.startswith(f"Usage: {' '.join(('woollama', *path))} ")
    assert [] == [line for line in printed.out.splitlines() if len(line) > WIDTH]


def test_the_list_of_commands_cuts_no_line_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["--help"])
    assert "..." not in capsys.readouterr().out.replace("[ARGS]...", "")


def test_without_a_command_it_shows_its_help_and_that_is_wrong(shell: Shell) -> None:
    code, out, err = shell.run()
    assert (2, "") == (code, out)
    assert err.startswith("Usage: woollama")
    assert "check-config" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["aks"], "No such command 'aks'. Did you mean 'ask'?"),
        (["--nonsense"], "No such option '--nonsense'"),
        (["ask", "--no-steam", "x"], "'--no-stream'"),
        (["serve", "now"], "Got unexpected extra argument (now)"),
        (["serve", "--port", "many"], "'many' is not a valid integer"),
        (["serve", "--port", "65536"], "65536 is not in the range 0<=x<=65535."),
        (["serve", "--server", "apache"], "'apache' is not one of 'hypercorn', 'uvicorn'."),
        (["models", "of", "mine"], "No such command 'of'."),
        (["patterns", "show"], "Missing argument 'NAME'."),
        (["check-config", "file"], "Got unexpected extra argument (file)"),
    ],
)
def test_what_it_does_not_know_is_exit_code_2_and_names_the_help(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == run(arguments)
    printed = capsys.readouterr()
    assert "" == printed.out
    assert expected in printed.err
    assert "--help' for help" in printed.err


def test_an_option_without_its_value_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run(["ask", "-m"])
    assert "Option '-m' requires an argument." in capsys.readouterr().err


def test_a_shell_can_ask_for_completions(shell: Shell) -> None:
    typed = shell.run(_WOOLLAMA_COMPLETE="bash_complete", COMP_WORDS="woollama p", COMP_CWORD="1")
    assert (0, "plain,patterns\nplain,plugins\n") == (typed.code, typed.out)
    done = shell.run(_WOOLLAMA_COMPLETE="bash_complete", COMP_WORDS="woollama pat", COMP_CWORD="1")
    assert (0, "plain,patterns\n") == (done.code, done.out)


def test_ctrl_c_before_there_is_a_command_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("woollama.server.cli._main", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert 130 == ended.value.code


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["nonsense"], ["ask", "--help"]])
def test_what_needs_no_model_loads_neither_a_server_nor_a_client(
    arguments: list[str], shell: Shell
) -> None:
    assert set() == loaded(shell, *arguments)


def test_a_question_loads_no_server(shell: Shell) -> None:
    """And, in a pipe, nothing that draws on a terminal."""
    assert loaded(shell, "ask", "-m", "ollama/none", "hi") == {"httptools"}


def test_a_checked_configuration_loads_no_client(shell: Shell) -> None:
    assert loaded(shell, "check-config").isdisjoint({"httptools", "httpx2", "hypercorn", "mcp"})
