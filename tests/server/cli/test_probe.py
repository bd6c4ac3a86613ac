"""``woollama models test`` against the strict fakes: one screen that says what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from woollama.core.canonical import FunctionCall, ToolCall, Usage
from woollama.core.errors import RequestError
from woollama.core.providers import Provider, Target
from woollama.core.testing.fake import Fake, say
from woollama.core.testing.fakes import (
    FAKES,
    AnthropicFake,
    CompatibleFake,
    OllamaFake,
    ResponsesFake,
)
from woollama.core.testing.upstream import Exchange, Script, serve_in_thread, whole
from woollama.core.wire import DIALECTS
from woollama.server.cli.commands import run
from woollama.server.cli.diagnosis import Finding, advice

SECRET = "sk-secret-of-the-test"
KEYED = 'api_key_env = "UP_KEY"\n'
MODEL = "gpt-oss-120b"  # one that a Cerebras has
CALL = ToolCall(id="call_1", function=FunctionCall(name="echo", arguments='{"word":"pong"}'))
CALLED = say(
    calls=[CALL],
    reasoning="hm",
    usage=Usage(prompt_tokens=30, completion_tokens=12, total_tokens=42),
)
LINES, COLUMNS = 24, 80

SPOKEN = {
    "anthropic": 'provider = "anthropic"\n',
    "cerebras": 'dialect = "cerebras"\n',
    "compatible": "",
    "ollama": 'provider = "ollama"\n',
    "responses": 'dialect = "responses"\n',
}


class Told:
    """What the command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.rows = _rows(out)

    @property
    def verdict(self) -> str:
        return self.rows["verdict"]


def _rows(out: str) -> dict[str, str]:
    rows: dict[str, str] = {}
    name = ""
    for line in out.splitlines():
        name = line[:9].strip() or name
        rows[name] = f"{rows.get(name, '')} {line[9:]}".strip()
    return rows


