"""``woollama ask --url``: the same question, put to a daemon that runs."""

import json
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.clients.running import RunningDaemon, running_daemon
from tests.server.cli.shell import Ended, Shell
from tests.server.cli.upstream import Speaker
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.upstream import serve_in_thread
from woollama.server.cli.by_daemon import address_of
from woollama.server.cli.commands import run

Ask = Callable[..., Ended]
TOKEN = "wl-of-the-test"
RECIPES = """
[recipes.greeter]
inferencer = "up/m"
system = "Greet in {{language}}."

[recipes.greeter.variables.language]
default = "English"

[recipes."odd/name ü"]
inferencer = "up/m"
"""


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    return Speaker("Good ", "morning.")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, speaker: Speaker) -> Generator[RunningDaemon]:
    ollama = OllamaFake([say("Warm.")] * 4)
    with serve_in_thread(speaker) as up, serve_in_thread(ollama) as other:
        files = {
            "inferencers.toml": f'[inferencers.up]\nbase_url = "{up.url}"\n'
            f'[inferencers.ollama]\nbase_url = "{other.origin}"\n',
            "recipes.toml": RECIPES,
        }
        folder = tmp_path_factory.mktemp("daemon")
        with running_daemon(folder, files=files, environ={"WOOLLAMA_TOKEN": TOKEN}) as running:
            yield running


@pytest.fixture
def ask(
    daemon: RunningDaemon,
    shell: Shell,
    speaker: Speaker,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Ask:
    """Asks the daemon with its token, from a terminal; nothing is configured on this side."""
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(shell.config))
    monkeypatch.setenv("WOOLLAMA_TOKEN", TOKEN)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    speaker.bodies.clear()

    def ask(*arguments: str, url: str = daemon.url) -> Ended:
        code = run(["ask", "--url", url, *arguments])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return ask


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/v1", "{}/v1/"])
@pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["stream", "whole"])
def test_a_running_daemon_answers(
    form: str, flags: tuple[str, ...], daemon: RunningDaemon, ask: Ask
) -> None:
    done = ask("-m", "up/m", *flags, "hi", url=form.format(daemon.url))
    assert (0, "Good morning.\n", "") == done


def test_an_address_without_its_scheme_is_enough(daemon: RunningDaemon, ask: Ask) -> None:
    done = ask("-m", "up/m", "hi", url=daemon.url.removeprefix("http://"))
    assert (0, "Good morning.\n", "") == done


def test_the_whole_reply_can_be_had(ask: Ask) -> None:
    done = ask("-m", "up/m", "--json", "hi")
    assert "Good morning." == json.loads(done.out)["choices"][0]["message"]["content"]


def test_system_prompt_and_options_reach_the_provider(ask: Ask, speaker: Speaker) -> None:
    assert 0 == ask("-m", "up/m", "-s", "Be kind.", "-o", "temperature=0", "hi").code
    (body,) = speaker.bodies
    assert 0 == body["temperature"]
    assert ["Be kind.", "hi"] == [message["content"] for message in body["messages"]]


def test_options_of_ollama_pass_to_the_daemon_that_knows_them(ask: Ask) -> None:
    done = ask("-m", "ollama/qwen3", "-o", "options.num_ctx=8192", "hi")
    assert (0, "Warm.\n", "") == done


def test_a_pattern_is_run_with_its_variables(ask: Ask, speaker: Speaker) -> None:
    done = ask("-p", "greeter", "-v", "language=German", "hi")
    assert (0, "Good morning.\n", "") == done
    assert "Greet in German." == speaker.bodies[0]["messages"][0]["content"]


def test_a_pattern_without_a_question_has_what_its_variables_say(
    ask: Ask, speaker: Speaker
) -> None:
    assert 0 == ask("-p", "greeter", "-v", "language=German").code
    assert ["system"] == [message["role"] for message in speaker.bodies[0]["messages"]]


def test_a_pattern_runs_on_another_model(ask: Ask, speaker: Speaker) -> None:
    assert 0 == ask("-p", "greeter", "-m", "up/other", "hi").code
    assert "other" == speaker.bodies[0]["model"]


