"""Ctrl-C, closed and broken streams: quiet, with the right exit status, and nothing left behind."""

import errno
import fcntl
import os
import signal
import termios
import threading
import time
from array import array
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.server.cli.shell import LIMIT_S, Shell
from tests.server.cli.upstream import Speaker
from woollama.core.testing.upstream import Exchange, Script, serve_in_thread


@contextmanager
def speaking(shell: Shell, script: Script) -> Generator[None]:
    with serve_in_thread(script) as upstream:
        shell.provider(upstream.url)
        yield


def wait_until_read(pipe: int) -> None:
    """Until nothing that was written is left in the pipe."""
    end = time.monotonic() + LIMIT_S
    waiting = array("i", [1])
    while waiting[0]:
        assert time.monotonic() < end, "nobody reads"
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)
        os.sched_yield()


def test_ctrl_c_ends_an_answer_with_130_and_closes_the_upstream(shell: Shell) -> None:
    speaker = Speaker("One", " two", holds=True)
    with speaking(shell, speaker), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        terminal.wait_for("One")
        terminal.interrupt()
        assert 130 == terminal.end()
        assert speaker.gone.wait(LIMIT_S)
    # The prompt of the shell begins on a line of its own.
    assert terminal.seen.endswith("One\n")


def test_ctrl_c_in_a_pipe_says_nothing(shell: Shell) -> None:
    speaker = Speaker("One", " two", holds=True)
    with speaking(shell, speaker), shell.started("ask", "-m", "up/m", "hi") as process:
        assert process.stdout is not None
        assert b"One" == process.stdout.read(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
        assert (130, b"", b"") == (process.returncode, out, err)
        assert speaker.gone.wait(LIMIT_S)


def test_ctrl_c_before_the_first_byte_ends_it_and_shows_the_cursor_again(shell: Shell) -> None:
    asked, gone = threading.Event(), threading.Event()

    async def script(exchange: Exchange) -> None:
        asked.set()
        await exchange.gone.wait()
        gone.set()

    with speaking(shell, script), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        terminal.wait_for("Asking up/m …")
        assert asked.wait(LIMIT_S)
        terminal.interrupt()
        assert 130 == terminal.end()
        assert gone.wait(LIMIT_S)
    assert "Traceback" not in terminal.seen
    assert "\x1b[?25h" in terminal.seen.rpartition("Asking up/m …")[2]


def test_sigterm_before_the_first_byte_ends_it_and_shows_the_cursor_again(shell: Shell) -> None:
    asked, gone = threading.Event(), threading.Event()

    async def script(exchange: Exchange) -> None:
        asked.set()
        await exchange.gone.wait()
        gone.set()

    with speaking(shell, script), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        terminal.wait_for("Asking up/m …")
        assert asked.wait(LIMIT_S)
        terminal.process.send_signal(signal.SIGTERM)
        assert -signal.SIGTERM == terminal.end()
        assert gone.wait(LIMIT_S)
    assert "Traceback" not in terminal.seen
    assert "\x1b[?25l" in terminal.seen
    assert terminal.seen.endswith("\x1b[?25h")


def test_sigterm_behind_the_first_byte_leaves_what_stands_there(shell: Shell) -> None:
    speaker = Speaker("One", " two", holds=True)
    with speaking(shell, speaker), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        terminal.wait_for("One")
        terminal.process.send_signal(signal.SIGTERM)
        assert -signal.SIGTERM == terminal.end()
    assert terminal.seen.endswith("One")


def test_ctrl_c_while_it_reads_a_pipe_ends_it(shell: Shell) -> None:
    read, write = os.pipe()
    os.write(write, b"half a question")
    with shell.started("ask", "-m", "up/m", stdin=read) as process:
        wait_until_read(read)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    os.close(read)
    os.close(write)
    assert (130, b"", b"") == (process.returncode, out, err)


def test_a_second_ctrl_c_is_as_quiet(shell: Shell) -> None:
    speaker = Speaker("One", " two", holds=True)
    with speaking(shell, speaker), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        terminal.wait_for("One")
        terminal.interrupt()
        terminal.interrupt()
        # Ended by itself, or, when the second came while the interpreter ended, by the signal: a
        # shell shows 130 for both.
        assert terminal.end() in {130, -signal.SIGINT}
    assert "Traceback" not in terminal.seen


def test_a_reader_that_has_enough_ends_it_quietly(shell: Shell) -> None:
    speaker = Speaker("first line\n", *["another line\n"] * 200, holds=True)
    with speaking(shell, speaker):
        speaker.release.set()
        done = shell.script("woollama ask -m up/m hi | head -n 1")
    assert ("first line\n", "") == (done.out, done.err)


@pytest.mark.parametrize("command", ["models", "patterns --json", "check-config", "--help"])
def test_a_reader_that_reads_nothing_is_no_error_to_show(command: str, shell: Shell) -> None:
    assert "" == shell.script(f"woollama {command} | true").err


def test_a_full_disk_is_one_line(shell: Shell) -> None:
    with speaking(shell, Speaker("Paris.")):
        done = shell.script("woollama ask -m up/m hi > /dev/full")
    expected = os.strerror(errno.ENOSPC)
    assert (1, f"woollama: the output cannot be written: {expected}\n") == (done.code, done.err)


@pytest.mark.parametrize(
    ("streams", "out"),
    [("<&-", "Paris.\n"), (">&-", ""), ("2>&-", "Paris.\n"), ("<&- >&- 2>&-", "")],
)
def test_a_closed_stream_is_as_good_as_none(streams: str, out: str, shell: Shell) -> None:
    with speaking(shell, Speaker("Paris.")):
        done = shell.script(f"woollama ask -m up/m hi {streams}")
    assert (0, out, "") == done


def test_what_an_encoding_has_no_character_for_is_a_question_mark(shell: Shell) -> None:
    with speaking(shell, Speaker("Zürich, 東京")):
        done = shell.run("ask", "-m", "up/m", "hi", PYTHONIOENCODING="ascii")
    assert (0, "Z?rich, ??\n", "") == done


def test_one_file_for_both_streams_has_them_on_lines_of_their_own(shell: Shell) -> None:
    with speaking(shell, Speaker("Half an", cut=True)):
        done = shell.script("woollama ask -m up/m hi > all.txt 2>&1")
    first, second = (shell.home / "all.txt").read_text().splitlines()
    assert (1, "Half an") == (done.code, first)
    assert second.startswith("woollama: Provider 'up': ")