Ask = Callable[..., Told]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs the command on ``up/<model>`` with this server and configuration."""
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("UP_KEY", SECRET)

    def ask(
        server: Script | Fake, table: str = "", *, key: str = KEYED, model: str = f"up/{MODEL}"
    ) -> Told:
        with serve_in_thread(server) as upstream:
            text = f'[inferencers.up]\nbase_url = "{upstream.url}"\n{key}{table}'
            (tmp_path / "inferencers.toml").write_text(text)
            code = run(["models", "test", model])
        printed = capsys.readouterr()
        lines = printed.out.splitlines()
        assert len(lines) <= LINES, printed.out
        assert all(len(line) <= COLUMNS and line == line.rstrip() for line in lines)
        for text in (printed.out, printed.err):
            assert "Traceback" not in text
            assert SECRET not in text
        return Told(code, printed.out, printed.err)

    return ask


def answering(body: bytes, *, status: int = 200, **headers: str) -> Script:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def script(exchange: Exchange) -> None:
        await exchange.send(whole(body, status=status, headers=named))

    return script


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_it_says_that_a_model_works_in_every_dialect(dialect: str, ask: Ask) -> None:
    fake = FAKES[dialect]([CALLED], key=SECRET)
    told = ask(fake, SPOKEN[dialect])
    kind = DIALECTS[dialect].family
    assert (0, "") == (told.code, told.err)
    assert f"kind {kind}, dialect {dialect}" == told.rows["spoken"]
    place = "x-api-key" if dialect == "anthropic" else "bearer"
    assert f"UP_KEY (set), sent as {place}" == told.rows["key"]
    assert 'echo({"word":"pong"})' == told.rows["called"]
    assert told.rows["ended"].startswith("tool_calls (")
    assert "prompt_tokens 30, completion_tokens 12, total_tokens 42" == told.rows["usage"]
    assert "none is declared, none is sent" == told.rows["effort"]
    assert told.verdict.startswith("It works")
    (request,) = fake.requests
    assert b"Use the tool you are given" in request.body
    assert b'"name":"echo"' in request.body


def test_a_model_that_only_talks_answers_all_the_same(ask: Ask) -> None:
    told = ask(CompatibleFake([say("  I\nwill\x1b[2J not. " + "x" * 999)]))
    assert 0 == told.code
    assert told.rows["said"].startswith("I will\N{REPLACEMENT CHARACTER}[2J not. x")
    assert "\x1b" not in told.out
    assert told.verdict.startswith("It answers. It did not call the tool")


def test_an_answer_that_was_cut_is_told_as_such(ask: Ask) -> None:
    told = ask(CompatibleFake([say("well, ", finish="length")]))
    assert (0, "It answers, but was cut by its output cap before it called the tool.") == (
        told.code,
        told.verdict,
    )


def test_many_calls_still_fit_on_a_screen(ask: Ask) -> None:
    calls = [
        ToolCall(id=f"call_{i}", function=FunctionCall(name="echo", arguments="x" * 999))
        for i in range(30)
    ]
    told = ask(CompatibleFake([say("y" * 999, calls=calls)]))
    assert told.rows["called"].endswith("x … and 29 more")


@pytest.mark.parametrize(
    ("server", "spoken", "named"),
    [
        ("compatible", "responses", 'dialect = "compatible"'),
        ("responses", "compatible", 'dialect = "responses"'),
        ("responses", "cerebras", 'dialect = "responses"'),
        ("anthropic", "compatible", 'provider = "anthropic"'),
        ("ollama", "compatible", 'provider = "ollama"'),
        ("compatible", "anthropic", 'provider = "openai"'),
        ("compatible", "ollama", 'provider = "openai"'),
    ],
)
def test_a_server_of_another_dialect_is_recognised(
    server: str, spoken: str, named: str, ask: Ask
) -> None:
    told = ask(FAKES[server]([CALLED]), SPOKEN[spoken])
    assert 1 == told.code
    assert "(not_found, 404)" in told.rows["refused"]
    assert told.verdict.startswith("Nothing answers at this path: does base_url end where")
    assert named in told.verdict
    # What was tried is not proposed again.
    assert f'"{spoken}"' not in told.verdict


def test_the_dialect_of_a_model_is_not_proposed_again(ask: Ask) -> None:
    own = f'[inferencers.up.models."{MODEL}"]\ndialect = "responses"\n'
    told = ask(CompatibleFake([CALLED]), own)
    assert 'dialect = "compatible"' in told.verdict
    assert "responses" not in told.verdict


@pytest.mark.parametrize("status", [200, 404, 405])
def test_a_web_page_is_no_model(status: int, ask: Ask) -> None:
    page = b"<!doctype html>\n<html><body>Welcome!</body></html>" + b" " * 2000
    told = ask(answering(page, status=status, content_type="text/html"))
    assert 1 == told.code
    assert "<!doctype html> <html>" in told.rows["refused"]
    assert "does base_url end where the API begins" in told.verdict


def test_an_empty_answer_is_no_model_either(ask: Ask) -> None:
    told = ask(answering(b""))
    assert (1, True) == (told.code, "(incomplete_stream, 502)" in told.rows["refused"])
    assert told.verdict.startswith("The answer is not in this dialect")


def test_p_7_a_key_in_a_place_that_the_dialect_does_not_read_is_refused(ask: Ask) -> None:
    fake = CompatibleFake([CALLED])
    told = ask(fake, key='key = { env = "UP_KEY", place = "x-api-key" }\n')
    assert (78, "", []) == (told.code, told.out, fake.requests)
    assert "'compatible' reads its key from 'bearer', not from 'x-api-key'" in told.err


def test_p_7_a_key_does_not_go_to_another_host(ask: Ask) -> None:
    fake = CompatibleFake([CALLED])
    told = ask(fake, key='key = { env = "UP_KEY", hosts = ["api.example.com"] }\n')
    assert (1, []) == (told.code, fake.requests)
    assert "may go to api.example.com only" in told.rows["refused"]


def test_a_refused_key_names_its_variable_and_its_place(ask: Ask) -> None:
    told = ask(CompatibleFake([CALLED], key="another"))
    assert (1, True) == (told.code, "(authentication, 401)" in told.rows["refused"])
    assert "is it the right one in UP_KEY? It is sent as 'bearer'" in told.verdict


def test_a_key_that_is_wanted_and_not_configured_is_told(ask: Ask) -> None:
    told = ask(CompatibleFake([CALLED], key="another"), key="")
    assert "none is configured, none is sent" == told.rows["key"]
    assert told.verdict.startswith("The server wants a key: name its variable in api_key_env.")


def test_a_key_whose_variable_is_not_set_is_told_before_anything_is_sent(ask: Ask) -> None:
    fake = CompatibleFake([CALLED])
    told = ask(fake, key='api_key_env = "NOT_THERE_KEY"\n')
    assert (1, []) == (told.code, fake.requests)
    assert "NOT_THERE_KEY (NOT SET), sent as bearer" == told.rows["key"]
    assert "set the environment variable NOT_THERE_KEY" in told.rows["refused"]


@pytest.mark.parametrize("default", [None, "medium"])
def test_p_22_an_effort_beside_tools_advises_the_responses_dialect(
    default: str | None, ask: Ask
) -> None:
    """A-14, OC-43: the model's own effort is refused just like one that was sent."""
    fake = CompatibleFake([CALLED], effort_beside_tools="refuse", default_effort=default)
    efforts = f'[inferencers.up.models."{MODEL}"]\nefforts = ["low", "high"]\neffort = "low"\n'
    told = ask(fake, "" if default else efforts)
    assert 1 == told.code
    assert ("none is declared, none is sent" if default else "low") == told.rows["effort"]
    assert told.verdict.startswith('Set dialect = "responses" for this provider or model')