def test_a_pattern_is_a_model_too(ask: Ask, speaker: Speaker) -> None:
    assert (0, "Good morning.\n", "") == ask("-m", "woollama/greeter", "hi")
    assert "Greet in English." == speaker.bodies[0]["messages"][0]["content"]


def test_a_name_with_odd_characters_is_found(ask: Ask) -> None:
    assert (0, "Good morning.\n", "") == ask("-p", "odd/name ü", "hi")


# What goes wrong


def test_without_its_token_it_says_where_one_is_read(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WOOLLAMA_TOKEN")
    done = ask("-m", "up/m", "hi")
    assert (1, "") == (done.code, done.out)
    assert "answers 401: " in done.line
    assert done.line.endswith("Its token is read from WOOLLAMA_TOKEN, which is not set.")


def test_a_wrong_token_is_named_as_the_cause_and_not_shown(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WOOLLAMA_TOKEN", "wl-of-another")
    done = ask("-m", "up/m", "hi")
    assert 1 == done.code
    assert done.line.endswith("WOOLLAMA_TOKEN, which is set to another one.")
    assert "wl-of-another" not in done.err


def test_its_refusals_are_its_own_words(daemon: RunningDaemon, ask: Ask) -> None:
    done = ask("-m", "nobody/m", "hi")
    assert (1, "") == (done.code, done.out)
    expected = f"woollama: The woollama at {daemon.url} answers 404: No provider for the model"
    assert done.line.startswith(expected)


def test_an_unknown_pattern_is_one_line(ask: Ask) -> None:
    assert "answers 404: There is no pattern 'greetr'." in ask("-p", "greetr", "hi").line


def test_where_nothing_listens_it_says_how_to_start_one(ask: Ask) -> None:
    done = ask("-m", "up/m", "hi", url="127.0.0.1:1")
    expected = (
        "woollama: http://127.0.0.1:1 cannot be reached: connection refused. Is a woollama running "
        "there? `woollama serve` starts one.\n"
    )
    assert (1, "", expected) == done


@pytest.mark.parametrize(
    "url", ["", " ", "ftp://x", "http://", "http:///v1", "http://h:port", "h?x=1", "http://[::1"]
)
def test_what_is_no_address_is_exit_code_2(url: str, ask: Ask) -> None:
    done = ask("-m", "up/m", "hi", url=url)
    assert (2, "") == (done.code, done.out)
    assert f"--url wants an address, http://127.0.0.1:9665, not {url!r}." in done.err


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("h", "http://h"),
        ("h:1", "http://h:1"),
        (" https://h/v1 ", "https://h"),
        ("http://h/prefix/v1/", "http://h/prefix"),
        ("http://[::1]:9665/v1", "http://[::1]:9665"),
    ],
)
def test_an_address_is_read_as_people_write_it(url: str, expected: str) -> None:
    assert expected == address_of(url)


def test_the_default_model_of_this_side_is_asked_for(
    ask: Ask, shell: Shell, speaker: Speaker
) -> None:
    shell.write("woollama.toml", 'default_model = "up/mine"\n')
    assert 0 == ask("hi").code
    assert "mine" == speaker.bodies[0]["model"]


def test_in_a_terminal_the_answer_comes_as_it_comes(tmp_path: Path) -> None:
    speaker = Speaker("The first", " and the second.", holds=True)
    with serve_in_thread(speaker) as up:
        files = {"inferencers.toml": f'[inferencers.up]\nbase_url = "{up.url}"\n'}
        (tmp_path / "home").mkdir()
        shell = Shell(tmp_path / "home")
        with (
            running_daemon(tmp_path, files=files, environ={}) as daemon,
            shell.terminal("ask", "--url", daemon.url, "-m", "up/m", "hi") as terminal,
        ):
            assert "second" not in terminal.wait_for("The first")
            terminal.interrupt()
            assert 130 == terminal.end()
            # The daemon has seen that its client left, and has left the provider.
            assert speaker.gone.wait(60)
