"""``woollama ask`` in every dialect: efforts, advice, thinking apart from the answer."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.wire.peers import EFFORT_WORDS, EFFORTS
from woollama.core.testing.fake import Fake, say
from woollama.core.testing.fakes import CompatibleFake
from woollama.core.testing.kits import KITS
from woollama.core.testing.upstream import serve_in_thread
from woollama.core.wire import DIALECTS
from woollama.server.cli.commands import run

TOOLS = '[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]'
EFFORTS_OF_M = '[inferencers.up.models.m]\nefforts = ["low", "high"]\n'
every_dialect = pytest.mark.parametrize("dialect", sorted(DIALECTS))
either_way = pytest.mark.parametrize("flags", [(), ("--no-stream",)], ids=["stream", "whole"])

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Asks ``up/m``, which the fake is, and gives the exit code, the answer and the rest."""
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("UP_KEY", "sk-of-the-test")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    def ask(dialect: str, fake: Fake, *arguments: str, table: str = "") -> tuple[int, str, str]:
        family = DIALECTS[dialect].family
        spoken = f'dialect = "{dialect}"' if family == "openai" else f'provider = "{family}"'
        with serve_in_thread(fake) as upstream:
            head = f'[inferencers.up]\nbase_url = "{upstream.url}"\napi_key_env = "UP_KEY"\n'
            (tmp_path / "inferencers.toml").write_text(f"{head}{spoken}\n{table}")
            code = run(["ask", "-m", "up/m", *arguments, "hi"])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ask


@every_dialect
@either_way
def test_an_answer_is_printed_and_its_thinking_is_not(
    dialect: str, flags: tuple[str, ...], ask: Ask
) -> None:
    fake = KITS[dialect].fake([say("It is warm.", reasoning="Let me look.")])
    assert (0, "It is warm.\n", "") == ask(dialect, fake, *flags)


@every_dialect
def test_a_13_an_effort_of_the_list_is_sent(dialect: str, ask: Ask) -> None:
    fake = KITS[dialect].fake([say("ok")])
    code, out, _ = ask(dialect, fake, "-o", "reasoning_effort=high", table=EFFORTS_OF_M)
    assert (0, "ok\n") == (code, out)
    assert EFFORTS[dialect].items() <= json.loads(fake.requests[0].body).items()


@every_dialect
def test_a_13_none_declared_and_none_asked_is_none_sent(dialect: str, ask: Ask) -> None:
    fake = KITS[dialect].fake([say("ok")])
    assert 0 == ask(dialect, fake)[0]
    assert EFFORT_WORDS.isdisjoint(json.loads(fake.requests[0].body))


@every_dialect
def test_ru_17_an_effort_outside_the_list_is_refused_with_the_list(dialect: str, ask: Ask) -> None:
    fake = KITS[dialect].fake([])
    code, out, err = ask(dialect, fake, "-o", "reasoning_effort=max", table=EFFORTS_OF_M)
    assert (1, "", []) == (code, out, fake.requests)
    assert "woollama: up/m takes the efforts low, high, not 'max'." == err.strip()


@either_way
def test_p_22_advice_follows_the_refusal(flags: tuple[str, ...], ask: Ask) -> None:
    fake = CompatibleFake([], effort_beside_tools="refuse")
    options = ("-o", f"tools={TOOLS}", "-o", "reasoning_effort=high")
    code, out, err = ask("compatible", fake, *options, *flags)
    assert (1, "") == (code, out)
    assert "are not supported" in err
    assert 'Set dialect = "responses" for this provider or model' in err
    assert "Traceback" not in err


def test_bytes_that_are_no_text_are_refused_in_a_line(ask: Ask) -> None:
    fake = CompatibleFake([])
    # What a shell hands on of the byte 0xff.
    code, out, err = ask("compatible", fake, "-s", "\udcff")
    assert (1, "", []) == (code, out, fake.requests)
    assert (
        "half of a character, which cannot be sent. It comes from bytes that were not UTF-8" in err
    )