def test_p_22_the_same_model_answers_as_responses(ask: Ask) -> None:
    efforts = f'[inferencers.up.models."{MODEL}"]\nefforts = ["low", "high"]\neffort = "low"\n'
    fake = ResponsesFake([CALLED])
    told = ask(fake, SPOKEN["responses"] + efforts)
    assert (0, "low") == (told.code, told.rows["effort"])
    assert b'"reasoning":{"effort":"low"}' in fake.requests[0].body


def test_an_effort_outside_the_list_is_refused_with_the_list(ask: Ask) -> None:
    fake = CompatibleFake([CALLED])
    own = f'[inferencers.up.models."{MODEL}"]\nefforts = ["low", "high"]\neffort = "max"\n'
    told = ask(fake, own)
    assert (78, []) == (told.code, fake.requests)
    assert "effort 'max' is not among its efforts ['low', 'high']" in told.err


def test_another_name_of_the_output_cap_is_advised(ask: Ask) -> None:
    told = ask(CompatibleFake([CALLED], cap_field="max_completion_tokens"))
    assert 'set output_field = "max_completion_tokens"' in told.verdict
    fake = CompatibleFake([CALLED], cap_field="max_completion_tokens")
    assert 0 == ask(fake, 'output_field = "max_completion_tokens"\n').code


def test_a_setting_without_words_in_the_dialect_is_named(ask: Ask) -> None:
    table = (
        'provider = "anthropic"\nanthropic_version = "2026-10-21"\n'
        f'[inferencers.up.models."{MODEL}"]\ntemperature = 0.5\n'
    )
    told = ask(AnthropicFake([CALLED]), table)
    assert 1 == told.code
    assert "'temperature'" in told.rows["refused"]


def test_an_unknown_model_is_told(ask: Ask) -> None:
    told = ask(CompatibleFake([CALLED], models=["other"]))
    assert told.verdict.startswith("The server does not have this model")
    told = ask(OllamaFake([CALLED], models=["other"]), SPOKEN["ollama"])
    assert told.verdict.startswith("Fetch it with 'ollama pull'")


def test_an_unknown_provider_is_a_line(ask: Ask) -> None:
    told = ask(CompatibleFake([]), model="upp/m")
    assert (1, "") == (told.code, told.out)
    assert "Did you mean 'up'?" in told.err


def test_a_redirect_is_not_followed_and_shows_its_place(ask: Ask) -> None:
    told = ask(answering(b"", status=308, location="https://other.example/v1/chat"))
    assert 1 == told.code
    assert "https://other.example/v1/chat" in told.rows["refused"]
    assert told.verdict.startswith("If the key may go there, set base_url")


def test_a_server_that_is_not_there_is_told(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_in_thread(CompatibleFake([])) as upstream:
        gone = upstream.url
    (tmp_path / "inferencers.toml").write_text(f'[inferencers.up]\nbase_url = "{gone}"\n')
    assert 1 == run(["models", "test", "up/m"])
    rows = _rows(capsys.readouterr().out)
    assert "cannot be reached" in rows["refused"]
    assert f"Is the server running, and is base_url right? It is '{gone}'." == rows["verdict"]


def test_a_server_that_is_slow_is_told_apart_from_one_that_is_not_there(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WOOLLAMA_TIMEOUTS__FIRST_BYTE", "0.05")

    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    told = ask(script)
    assert "(timeout, 504)" in told.rows["refused"]
    assert told.verdict.startswith("The server is there and slow")


@pytest.mark.parametrize(
    ("status", "begin"),
    [(503, "The configuration may be right"), (400, "The server's own words say why.")],
)
def test_other_refusals_are_left_to_the_servers_words(status: int, begin: str, ask: Ask) -> None:
    told = ask(answering(b'{"error":{"message":"no, not now"}}', status=status))
    assert told.rows["refused"].startswith("no, not now (")
    assert told.verdict.startswith(begin)


def test_a_key_that_the_server_repeats_is_not_shown(ask: Ask) -> None:
    body = f'{{"error":{{"message":"bad key {SECRET}","code":"invalid_api_key"}}}}'.encode()
    told = ask(answering(body, status=401))
    assert told.rows["refused"].startswith("bad key *** (")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RequestError("no", param="seed"), "Take 'seed' out of the configuration"),
        (RequestError("no"), "Its own words say why."),
        (None, "Nothing came back."),
    ],
)
def test_there_is_always_a_verdict(error: RequestError | None, said: str) -> None:
    target = Target(Provider("up", "http://up.test/v1"), "m")
    assert advice(Finding(target=target, seconds=0.1, error=error)).startswith(said)


def test_a_narrow_terminal_is_filled_and_not_overrun(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    told = ask(CompatibleFake([CALLED]))
    assert max(map(len, told.out.splitlines())) <= 50


def test_the_arguments_are_checked(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["models", "test"], ["models", "test", "a", "b"]):
        assert 2 == run(arguments)
    assert "Usage: " in capsys.readouterr().err
