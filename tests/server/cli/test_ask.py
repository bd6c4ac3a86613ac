"""``woollama ask``: what is asked, whom, and what is printed; refusals a line each."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.shell import Ended, Shell
from tests.server.cli.upstream import Speaker, chunk, refusal
from tests.server.fabric.rig import Machine
from woollama.core.testing.upstream import Exchange, Script, chunked, head, serve_in_thread, whole
from woollama.server.cli.commands import run
from woollama.server.fabric import entry

Ask = Callable[..., Ended]
CALL = {
    "index": 0,
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at": "sky"}'},
}
LOOK = '{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}'
either_way = pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["stream", "whole"])


@pytest.fixture
def ask(shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks in this process, from a terminal: nothing comes through a pipe."""
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(shell.config))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def ask(*arguments: str) -> Ended:
        code = run(["ask", *arguments])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return ask


@contextmanager
def speaking(shell: Shell, script: Script, table: str = "") -> Generator[None]:
    with serve_in_thread(script) as upstream:
        shell.provider(upstream.url, table)
        yield


def asked(speaker: Speaker) -> dict[str, Any]:
    """The one request."""
    (body,) = speaker.bodies
    return body


# What is asked


@pytest.mark.parametrize(
    ("arguments", "piped", "expected"),
    [
        (["one", "question"], "", "one question"),
        ([], "from a pipe\n", "from a pipe"),
        (["Translate:"], "Guten Tag\r\n", "Translate:\n\nGuten Tag"),
        (["äöü"], "", "äöü"),
        ([], "\ufeffwith a mark\n", "with a mark"),
        ([], "two\n\nparts\n\n", "two\n\nparts"),
        (["--", "-x"], "", "-x"),
    ],
)
def test_the_question_is_the_arguments_and_then_the_pipe(
    arguments: list[str], piped: str, expected: str, shell: Shell
) -> None:
    speaker = Speaker("yes")
    with speaking(shell, speaker):
        done = shell.run("ask", "-m", "up/m", *arguments, stdin=piped.encode())
    assert (0, "yes\n", "") == done
    assert [{"role": "user", "content": expected}] == asked(speaker)["messages"]


@pytest.mark.parametrize("piped", [b"", b"\n", b"  \n\n"])
def test_neither_argument_nor_pipe_is_exit_code_2(piped: bytes, shell: Shell) -> None:
    done = shell.run("ask", "-m", "up/m", stdin=piped)
    assert (2, "") == (done.code, done.out)
    assert done.err.endswith("Error: Nothing to ask: give a question, or pipe one in.\n")


def test_at_a_terminal_it_does_not_wait_for_a_question(ask: Ask) -> None:
    done = ask("-m", "up/m")
    assert (2, "") == (done.code, done.out)
    assert "Nothing to ask" in done.err


def test_bytes_that_are_no_text_are_refused(shell: Shell) -> None:
    done = shell.run("ask", "-m", "up/m", stdin=b"GIF89a\xff\xfe")
    assert (2, "") == (done.code, done.out)
    assert "What comes on standard input is no text in UTF-8 (byte 7)." in done.err


def test_the_system_prompt_comes_first(shell: Shell, ask: Ask) -> None:
    speaker = Speaker("yes")
    with speaking(shell, speaker):
        assert 0 == ask("-m", "up/m", "-s", "Be brief.", "hi").code
    assert [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ] == asked(speaker)["messages"]


def test_the_default_model_of_the_configuration_answers(shell: Shell, ask: Ask) -> None:
    speaker = Speaker("yes")
    shell.write("woollama.toml", 'default_model = "up/mine"\n')
    with speaking(shell, speaker):
        assert (0, "yes\n", "") == ask("hi")
    assert "mine" == asked(speaker)["model"]


