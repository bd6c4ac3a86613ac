"""``woollama ask`` as on a fresh machine: no configuration, the embedded model answers."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.cli.shell import LIMIT_S, Shell

pytestmark = pytest.mark.live

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris.\n"
LOADING = "Loading local/smollm2-135m-instruct …"
LONG = ("ask", "-o", "max_tokens=2000", "Tell me a long story about a wall.")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def children_of(pid: int) -> set[int]:
    """The processes that it has started, and those that they have."""
    parents = {child: parent for child, parent, state in processes() if state != "Z"}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def processes() -> list[tuple[int, int, str]]:
    """Of every process its number, its parent's, and its state."""
    found: list[tuple[int, int, str]] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            found.append((int(folder.name), int(parent), state))
    return found


def assert_ended(pids: set[int]) -> None:
    assert pids
    until(lambda: pids.isdisjoint(pid for pid, _, state in processes() if state != "Z"))


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not happened():
        assert time.monotonic() < end
        os.sched_yield()


def test_a_question_is_answered_without_any_configuration(shell: Shell) -> None:
    assert (0, ANSWER, "") == shell.run("ask", QUESTION)


def test_a_question_through_a_pipe_is_answered_too(shell: Shell) -> None:
    assert (0, ANSWER, "") == shell.script(f"echo '{QUESTION}' | woollama ask --no-stream")


def test_a_terminal_says_what_is_loading_and_then_shows_the_answer(shell: Shell) -> None:
    with shell.terminal("ask", QUESTION) as terminal:
        terminal.wait_for(LOADING)
        assert 0 == terminal.end()
    assert terminal.seen.endswith(ANSWER)


def test_ctrl_c_while_a_model_loads_ends_it_and_its_engine(shell: Shell) -> None:
    with shell.terminal("ask", QUESTION) as terminal:
        terminal.wait_for(LOADING)
        until(lambda: bool(children_of(terminal.process.pid)))
        engine = children_of(terminal.process.pid)
        terminal.interrupt()
        assert 130 == terminal.end()
    assert "Traceback" not in terminal.seen
    assert "Paris" not in terminal.seen
    assert_ended(engine)


def test_ctrl_c_while_it_speaks_ends_it_and_its_engine(shell: Shell) -> None:
    with shell.started(*LONG) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        engine = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
    assert (130, b"") == (process.returncode, err)
    assert_ended(engine)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_its_engine_ends_with_it_however_it_ends(number: signal.Signals, shell: Shell) -> None:
    with shell.started(*LONG) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        engine = children_of(process.pid)
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
    assert_ended(engine)


def test_a_reader_that_leaves_ends_it_quietly(shell: Shell) -> None:
    done = shell.script(f"woollama {LONG[0]} {LONG[1]} {LONG[2]} '{LONG[3]}' | head -c 5")
    assert (5, "") == (len(done.out), done.err)


def test_a_broken_model_file_is_one_line(shell: Shell) -> None:
    broken = shell.config / "broken.gguf"
    broken.write_bytes(b"GGUF and nothing else")
    shell.write("woollama.toml", f'[plugins.local.models.broken]\npath = "{broken}"\n')
    done = shell.run("ask", "-m", "local/broken", "hi")
    assert (78, "") == (done.code, done.out)
    assert str(broken) in done.line
