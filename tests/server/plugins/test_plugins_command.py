"""``woollama plugins``: what is installed, enabled, contributed, and what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.plugins.parts import Strict, backend_of, installed, plugin, provider_of
from woollama.core.errors import ConfigError, RequestError
from woollama.server.cli import plugins as command
from woollama.server.plugins.contract import Secret
from woollama.server.plugins.installed import Installed

ACME = plugin(
    "acme",
    summary="Patterns of acme.",
    requires=("base",),
    config_type=Strict,
    secrets={"key": Secret(env="ACME_KEY", required=True)},
    providers=provider_of("acme-models"),
    pattern_backends=backend_of("acme"),
)


def trap() -> object:
    raise AssertionError("imported although it is not enabled")


INSTALLED = {
    **installed(ACME, plugin("base"), plugin("plain")),
    "trap": Installed(name="trap", load=trap, place="trap:plugin", distribution="trap 2.0"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "find_installed", lambda: INSTALLED)
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WOOLLAMA_PLUGINS", raising=False)
    monkeypatch.delenv("ACME_KEY", raising=False)
    return tmp_path


def enable(folder: Path, text: str) -> None:
    (folder / "woollama.toml").write_text(f"[plugins]\n{text}\n")


def run(*arguments: str) -> None:
    command.plugins.main(list(arguments), standalone_mode=False)


def test_the_list_shows_state_and_kinds_and_imports_only_what_is_enabled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enable(folder, 'enabled = ["base"]')
    run("list")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [
        ["PLUGIN", "STATE", "FROM"],
        ["base", "enabled", "base", "1.0"],
        ["acme", "installed", "acme", "1.0"],
        ["plain", "installed", "plain", "1.0"],
        ["trap", "installed", "trap", "2.0"],
    ] == lines


def test_p_61_the_list_tells_what_is_wrong_with_the_set(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enable(folder, 'enabled = ["acme", "gone"]\n[plugins.left]')
    run("list", "--json")
    views = {view["name"]: view for view in json.loads(capsys.readouterr().out)}
    assert ["acme", "gone", "base", "plain", "trap"] == list(views)
    assert any("requires 'base'" in each for each in views["acme"]["problems"])
    assert any("there is no plugin 'gone'" in each for each in views["gone"]["problems"])
    assert ["providers", "pattern_backends"] == views["acme"]["contributes"]
    run()
    shown = capsys.readouterr()
    assert "plugins.left: is a section of a plugin that is not enabled" in shown.err
    assert [
        "PLUGIN  STATE      FROM       CONTRIBUTES",
        "acme    in error   acme 1.0   providers, pattern_backends",
        "gone    in error",
    ] == shown.out.splitlines()[:3]


def test_one_shows_everything_that_it_declares(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "s3cret")
    enable(folder, 'enabled = ["base", "acme"]\n[plugins.acme]\nurl = "x"')
    run("show", "acme")
    shown = capsys.readouterr().out
    for line in (
        "acme  (enabled)",
        "Patterns of acme.",
        "from              acme 1.0, acme:plugin",
        "api version       1",
        "requires          base",
        "providers         acme-models",
        "pattern backends  acme",
        "setting           url, required",
        "secret            ACME_KEY: required, set",
    ):
        assert line in shown.splitlines()
    assert "s3cret" not in shown


def test_one_that_is_not_enabled_is_shown_with_what_it_would_need(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("show", "acme", "--json")
    view = json.loads(capsys.readouterr().out)
    assert not view["enabled"]
    assert {"url": "required"} == view["settings"]
    assert {"ACME_KEY": "required, not set"} == view["secrets"]
    assert any("needs the key 'url'" in each for each in view["problems"])


def test_one_that_cannot_be_imported_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("show", "trap")
    assert "imported although it is not enabled" in capsys.readouterr().out


def test_one_that_is_not_installed_is_an_error(folder: Path) -> None:
    with pytest.raises(RequestError, match="Installed are: acme, base, plain, trap"):
        run("show", "nothing")


def test_the_variable_decides_what_is_enabled(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    enable(folder, 'enabled = ["base"]')
    for value, expected in (("none", []), ("plain,base", ["plain", "base"])):
        monkeypatch.setenv("WOOLLAMA_PLUGINS", value)
        run("list", "--json")
        views = json.loads(capsys.readouterr().out)
        assert expected == [view["name"] for view in views if view["enabled"]]


def test_settings_that_cannot_be_read_are_refused_first(folder: Path) -> None:
    (folder / "woollama.toml").write_text("[server]\naddres = 1\n")
    with pytest.raises(ConfigError, match="addres"):
        run("list")


@pytest.mark.parametrize("way", ["flag", "variable"])
def test_the_daemon_starts_without_plugins_when_one_of_them_keeps_it_from_it(
    tmp_path: Path, way: str
) -> None:
    (tmp_path / "woollama.toml").write_text('[plugins]\nenabled = ["gone"]\n')
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    environ = {**kept, "HOME": str(tmp_path), "WOOLLAMA_CONFIG_DIR": str(tmp_path)}
    program = "from woollama.server.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--uds", "off"]
    refused = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=30, check=False
    )
    assert 78 == refused.returncode
    assert "there is no plugin 'gone'" in refused.stderr
    if way == "flag":
        command.append("--no-plugins")
    else:
        environ["WOOLLAMA_PLUGINS"] = "none"
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr is not None
        assert "OpenAI API at /v1" in daemon.stderr.readline()
        daemon.terminate()
        assert 0 == daemon.wait(20)