def test_a_managed_fabric_is_started_for_a_pattern_and_for_no_model(
    shell: Shell, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path / "fabric")
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    # A busy machine starts the program slowly.
    monkeypatch.setattr(entry, "SETTLE_S", 60.0)
    shell.write("woollama.toml", 'plugins.enabled = ["fabric"]\n')
    shell.write("mcp.json", '{"fabric": {"managed": true, "default_model": "ollama/echo"}}')
    with speaking(shell, Speaker("yes")):
        assert (0, "yes\n", "") == ask("-m", "up/m", "hi")
        assert 0 == run(["models", "test", "up/m"])
        assert [] == machine.starts()
        done = ask("-m", "woollama/summarize", "hi")
    assert (0, 1) == (done.code, len(machine.starts()))
    assert "hi" in done.out


# Options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["temperature=0.5"], {"temperature": 0.5}),
        (["max_tokens=7", "seed=1"], {"max_tokens": 7, "seed": 1}),
        (['stop=["a", "b"]'], {"stop": ["a", "b"]}),
        (["user=me"], {"user": "me"}),
        (["user=a=b"], {"user": "a=b"}),
        (['user="7"'], {"user": "7"}),
        (["user=NaN"], {"user": "NaN"}),
        (["user=1e999"], {"user": "1e999"}),
        (["user="], {"user": ""}),
        (["metadata.a=1", "metadata.b.c=x"], {"metadata": {"a": 1, "b": {"c": "x"}}}),
        (['x={"deep": [null, true]}'], {"x": {"deep": [None, True]}}),
    ],
)
def test_an_option_is_a_field_of_the_request(
    options: list[str], expected: dict[str, Any], shell: Shell, ask: Ask
) -> None:
    speaker = Speaker("yes")
    with speaking(shell, speaker):
        arguments = [part for option in options for part in ("-o", option)]
        assert (0, "yes\n", "") == ask("-m", "up/m", *arguments, "hi")
    assert expected == {key: asked(speaker).get(key) for key in expected}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-o", "temperature"], "-o wants KEY=VALUE, not 'temperature'."),
        (["-o", "=1"], "-o wants KEY=VALUE, not '=1'."),
        (["-o", "a.=1"], "an empty name between the dots of 'a.'"),
        (["-o", ".=1"], "an empty name between the dots of '.'"),
        (["-o", "a=1", "-o", "a=2"], "-o gives 'a' twice: keep one."),
        (["-o", "a=1", "-o", "a.b=2"], "-o gives 'a' a value and parts: keep one."),
        (["-o", "a.b=1", "-o", "a=2"], "-o gives 'a' a value and parts: keep one."),
        (["-o", "model=up/x"], "-o does not set 'model': use -m."),
        (["-o", "stream=true"], "-o does not set 'stream': use --no-stream."),
        (["-o", "messages=[]"], "-o does not set 'messages': the question is the argument"),
        (["-o", f"a={'[' * 20_000}"], "nested too deeply"),
        (["-v", "name=x"], "-v fills in the variables of a pattern: name one with -p."),
        (["-p", "x", "-v", "name"], "-v wants NAME=TEXT, not 'name'."),
        (["-p", "x", "-v", "a=1", "-v", "a=2"], "-v gives 'a' twice: keep one."),
    ],
)
def test_an_option_that_says_nothing_clear_is_exit_code_2(
    arguments: list[str], expected: str, ask: Ask
) -> None:
    done = ask("-m", "up/m", *arguments, "hi")
    assert (2, "") == (done.code, done.out)
    assert expected in done.err


def test_an_option_of_the_wrong_type_is_refused_before_anything_is_sent(
    shell: Shell, ask: Ask
) -> None:
    speaker = Speaker("yes")
    with speaking(shell, speaker):
        done = ask("-m", "up/m", "-o", "temperature=hot", "hi")
    assert (1, "", []) == (done.code, done.out, speaker.bodies)
    assert "woollama: 'temperature': Expected `int | float | null`, got `str`." == done.line


# What is printed


@either_way
def test_the_answer_alone_is_printed(flags: tuple[str, ...], shell: Shell, ask: Ask) -> None:
    with speaking(shell, Speaker({"reasoning_content": "Hm."}, "Two", "\nlines")):
        assert (0, "Two\nlines\n", "") == ask("-m", "up/m", *flags, "hi")


