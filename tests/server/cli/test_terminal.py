"""What a person at a terminal sees of an answer, and what a pipe gets instead."""

import json
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from anyio import to_thread

from tests.server.cli.shell import Shell
from tests.server.cli.upstream import Speaker, chunk, completion, refusal
from woollama.core.testing.upstream import Exchange, Script, chunked, head, serve_in_thread

ESCAPE = "\x1b"
DIM, RED, RESET = "\x1b[2m", "\x1b[31m", "\x1b[0m"
CALCULATOR = {"command": sys.executable, "args": ["-m", "woollama.server.examples.clock"]}
RECIPE = '[recipes.sums]\ninferencer = "up/m"\ntools = ["calc.calculate"]\n'


@contextmanager
def speaking(shell: Shell, script: Script) -> Generator[None]:
    with serve_in_thread(script) as upstream:
        shell.provider(upstream.url)
        yield


class Calculating:
    """Talks, calls the tool, and answers with what it said; the answer waits for ``release``."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.bodies: list[dict[str, Any]] = []

    async def __call__(self, exchange: Exchange) -> None:
        body = json.loads(exchange.request.body)
        self.bodies.append(body)
        *_, last = body["messages"]
        if last["role"] == "tool":
            await to_thread.run_sync(self.release.wait)
            await self._say(exchange, body, {"content": f"It is {last['content'][:2]}."}, "stop")
            return
        function = {"name": "calc__calculate", "arguments": '{"expression": "6 * 7"}'}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        await self._say(
            exchange, body, {"content": "Let me see.", "tool_calls": [call]}, "tool_calls"
        )

    async def _say(
        self, exchange: Exchange, body: dict[str, Any], delta: dict[str, Any], finish: str
    ) -> None:
        if not body.get("stream"):
            await exchange.send(completion(delta, finish))
            return
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        events = [chunk(delta), chunk({}, finish), b"data: [DONE]\n\n"]
        await exchange.send(head(200, headers) + chunked(events))


@pytest.fixture
def calculating(shell: Shell) -> Generator[Calculating]:
    shell.write("mcp.json", json.dumps({"mcpServers": {"calc": CALCULATOR}}))
    shell.write("recipes.toml", RECIPE)
    script = Calculating()
    with speaking(shell, script):
        yield script
        script.release.set()


# As it comes


def test_the_first_piece_is_seen_before_the_second_is_there(shell: Shell) -> None:
    speaker = Speaker("The first", " and the second.", holds=True)
    with speaking(shell, speaker), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        assert "second" not in terminal.wait_for("The first")
        speaker.release.set()
        assert 0 == terminal.end()
    assert terminal.seen.endswith("The first and the second.\n")


def test_a_pipe_has_the_first_piece_before_the_second_is_there(shell: Shell) -> None:
    speaker = Speaker("one ", "two", holds=True)
    with speaking(shell, speaker), shell.started("ask", "-m", "up/m", "hi") as process:
        assert process.stdout is not None
        assert b"one " == process.stdout.read(4)
        speaker.release.set()
        out, err = process.communicate(timeout=60)
    assert (0, b"two\n", b"") == (process.returncode, out, err)


def test_without_streaming_nothing_is_seen_before_the_end(shell: Shell) -> None:
    speaker = Speaker("All of ", "it.")
    with (
        speaking(shell, speaker),
        shell.terminal("ask", "-m", "up/m", "--no-stream", "hi") as terminal,
    ):
        assert 0 == terminal.end()
    assert terminal.seen.endswith("All of it.\n")
    assert not speaker.bodies[0].get("stream")


# Beside the answer


def test_thinking_is_dim_and_on_lines_of_its_own(shell: Shell) -> None:
    thoughts: list[dict[str, str]] = [{"reasoning_content": "Hm, "}, {"reasoning_content": "yes."}]
    with (
        speaking(shell, Speaker(*thoughts, "Paris.")),
        shell.terminal("ask", "-m", "up/m", "hi") as terminal,
    ):
        assert 0 == terminal.end()
    assert terminal.seen.endswith(f"{DIM}Hm, {RESET}{DIM}yes.{RESET}\nParis.\n")


def test_only_the_answer_goes_into_a_pipe(shell: Shell) -> None:
    with speaking(shell, Speaker({"reasoning_content": "Hm."}, "Paris.")):
        assert (0, "Paris.\n", "") == shell.run("ask", "-m", "up/m", "hi")


def test_a_line_that_turns_says_who_is_asked_until_the_answer_comes(shell: Shell) -> None:
    speaker = Speaker("Here.", holds=False)
    waiting = threading.Event()

    async def script(exchange: Exchange) -> None:
        await to_thread.run_sync(waiting.wait)
        await speaker(exchange)

    with speaking(shell, script), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        terminal.wait_for("Asking up/m …")
        waiting.set()
        assert 0 == terminal.end()
    before, _, after = terminal.seen.rpartition("Asking up/m …")
    # The line is taken away before the answer takes its place, and the cursor is shown again.
    assert f"{ESCAPE}[2K" in after
    assert f"{ESCAPE}[?25h" in after
    assert after.endswith("Here.\n")
    assert "Here" not in before


def test_tool_calls_are_seen_as_they_happen(shell: Shell, calculating: Calculating) -> None:
    with shell.terminal("ask", "-p", "sums", "What is 6 * 7?") as terminal:
        terminal.wait_for("← calc.calculate: 42")
        assert '→ calc.calculate({"expression":"6 * 7"})' in terminal.seen
        assert "It is 42" not in terminal.seen
        calculating.release.set()
        assert 0 == terminal.end()
    lines = terminal.seen.splitlines()
    # What the model said before the call stays, and the call does not begin in the middle of it.
    assert any(line.endswith("Let me see.") for line in lines)
    assert terminal.seen.endswith("It is 42.\n")


@pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["stream", "whole"])
def test_a_pipe_has_the_same_text_of_a_run_with_and_without_streaming(
    flags: tuple[str, ...], shell: Shell, calculating: Calculating
) -> None:
    calculating.release.set()
    done = shell.run("ask", "-p", "sums", *flags, "What is 6 * 7?")
    assert (0, "It is 42.\n", "") == done


def test_json_of_a_run_is_its_last_reply_with_the_usage_of_all_turns(
    shell: Shell, calculating: Calculating
) -> None:
    calculating.release.set()
    done = shell.run("ask", "-p", "sums", "--json", "What is 6 * 7?")
    assert (0, "") == (done.code, done.err)
    reply = json.loads(done.out)
    assert "It is 42." == reply["choices"][0]["message"]["content"]
    assert 10 == reply["usage"]["total_tokens"]


# What a terminal is told


@pytest.mark.parametrize("text", [f"a{ESCAPE}[31mb", f"a{ESCAPE}]52;c;Zm9v\x07b", "a\rb", "a\x9bb"])
def test_a_terminal_does_not_obey_a_model(text: str, shell: Shell) -> None:
    with (
        speaking(shell, Speaker(text)),
        shell.terminal("ask", "-m", "up/m", "hi", TERM="dumb") as terminal,
    ):
        assert 0 == terminal.end()
    shown = text.replace(ESCAPE, "␛").replace("\x07", "␇").replace("\r", "").replace("\x9b", "�")
    assert f"{shown}\n" == terminal.seen


def test_a_pipe_gets_what_the_model_said_byte_by_byte(shell: Shell) -> None:
    text = f"a{ESCAPE}[31mb\r\nc\x07"
    with speaking(shell, Speaker(text)):
        assert text + "\n" == shell.run("ask", "-m", "up/m", "hi").out


def test_an_error_is_red_on_a_line_of_its_own(shell: Shell) -> None:
    with (
        speaking(shell, Speaker("Half an", " answer", cut=True)),
        shell.terminal("ask", "-m", "up/m", "hi") as terminal,
    ):
        assert 1 == terminal.end()
    assert f"Half an answer\n{RED}woollama: Provider 'up': " in terminal.seen
    assert terminal.seen.endswith(f"{RESET}\n")


def test_a_long_error_is_broken_between_words(shell: Shell) -> None:
    message = "a_word_of_20_letters " * 8

    async def script(exchange: Exchange) -> None:
        await exchange.send(refusal(400, message))

    with speaking(shell, script), shell.terminal("ask", "-m", "up/m", "hi") as terminal:
        assert 1 == terminal.end()
    lines = terminal.seen[terminal.seen.index("woollama: ") :].replace(RESET, "").splitlines()
    assert f"woollama: up/m answers 400: {message}".split() == " ".join(lines).split()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=" ".join)
def test_no_colour_where_none_is_wanted(environ: dict[str, str], shell: Shell) -> None:
    with (
        speaking(shell, Speaker({"reasoning_content": "Hm."}, "Half", cut=True)),
        shell.terminal("ask", "-m", "up/m", "hi", **environ) as terminal,
    ):
        assert 1 == terminal.end()
    assert f"{ESCAPE}[3" not in terminal.seen
    assert DIM not in terminal.seen
    assert "Half\nwoollama: Provider 'up': " in terminal.seen


def test_a_dumb_terminal_gets_no_escape_code_at_all(shell: Shell) -> None:
    with (
        speaking(shell, Speaker({"reasoning_content": "Hm."}, "Yes.")),
        shell.terminal("ask", "-m", "up/m", "hi", TERM="dumb") as terminal,
    ):
        assert 0 == terminal.end()
    assert "Yes.\n" == terminal.seen


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("models",),
        ("models", "--json"),
        ("patterns",),
        ("patterns", "show", "short"),
        ("check-config",),
        ("ask", "-m", "nobody/m", "hi"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_no_escape_code_is_in_a_pipe(arguments: tuple[str, ...], shell: Shell) -> None:
    done = shell.run(*arguments)
    assert ESCAPE not in done.out + done.err
