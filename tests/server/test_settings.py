"""Settings from file, environment, ``.env`` and flags: server/settings.py and what it stands on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from woollama.core.errors import ConfigError
from woollama.core.retries import Retries
from woollama.core.transport import Timeouts
from woollama.server.environment import literal, parse_env, read_environment
from woollama.server.sections import RetrySettings, TimeoutSettings
from woollama.server.settings import Settings, check_settings, load_settings

Load = Callable[..., Settings]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"WOOLLAMA_CONFIG_DIR": str(tmp_path)}


def wrong(environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> list[str]:
    settings, problems = check_settings(environ, flags or {})
    assert settings is None
    return [str(problem) for problem in problems]


def write(home: Mapping[str, str], name: str, text: str) -> str:
    path = Path(home["WOOLLAMA_CONFIG_DIR"]) / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_without_any_file_the_defaults_hold(home: dict[str, str]) -> None:
    settings = load_settings(home)
    assert "127.0.0.1:9665" == settings.server.address
    assert 9665 == settings.server.listen.port
    assert 32 * 1024 * 1024 == settings.server.body_limit_bytes
    assert Timeouts() == settings.timeouts
    assert Retries(attempts=1) == settings.retries
    assert "reasoning_content" == settings.reasoning.alias
    assert ("local",) == settings.plugins.enabled
    assert settings.default_model is None
    assert settings.token is None
    assert Path(home["WOOLLAMA_CONFIG_DIR"]) == settings.config_dir


def test_every_section_of_the_file_is_read(home: dict[str, str]) -> None:
    write(
        home,
        "woollama.toml",
        """
        default_model = "ollama/qwen3"
        instance_id = "desk-1"
        [server]
        address = "[::1]:9000"
        uds = false
        hosts = ["llm.lan"]
        origins = ["https://app.example", "http://localhost:5173"]
        body_limit_bytes = 1000
        kind = "uvicorn"
        log_format = "json"
        log_level = "debug"
        log_bodies = true
        drain_timeout_s = 1.5
        [timeouts]
        connect = 1
        whole = 0
        between = 0
        [retries]
        attempts = 3
        [reasoning]
        alias = "reasoning"
        [discovery]
        ttl_s = 5
        [plugins]
        enabled = ["local", "acme"]
        [plugins.acme]
        key = "value"
        [plugins.acme.more]
        deep = 1
        """,
    )
    settings = load_settings(home)
    assert ("::1", 9000) == (settings.server.listen.host, settings.server.listen.port)
    assert settings.server.uds is False
    assert ("llm.lan",) == settings.server.hosts
    assert ("https://app.example", "http://localhost:5173") == settings.server.origins
    assert "uvicorn" == settings.server.kind
    assert ("json", "debug", True) == (
        settings.server.log_format,
        settings.server.log_level,
        settings.server.log_bodies,
    )
    assert Timeouts(connect=1.0, whole=None, between=None) == settings.timeouts
    assert 3 == settings.retries.attempts
    assert "reasoning" == settings.reasoning.alias
    assert 5 == settings.discovery.ttl_s
    assert {"acme": {"key": "value", "more": {"deep": 1}}} == settings.plugins.tables
    assert ("ollama/qwen3", "desk-1") == (settings.default_model, settings.instance_id)


def test_ru_3_a_flag_beats_a_variable_beats_the_file_beats_the_default(
    home: dict[str, str],
) -> None:
    assert "info" == load_settings(home).server.log_level
    write(home, "woollama.toml", '[server]\nlog_level = "error"\n')
    assert "error" == load_settings(home).server.log_level
    home["WOOLLAMA_SERVER__LOG_LEVEL"] = "debug"
    assert "debug" == load_settings(home).server.log_level
    assert "warning" == load_settings(home, {"server.log_level": "warning"}).server.log_level
    assert "debug" == load_settings(home, {"server.log_level": None}).server.log_level


def test_ru_3_every_key_has_a_variable(home: dict[str, str]) -> None:
    home |= {
        "WOOLLAMA_DEFAULT_MODEL": "openai/x",
        "WOOLLAMA_INSTANCE_ID": "a",
        "WOOLLAMA_SERVER__UDS": "off",
        "WOOLLAMA_SERVER__HOSTS": "a.lan, b.lan",
        "WOOLLAMA_SERVER__BODY_LIMIT_BYTES": "7",
        "WOOLLAMA_SERVER__LOG_BODIES": "yes",
        "WOOLLAMA_SERVER__KIND": "",
        "WOOLLAMA_TIMEOUTS__CONNECT": "2.5",
        "WOOLLAMA_TIMEOUTS__WHOLE": "0",
        "WOOLLAMA_RETRIES__ATTEMPTS": "2",
        "WOOLLAMA_DISCOVERY__TTL_S": "0",
        "WOOLLAMA_PLUGINS__ENABLED": "local,my-plugin",
        "WOOLLAMA_PLUGINS__MY_PLUGIN__SIZE": "3",
        "WOOLLAMA_PLUGINS__MY_PLUGIN__SUB__NAME": "plain text",
    }
    settings = load_settings(home)
    assert ("openai/x", "a") == (settings.default_model, settings.instance_id)
    assert settings.server.uds is False
    assert ("a.lan", "b.lan") == settings.server.hosts
    assert 7 == settings.server.body_limit_bytes
    assert settings.server.log_bodies is True
    assert "hypercorn" == settings.server.kind, "an empty variable counts as unset"
    assert Timeouts(connect=2.5) == settings.timeouts
    assert 2 == settings.retries.attempts
    assert 0 == settings.discovery.ttl_s
    assert ("local", "my-plugin") == settings.plugins.enabled
    assert {"my-plugin": {"size": 3, "sub": {"name": "plain text"}}} == settings.plugins.tables


def test_hosts_are_names_and_addresses(home: dict[str, str]) -> None:
    home["WOOLLAMA_SERVER__HOSTS"] = "Box.lan,a-b_c,10.0.0.1,::1,fe80::2"
    assert 5 == len(load_settings(home).server.hosts)


def test_the_socket_is_a_switch_or_a_path(home: dict[str, str]) -> None:
    assert load_settings(home).server.uds is True
    home["WOOLLAMA_SERVER__UDS"] = "/run/here.sock"
    assert "/run/here.sock" == load_settings(home).server.uds
    home["WOOLLAMA_SERVER__UDS"] = "true"
    assert load_settings(home).server.uds is True


def test_the_address_has_a_variable_of_its_own_and_parts_as_flags(home: dict[str, str]) -> None:
    home["WOOLLAMA_ADDRESS"] = "0.0.0.0:8000"
    assert "0.0.0.0:8000" == load_settings(home).server.address
    assert "0.0.0.0:0" == load_settings(home, {"server.port": 0}).server.address
    assert "[::1]:8000" == load_settings(home, {"server.host": "::1"}).server.address
    assert "localhost:1" == load_settings(home, {"server.address": "localhost:1"}).server.address


def test_two_variables_for_one_key_must_agree(home: dict[str, str]) -> None:
    home |= {"WOOLLAMA_ADDRESS": "1", "WOOLLAMA_SERVER__ADDRESS": "1"}
    assert "127.0.0.1:1" == load_settings(home).server.address
    home["WOOLLAMA_ADDRESS"] = "2"
    expected = "WOOLLAMA_SERVER__ADDRESS say different things; unset one"
    assert [f"environment: WOOLLAMA_ADDRESS: and {expected}"] == wrong(home)


def test_the_token_comes_from_the_environment_and_is_not_shown(home: dict[str, str]) -> None:
    home["WOOLLAMA_TOKEN"] = " s3cret\n"
    settings = load_settings(home)
    assert "s3cret" == settings.token
    assert "s3cret" not in repr(settings)
    assert load_settings({**home, "WOOLLAMA_TOKEN": "  "}).token is None
    problems = wrong({**home, "WOOLLAMA_TOKEN": "schlüssel"})
    assert 1 == len(problems)
    assert "schlüssel" not in problems[0]
    assert problems[0].startswith("environment: WOOLLAMA_TOKEN: must be of visible ASCII")


def test_all_problems_are_told_at_once_with_file_and_place(home: dict[str, str]) -> None:
    file = write(
        home,
        "woollama.toml",
        """
        defualt_model = "x"
        [server]
        adress = "x"
        origins = ["app.example"]
        log_format = "xml"
        [timeouts]
        connect = -1
        [retries]
        attempts = 0
        [reasoning]
        alias = 3
        [nothing]
        """,
    )
    home |= {
        "WOOLLAMA_SERVER__PORT": "1",
        "WOOLLAMA_SERVRE__ADDRESS": "1",
        "WOOLLAMA_DISCOVERY__TTL_S": "soon",
        "WOOLLAMA_SERVER__HOSTS": "http://x",
        "WOOLLAMA_PLUGINS__ACME": "1",
    }
    problems = wrong(home, {"server.kind": "apache", "server.bogus": 1})
    starts = [
        f"{file}: defualt_model: unknown key; did you mean 'default_model'?",
        f"{file}: nothing: unknown table; known are discovery",
        f"{file}: server.adress: unknown key; did you mean 'address'?",
        f"{file}: server.log_format: must be 'text' or 'json', not 'xml'",
        f"{file}: timeouts.connect: expected `float` >= 0",
        f"{file}: retries.attempts: expected `int` >= 1",
        f"{file}: reasoning.alias: expected `str`, got `int`",
        "environment: WOOLLAMA_DISCOVERY__TTL_S: expected `float`",
        "environment: WOOLLAMA_PLUGINS__ACME: must name a key",
        "environment: WOOLLAMA_SERVER__PORT: section 'server' has no key 'port'",
        "environment: WOOLLAMA_SERVRE__ADDRESS: there is no section 'servre'; did you",
        "command line: server.kind: must be 'hypercorn' or 'uvicorn', not 'apache'",
        "command line: server.bogus: section 'server' has no key 'bogus'",
        "environment: WOOLLAMA_SERVER__HOSTS: 'http://x' is no host name",
    ]
    assert len(starts) == len(problems), "\n".join(problems)
    missing = [start for start in starts if not any(line.startswith(start) for line in problems)]
    assert [] == missing, "\n".join(problems)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[server]\naddress = 'nowhere:http'\n", "server.address: 'nowhere:http' has no port"),
        ("[server]\norigins = ['https://a.example/']\n", "server.origins: 'https://a.example/'"),
        ("[server]\nhosts = ['a.lan:80']\n", "server.hosts: 'a.lan:80' is no host name"),
        ("[server]\nhosts = ['*.lan']\n", "server.hosts: '*.lan' is no host name"),
        ("[plugins]\nenabled = ['local', 'local']\n", "plugins.enabled: names 'local' twice"),
        ("instance_id = 'a b'\n", "instance_id: expected `str` matching regex"),
        ("server = 1\n", "server: must be a table, not a number"),
        ("[server\n", "is not valid TOML"),
        ("default_model = '${NO_SUCH}'\n", "unset variables: NO_SUCH"),
    ],
)
def test_a_wrong_value_is_named_by_its_place(
    home: dict[str, str], text: str, expected: str
) -> None:
    file = write(home, "woollama.toml", text)
    problems = wrong(home)
    assert 1 == len(problems)
    assert problems[0].startswith(f"{file}: {expected}"), problems[0]


def test_a_flag_can_break_the_address(home: dict[str, str]) -> None:
    assert [
        "command line: server.address: '127.0.0.1:70000' has no port from 0 to 65535; write "
    ] == [line.partition("HOST")[0] for line in wrong(home, {"server.port": 70000})]


def test_load_settings_raises_the_whole_report(home: dict[str, str]) -> None:
    write(home, "woollama.toml", "one = 1\ntwo = 2\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(home)
    assert 2 == len(caught.value.message.splitlines())


def test_variables_in_the_file_are_expanded_with_the_env_file_below_the_environment(
    home: dict[str, str],
) -> None:
    write(home, "woollama.toml", 'default_model = "${WHO}/${WHAT}"\n')
    write(home, ".env", "WHO=file\nWHAT='x y'\nWOOLLAMA_TOKEN=\"a b\"\n")
    home["WHO"] = "environment"
    settings = load_settings(home)
    assert "environment/x y" == settings.default_model
    assert "a b" == settings.token
    assert "file" == read_environment({"WOOLLAMA_CONFIG_DIR": home["WOOLLAMA_CONFIG_DIR"]})["WHO"]


def test_the_env_file_cannot_move_the_configuration(home: dict[str, str]) -> None:
    write(home, ".env", "WOOLLAMA_CONFIG_DIR=/elsewhere\nXDG_CONFIG_HOME=/elsewhere\n")
    assert home == read_environment(home)


def test_p_6_nothing_under_the_working_directory_is_read(
    home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / ".env").write_text("WOOLLAMA_TOKEN=planted\n")
    (folder / "woollama.toml").write_text("default_model = 'planted/x'\n")
    monkeypatch.chdir(folder)
    assert (None, None) == (load_settings(home).token, load_settings(home).default_model)


def test_the_env_file_is_read_line_by_line() -> None:
    text = (
        "# a comment\n\n"
        "export ONE=1\n"
        "TWO = two words  # and a comment\n"
        "THREE='it is # \"this\"'\n"
        'FOUR="a\\nb\\"c\\\\" # said\n'
        "FIVE=\n"
        "SIX=$ONE${TWO}\n"
    )
    expected = {
        "ONE": "1",
        "TWO": "two words",
        "THREE": 'it is # "this"',
        "FOUR": 'a\nb"c\\',
        "FIVE": "",
        "SIX": "$ONE${TWO}",
    }
    assert (expected, []) == parse_env(text, file=".env")


@pytest.mark.parametrize(
    "line",
    [
        "no assignment",
        "1A=x",
        "A=b#c",
        "A='open",
        'A="open',
        "A='x' y",
        'A="bad \\q"',
        "A=it's",
    ],
)
def test_a_line_of_the_env_file_that_is_not_understood_is_refused_without_its_value(
    line: str,
) -> None:
    given, problems = parse_env(f"B=1\n{line}\n", file=".env")
    assert {"B": "1"} == given
    assert 1 == len(problems)
    assert str(problems[0]).startswith(".env: line 2: ")
    assert line not in str(problems[0])


def test_a_name_that_is_set_twice_in_the_env_file_is_refused() -> None:
    assert "A is set twice; remove one" == parse_env("A=1\nA=2\n", file="x")[1][0].message


def test_a_broken_env_file_is_one_problem_beside_the_others(home: dict[str, str]) -> None:
    env = write(home, ".env", "WHO=me\nwhat is this\n")
    file = write(home, "woollama.toml", 'default_model = "${WHO}"\nextra = 1\n')
    problems = wrong(home)
    assert f"{env}: line 2: must be NAME=value" == problems[0]
    assert problems[1].startswith(f"{file}: extra: unknown key")
    with pytest.raises(ConfigError, match="line 2"):
        read_environment(home)


def test_an_env_file_that_cannot_be_read_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert 1 == len(wrong(home))
    (tmp_path / ".env").rmdir()
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    assert [f"{tmp_path}/.env: cannot be read: it is not UTF-8"] == wrong(home)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"quoted"', "quoted"),
        ("plain", "plain"),
        ("a\nb = 1", "a\nb = 1"),
        ("1\nb = 2", "1\nb = 2"),
    ],
)
def test_a_plugins_variable_is_a_toml_value_or_text(text: str, expected: object) -> None:
    assert expected == literal(text)


def test_a_plugins_variable_cannot_go_below_a_value(home: dict[str, str]) -> None:
    home |= {"WOOLLAMA_PLUGINS__ACME__KEY": "1", "WOOLLAMA_PLUGINS__ACME__KEY__SUB": "1"}
    assert ["environment: WOOLLAMA_PLUGINS__ACME__KEY__SUB: 'key' is not a table"] == wrong(home)


@pytest.mark.parametrize(("ours", "core"), [(TimeoutSettings, Timeouts), (RetrySettings, Retries)])
def test_a_section_that_mirrors_the_core_has_its_fields(
    ours: type[msgspec.Struct], core: type[msgspec.Struct]
) -> None:
    names = [{field.name for field in msgspec.structs.fields(struct)} for struct in (core, ours)]
    assert names[0] == names[1]