def test_json_is_the_whole_reply_and_nothing_else(shell: Shell) -> None:
    speaker = Speaker({"reasoning_content": "Hm."}, "Grüße")
    with speaking(shell, speaker):
        done = shell.run("ask", "-m", "up/m", "--json", "hi", PYTHONIOENCODING="ascii")
    assert (0, "") == (done.code, done.err)
    reply = json.loads(done.out)
    (choice,) = reply["choices"]
    assert {"role": "assistant", "content": "Grüße", "reasoning_content": "Hm."} == choice[
        "message"
    ]
    assert 5 == reply["usage"]["total_tokens"]
    assert not asked(speaker).get("stream")


def test_json_of_a_failure_is_nothing_on_stdout(shell: Shell, ask: Ask) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(refusal(400, "No."))

    with speaking(shell, script):
        assert (1, "", "woollama: up/m answers 400: No.\n") == ask("-m", "up/m", "--json", "hi")


@either_way
@pytest.mark.parametrize(
    ("pieces", "finish", "out", "note"),
    [
        (["Half"], "length", "Half\n", "The answer is cut: the model has reached its limit"),
        (["Half"], "content_filter", "Half\n", "The provider's filter ended the answer."),
        ([""], "stop", "", "The answer is empty."),
        ([{"tool_calls": [CALL]}], "tool_calls", "", 'not run here: look({"at": "sky"}).'),
    ],
)
def test_what_the_text_alone_does_not_show_is_said_beside_it(
    pieces: list[Any],
    finish: str,
    out: str,
    note: str,
    flags: tuple[str, ...],
    shell: Shell,
    ask: Ask,
) -> None:
    with speaking(shell, Speaker(*pieces, finish=finish)):
        done = ask("-m", "up/m", "-o", f"tools=[{LOOK}]", *flags, "hi")
    assert (0, out) == (done.code, done.out)
    assert note in done.line


def test_a_dropped_parameter_is_named(shell: Shell, ask: Ask) -> None:
    with speaking(shell, Speaker("yes"), 'drop_params = ["seed"]\n'):
        done = ask("-m", "up/m", "-o", "seed=1", "hi")
    assert (0, "yes\n") == (done.code, done.out)
    assert "woollama: Left out, as drop_params says: seed." == done.line


# Who refuses, and why


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["-m", "nobody/m"], 1, "No provider for the model 'nobody/m'"),
        (["-m", "up"], 1, "'up' names a provider and no model: write up/<model>."),
        (["-m", ""], 1, "No provider for the model ''"),
        (["-m", "woollama/nothing"], 1, "There is no recipe or pattern 'nothing'."),
        (["-p", "nothing"], 1, "There is no pattern 'nothing'."),
        (["-m", "up/m"], 78, "needs a key: set the environment variable UP_KEY."),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    arguments: list[str], code: int, expected: str, shell: Shell, ask: Ask
) -> None:
    shell.provider("http://127.0.0.1:1/v1", 'api_key_env = "UP_KEY"\n')
    done = ask(*arguments, "hi")
    assert (code, "") == (done.code, done.out)
    assert expected in done.line
    assert done.line.startswith("woollama: ")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (refusal(400, "No such thing."), "up/m answers 400: No such thing."),
        (refusal(404, "The model `m` does not exist"), "up/m answers 404: The model `m` does"),
        (refusal(429, "Slow\ndown"), "up/m answers 429: Slow down"),
        (refusal(500, "\x1b[31mfire\x1b[0m\x07"), "up/m answers 500: ␛[31mfire␛[0m␇"),
        (whole(b"<html><h1>Bad gateway</h1></html>", status=502), "up/m answers 502: <html>"),
        (whole(b'{"error": {"message": "out of memory"}}'), "up/m refuses: out of memory"),
        (whole(b"hello"), "up/m: The provider answered text that is neither JSON nor a stream"),
        (whole(b""), "up/m: The provider's reply is empty."),
        (whole(b"", status=302), "woollama: Provider 'up' answers with a redirect to 'elsewhere'."),
        (refusal(500, "x" * 5000), f"up/m answers 500: {'x' * 100}"),
    ],
    ids=["400", "404", "429", "500", "html", "200", "text", "nothing", "redirect", "long"],
)
@either_way
def test_a_refusal_is_one_line_that_says_whose_it_is(
    reply: bytes, expected: str, flags: tuple[str, ...], shell: Shell, ask: Ask
) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(reply)

    with speaking(shell, script):
        done = ask("-m", "up/m", *flags, "hi")
    assert (1, "") == (done.code, done.out)
    assert expected in done.line
    assert len(done.line) < 700


