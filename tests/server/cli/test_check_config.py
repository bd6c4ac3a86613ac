"""``woollama check-config``: everything that is wrong at once, and nothing is connected to."""

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from tests.server.cli.shell import Ended, Shell
from woollama.server.cli.checking import FILES
from woollama.server.cli.commands import run

Check = Callable[..., Ended]
INFERENCERS = """
[inferencers.work]
base_url = "http://127.0.0.1:1/v1"
discover = true
api_key_env = "WORK_KEY"

[inferencers.work.models.big]
context = 32000
efforts = ["low", "high"]

[inferencers.second]
base_url = "http://127.0.0.1:1/v1"
dialect = "responses"
"""
RECIPES = """
[recipes.helper]
inferencer = "work/big"
tools = ["calc.calculate"]
"""
MCP = '{"mcpServers": {"calc": {"command": "calc"}, "far": {"url": "https://far.example/mcp"}}}'
# Runs the command under a hook that sees every socket, every look-up and every child.
WATCHED = """
import sys
seen = []
ACTS = ("socket.", "subprocess.", "os.fork", "os.posix_spawn", "os.exec", "os.system", "ftplib.")

def hook(event, args):
    if event.startswith(ACTS):
        seen.append(event)

sys.addaudithook(hook)
from woollama.server.cli.checking import FILES
from woollama.server.cli.commands import run
code = run(["check-config"])
print("acts", *seen, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def check(
    shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Check:
    """Checks a configuration of these files."""
    for name in ("WOOLLAMA_CONFIG_DIR", "WOOLLAMA_OLLAMA_URL"):
        monkeypatch.setenv(name, shell.environ[name])

    def check(files: Mapping[str, str]) -> Ended:
        for name, text in files.items():
            shell.write(name, text)
        code = run(["check-config"])
        printed = capsys.readouterr()
        return Ended(code, printed.out.replace(f"{shell.config}/", ""), printed.err)

    return check


def problems(done: Ended) -> list[str]:
    """The lines, when they are all that there is."""
    lines = done.out.splitlines()
    assert 1 == done.code, done.out
    plural = "" if len(lines) == 1 else "s"
    assert done.err.startswith(f"{len(lines)} problem{plural} in "), done.err
    return lines


# Nothing wrong


def test_no_files_are_nothing_wrong(check: Check, shell: Shell) -> None:
    done = check({})
    expected = f"{shell.config}: no files, the defaults hold: nothing wrong.\n"
    assert (0, expected, "") == done


def test_ru_4_it_shows_kind_dialect_context_efforts_and_key(
    check: Check, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK_KEY", "sk-hidden")
    done = check({"inferencers.toml": INFERENCERS, "recipes.toml": RECIPES, "mcp.json": MCP})
    assert (0, "") == (done.code, done.err)
    *table, blank, last = done.out.splitlines()
    assert [
        "PROVIDER  KIND    DIALECT     CONTEXT  EFFORTS    KEY",
        "work      openai  compatible                      WORK_KEY (set)",
        "work/big          compatible  32,000   low, high",
        "second    openai  responses                       none",
    ] == table
    assert "" == blank
    assert f"{shell.config}: inferencers.toml, recipes.toml, mcp.json: nothing wrong." == last
    assert "sk-hidden" not in done.out


def test_it_opens_no_socket_and_starts_nothing(shell: Shell) -> None:
    shell.write("inferencers.toml", INFERENCERS)
    shell.write("recipes.toml", RECIPES)
    shell.write("mcp.json", MCP)
    shell.write("woollama.toml", 'default_model = "work/big"\n[plugins]\nenabled = ["local"]\n')
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        capture_output=True,
        text=True,
        env=shell.environ,
        timeout=60,
        check=False,
    )
    assert (0, "acts\n") == (done.returncode, done.stderr)


def test_p_6_it_reads_nothing_in_the_working_directory(shell: Shell) -> None:
    for name in ("woollama.toml", "inferencers.toml", "recipes.toml", "mcp.json", ".env"):
        (shell.home / name).write_text("this is no configuration")
    done = shell.run("check-config")
    assert (0, "") == (done.code, done.err)
    assert "no files, the defaults hold: nothing wrong." in done.out


# One fault in one file


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("inferencers.toml", "[inferencers", "inferencers.toml: is not valid TOML: "),
        (
            "inferencers.toml",
            '[inferencers.a]\nbase_url = "http://a/v1"\n[inferencers.a]\n',
            "inferencers.toml: is not valid TOML: Cannot declare ('inferencers', 'a') twice "
            "(at line 3, column 15)",
        ),
        (
            "inferencers.toml",
            '[inferencers.a]\nbase_url = "http://a/v1"\ndiscovr = true\n',
            "inferencers.toml: inferencers.a.discovr: unknown key; did you mean 'discover'?",
        ),
        (
            "inferencers.toml",
            '[inferencers.a]\nbase_url = "http://${HOST_OF_A}/v1"\n',
            "inferencers.toml: unset variables: HOST_OF_A; set each, or write ${NAME:-default}",
        ),
        ("inferencers.toml", "[a]\nb = 1\n", "inferencers.toml: a: unknown table; providers are"),
        (
            "inferencers.toml",
            '[inferencers.a]\nbase_url = "nowhere"\n',
            "inferencers.toml: inferencers.a: ",
        ),
        ("woollama.toml", "[server]\nport = 1\n", "woollama.toml: server.port: unknown key"),
        (
            "woollama.toml",
            "[servr]\n",
            "woollama.toml: servr: unknown table; did you mean 'server'?",
        ),
        (
            "woollama.toml",
            'default_model = "${MY_MODEL}"\n',
            "woollama.toml: unset variables: MY_MODEL; set each",
        ),
        (
            "woollama.toml",
            'default_model = "nobody/m"\n',
            "woollama.toml: default_model: there is no provider 'nobody'; known are anthropic,",
        ),
        (
            "woollama.toml",
            '[plugins]\nenabled = ["ghost"]\n',
            "woollama.toml: plugins.enabled: there is no plugin 'ghost': install it, or remove it",
        ),
        (
            "woollama.toml",
            "[plugins.ghost]\nx = 1\n",
            "woollama.toml: plugins.ghost: is a section of a plugin that is not enabled: add",
        ),
        (
            "recipes.toml",
            '[recipes.r]\ninferencer = "ollamma/m"\n',
            "recipes.toml: recipes.r.inferencer: there is no provider 'ollamma'; did you mean "
            "'ollama'?",
        ),
        (
            "recipes.toml",
            '[recipes.r]\nmodel = "nobody/m"\n',
            "recipes.toml: recipes.r.model: there is no provider 'nobody'; known are",
        ),
        (
            "recipes.toml",
            '[recipes.r]\ntools = ["ghost.look"]\n',
            "recipes.toml: recipes.r.tools: 'ghost.look': there is no server 'ghost'; known are",
        ),
        (
            "recipes.toml",
            '[recipes.r]\ntools = ["look"]\n',
            "recipes.toml: recipes.r.tools: 'look': is no tool: write server.tool; known are",
        ),
        ("recipes.toml", "[recipes.r]\nsytem = 1\n", "recipes.toml: recipes.r.sytem: unknown key"),
        (
            "recipes.toml",
            '[patterns]\ndefault_inferencer = "nobody/m"\n',
            "recipes.toml: patterns.default_inferencer: there is no provider 'nobody'",
        ),
        ("mcp.json", "{", "mcp.json: is not valid JSON: "),
        ("mcp.json", '{"mcpServer": {}}', "mcp.json: mcpServer: unknown key; did you mean"),
        (
            "mcp.json",
            '{"mcpServers": {"a": {"comand": "x"}}}',
            "mcp.json: mcpServers.a.comand: unknown key; did you mean 'command'?",
        ),
        (
            "mcp.json",
            '{"mcpServers": {"a": {"url": "https://${HOST_OF_A}"}}}',
            "mcp.json: mcpServers.a: unset variables: HOST_OF_A; set each",
        ),
        (".env", "NAME: value\n", ".env: line 1: must be NAME=value"),
        (".env", "A=1\nA=2\n", ".env: line 2: A is set twice; remove one"),
    ],
)
def test_one_fault_is_one_line_with_file_place_and_advice(
    name: str, text: str, expected: str, check: Check
) -> None:
    (line,) = problems(check({name: text}))
    assert line.startswith(expected)


def test_a_file_that_is_no_text_is_named(shell: Shell, check: Check) -> None:
    (shell.config / "recipes.toml").write_bytes(b"\xff\xfe[recipes]")
    (line,) = problems(check({}))
    assert line.startswith("recipes.toml: cannot be read: ")


def test_a_variable_of_the_environment_is_checked_too(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WOOLLAMA_SERVER__LOGLEVEL", "debug")
    monkeypatch.setenv("WOOLLAMA_DEFAULT_MODEL", "nobody/m")
    first, second = sorted(problems(check({})))
    assert first.startswith("environment: WOOLLAMA_DEFAULT_MODEL: there is no provider 'nobody'")
    assert second.startswith("environment: WOOLLAMA_SERVER__LOGLEVEL: ")


# Many faults


def test_everything_in_every_file_is_told_at_once(check: Check) -> None:
    files = {
        "woollama.toml": (
            'default_model = "nobody/m"\n[timeout]\n[server]\nadress = 1\n[plugins]\n'
            'enabled = ["local", "ghost"]\n[plugins.other]\n'
        ),
        "inferencers.toml": (
            '[inferencers.a]\nbase_url = "http://${UNSET_A}:${UNSET_B}/v1"\ndiscovr = true\n'
            '[inferencers.b]\nbase_url = "http://b/v1"\nprovider = "anthropic"\ndialect = "x"\n'
            "[inferencers.c]\ndiscover = true\n"
        ),
        "recipes.toml": (
            '[recipes.r]\nsytem = "x"\ninferencer = "none/m"\ntools = ["ghost.look"]\n'
            '[recipes.s]\ninferencer = "a/m"\n'
        ),
        "mcp.json": '{"mcpServers": {"m": {"comand": "x"}, "n": {"url": "${UNSET_C}"}}}',
        ".env": "no assignment\nA=1\nA=2\n",
    }
    expected = [
        ".env: line 1: must be",
        ".env: line 3: A is set twice",
        "inferencers.toml: inferencers.a.discovr: unknown key",
        "inferencers.toml: inferencers.b.dialect: a provider of kind 'anthropic'",
        "inferencers.toml: inferencers.c: needs the key 'base_url'",
        "inferencers.toml: unset variables: UNSET_A, UNSET_B",
        "mcp.json: mcpServers.m.comand: unknown key",
        "mcp.json: mcpServers.n: unset variables: UNSET_C",
        "recipes.toml: recipes.r.inferencer: there is no provider 'none'",
        "recipes.toml: recipes.r.sytem: unknown key",
        "recipes.toml: recipes.r.tools: 'ghost.look'",
        "woollama.toml: default_model: there is no provider 'nobody'",
        "woollama.toml: plugins.enabled: there is no plugin 'ghost'",
        "woollama.toml: plugins.other: is a section of a plugin",
        "woollama.toml: server.adress: unknown key",
        "woollama.toml: timeout: unknown table",
    ]
    told = problems(check(files))
    files_told = [line.partition(":")[0] for line in told]
    assert [name for name in FILES for _ in range(files_told.count(name))] == files_told
    lines = sorted(told)
    assert len(expected) == len(lines), "\n".join(lines)
    for start, line in zip(expected, lines, strict=True):
        assert line.startswith(start)


def test_every_broken_file_is_named_and_nothing_that_only_follows_from_it(check: Check) -> None:
    files = {
        "inferencers.toml": "[",
        "recipes.toml": '[recipes.r]\ninferencer = "work/m"\ntools = ["calc.sum"]\n',
        "mcp.json": "{",
        "woollama.toml": 'default_model = "work/m"\n',
    }
    first, second = sorted(problems(check(files)))
    assert first.startswith("inferencers.toml: is not valid TOML")
    assert second.startswith("mcp.json: is not valid JSON")


def test_a_provider_whose_table_is_wrong_is_still_a_provider(check: Check) -> None:
    files = {
        "inferencers.toml": '[inferencers.work]\nbase_url = "http://w/v1"\ndiscovr = 1\n',
        "recipes.toml": RECIPES,
        "mcp.json": '{"mcpServers": {"calc": {"comand": "calc"}}}',
    }
    first, second = sorted(problems(check(files)))
    assert first.startswith("inferencers.toml: inferencers.work.discovr")
    assert second.startswith("mcp.json: mcpServers.calc.comand")


def test_a_person_sees_them_under_their_files_and_broken_between_words(shell: Shell) -> None:
    shell.write("recipes.toml", '[recipes.r]\ninferencer = "nobody/m"\n')
    shell.write("mcp.json", "{")
    shell.write("woollama.toml", "[timeout]\n")
    with shell.terminal("check-config", NO_COLOR="1") as terminal:
        assert 1 == terminal.end()
    lines = terminal.seen.splitlines()
    assert "  timeout: unknown table; did you mean 'timeouts'?" == lines[1]
    names = [str(shell.config / name) for name in ("woollama.toml", "recipes.toml", "mcp.json")]
    assert names == [line for line in lines if line in names]
    assert terminal.seen.replace("\n", " ").endswith(f" 3 problems in {shell.config}. ")
    assert [] == [line for line in lines if line.startswith(" ") and len(line) > 80]


# Warnings


def test_what_is_perhaps_not_meant_is_a_warning_and_nothing_wrong(check: Check) -> None:
    files = {
        "recipes.toml": '[patterns]\ndir = "/no/such/folder"\n',
        "mcp.json": '{"mcpServers": {"a": {"command": "a", "env": {"KEY": ""}}}}',
    }
    done = check(files)
    *warnings, last = done.out.splitlines()
    assert (0, "") == (done.code, done.err)
    assert [
        "warning: mcp.json: mcpServers.a.env.KEY: is empty",
        "warning: recipes.toml: patterns.dir: there is no folder '/no/such/folder'",
    ] == sorted(warnings)
    assert last.endswith("nothing wrong.")


def test_a_name_in_a_file_does_not_move_the_cursor(check: Check) -> None:
    (line,) = problems(check({"woollama.toml": '"\\u001b[31mkey" = 1\n'}))
    assert line.startswith("woollama.toml: ␛[31mkey: unknown key")