def test_a_provider_that_is_not_there_is_one_line_in_the_system_s_words(
    shell: Shell, ask: Ask
) -> None:
    shell.provider("http://127.0.0.1:1/v1")
    expected = "Provider 'up': http://127.0.0.1:1 cannot be reached: connection refused."
    assert (1, "", f"woollama: {expected}\n") == ask("-m", "up/m", "hi")


def test_a_cut_answer_is_an_error_behind_what_came(shell: Shell, ask: Ask) -> None:
    with speaking(shell, Speaker("Half ", "an", cut=True)):
        done = ask("-m", "up/m", "hi")
    assert (1, "Half an") == (done.code, done.out)
    assert "closed the connection before the reply was complete" in done.line


def test_a_stream_without_its_end_is_an_error(shell: Shell, ask: Ask) -> None:
    async def script(exchange: Exchange) -> None:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await exchange.send(head(200, headers) + chunked([chunk({"content": "Half"})]))

    with speaking(shell, script):
        done = ask("-m", "up/m", "hi")
    assert (1, "Half") == (done.code, done.out)
    assert "Provider 'up' sent it as text/event-stream." in done.line


# The configuration


def test_a_refused_configuration_is_exit_code_78_with_everything_in_it(
    shell: Shell, ask: Ask
) -> None:
    shell.write("woollama.toml", "[server]\nadress = 1\n[timeout]\n")
    done = ask("-m", "up/m", "hi")
    assert (78, "") == (done.code, done.out)
    first, *problems, last = done.err.splitlines()
    assert "woollama: the configuration is refused:" == first
    assert "`woollama check-config` checks every file." == last
    assert {
        f"{shell.config / 'woollama.toml'}: server.adress: unknown key; did you mean 'address'?",
        f"{shell.config / 'woollama.toml'}: timeout: unknown table; did you mean 'timeouts'?",
    } == set(problems)


def test_a_key_in_the_file_env_is_used(shell: Shell, ask: Ask) -> None:
    keys: list[str] = []
    speaker = Speaker("yes")

    async def script(exchange: Exchange) -> None:
        keys.append(exchange.request.headers["authorization"])
        await speaker(exchange)

    shell.write(".env", "UP_KEY=sk-of-the-file\n")
    with speaking(shell, script, 'api_key_env = "UP_KEY"\n'):
        assert 0 == shell.run("ask", "-m", "up/m", "hi").code
        assert 0 == shell.run("ask", "-m", "up/m", "hi", UP_KEY="sk-of-the-shell").code
    assert ["Bearer sk-of-the-file", "Bearer sk-of-the-shell"] == keys


def test_a_known_key_that_does_nothing_yet_is_a_warning_in_one_line(shell: Shell) -> None:
    with speaking(shell, Speaker("yes"), "pool_max = 3\n"):
        done = shell.run("ask", "-m", "up/m", "hi")
    assert (0, "yes\n") == (done.code, done.out)
    assert done.line.startswith("woollama: warning: ")
    assert "inferencers.up: not built yet, ignored: pool_max" in done.line


def test_p_6_nothing_in_the_working_directory_is_read(shell: Shell, tmp_path: Path) -> None:
    for name in ("woollama.toml", "inferencers.toml", "recipes.toml", "mcp.json", ".env"):
        (tmp_path / name).write_text("this is no configuration")
    with speaking(shell, Speaker("yes")):
        assert (0, "yes\n", "") == shell.run("ask", "-m", "up/m", "hi")
