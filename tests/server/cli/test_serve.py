"""``woollama serve``: where it listens, what it refuses, how it ends, what its log holds."""

import http.client
import json
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.running import RunningDaemon, running_daemon
from tests.server.cli.shell import LIMIT_S, Shell
from tests.server.cli.upstream import Speaker
from woollama.core import __version__
from woollama.core.testing.upstream import Script, serve_in_thread

PROMPT, REPLY, KEY, HEADER = "PROMPT-91f3", "REPLY-51ac", "sk-KEY-77d0", "HEADER-c41e"
both_servers = pytest.mark.parametrize("server", ["hypercorn", "uvicorn"])


@contextmanager
def serving(
    folder: Path, script: Script, *arguments: str, **environ: str
) -> Generator[RunningDaemon]:
    with serve_in_thread(script) as up:
        files = {
            "inferencers.toml": f'[inferencers.up]\nbase_url = "{up.url}"\n'
            'api_key_env = "UP_KEY"\ndiscover = true\n'
        }
        environ = {"UP_KEY": KEY, "WOOLLAMA_OLLAMA_URL": "http://127.0.0.1:1", **environ}
        with running_daemon(folder, *arguments, files=files, environ=environ) as daemon:
            yield daemon


def connect(daemon: RunningDaemon) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=LIMIT_S)


def post(
    daemon: RunningDaemon, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    connection = connect(daemon)
    text = body if isinstance(body, str) else json.dumps(body)
    named = {"content-type": "application/json", **(headers or {})}
    connection.request("POST", "/v1/chat/completions", text, named)
    reply = connection.getresponse()
    said = reply.read().decode()
    connection.close()
    return reply.status, said


def chat(*, stream: bool = False, model: str = "up/m") -> dict[str, Any]:
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": PROMPT}]}


# Where


@both_servers
def test_it_says_where_it_listens_before_anything_else(server: str, tmp_path: Path) -> None:
    with serving(tmp_path, Speaker("yes"), "--server", server) as daemon:
        first, second = daemon.log.splitlines()[:2]
        assert f"woollama {__version__} on {daemon.url}  (OpenAI API at /v1)" == first
        assert f"Unix socket {tmp_path / 'run' / 'woollama.sock'}" == second
        status, said = post(daemon, chat())
        assert (200, True) == (status, '"yes"' in said)
        assert 0 == daemon.stop()
    assert [] == list((tmp_path / "run").iterdir())


def test_without_a_runtime_directory_it_says_that_there_is_no_socket(shell: Shell) -> None:
    shell.environ["XDG_RUNTIME_DIR"] = ""
    with shell.started("serve", "--port", "0") as process:
        assert process.stderr is not None
        lines = [process.stderr.readline().decode() for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert "(OpenAI API at /v1)" in lines[0]
    assert lines[1].startswith("no Unix socket, TCP only: ")
    assert 0 == process.returncode


def test_ctrl_c_ends_it_as_well(shell: Shell) -> None:
    with shell.terminal("serve", "--port", "0", "--uds", "off") as terminal:
        terminal.wait_for("(OpenAI API at /v1)")
        terminal.interrupt()
        assert 0 == terminal.end()
    # The prompt of the shell begins on a line of its own, behind the ^C.
    assert terminal.seen.endswith("/v1)\n\n")


# What it refuses


def test_a_taken_port_is_one_line_and_69(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = shell.run("serve", "--address", place, "--uds", "off")
    assert (69, "") == (done.code, done.out)
    assert done.line.startswith(f"woollama: {place} is already in use by another program; ")


def test_a_second_instance_is_one_line_and_69_and_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    shell = Shell(tmp_path / "home")
    with serving(tmp_path, Speaker("yes")) as daemon:
        run = str(tmp_path / "run")
        done = shell.run("serve", "--port", "0", XDG_RUNTIME_DIR=run)
        assert (69, "") == (done.code, done.out)
        assert f"a woollama already listens on {run}/woollama.sock; stop it, or" in done.line
        assert 200 == post(daemon, chat())[0]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("--host", "0.0.0.0"), 78, "so it needs a token: set WOOLLAMA_TOKEN, or listen on 127"),
        (("--address", "[::]:0"), 78, "so it needs a token: set WOOLLAMA_TOKEN"),
        (("--address", "127.0.0.1:http"), 78, "server.address"),
        (("--address", ""), 78, "server.address"),
        (("--host", "a b"), 78, "server.address"),
        (("--port", "0", "--uds", "/no/such/folder/x"), 78, "no Unix socket at /no/such/folder/x"),
    ],
)
def test_a_place_where_it_cannot_listen_is_one_line(
    arguments: tuple[str, ...], code: int, expected: str, shell: Shell
) -> None:
    done = shell.run("serve", *arguments)
    assert (code, "") == (done.code, done.out)
    assert expected in done.line


def test_an_address_of_another_machine_is_one_line(shell: Shell) -> None:
    done = shell.run("serve", "--address", "192.0.2.1:0", "--uds", "off", WOOLLAMA_TOKEN="wl-x")
    assert 78 == done.code
    assert "'192.0.2.1' is no address of this machine; 127.0.0.1 is" in done.line


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("woollama.toml", "[server]\nadress = 1\n", "server.adress: unknown key; did you mean"),
        ("inferencers.toml", "[inferencers.a]\n", "inferencers.a: needs the key 'base_url'"),
        ("recipes.toml", "[recipes", "recipes.toml: is not valid TOML"),
        ("mcp.json", "{", "mcp.json: is not valid JSON"),
        (".env", "?", ".env: line 1: must be NAME=value"),
    ],
)
def test_a_refused_configuration_is_78_and_no_socket_is_left(
    name: str, text: str, expected: str, shell: Shell
) -> None:
    shell.write(name, text)
    done = shell.run("serve", "--port", "0")
    assert (78, "") == (done.code, done.out)
    assert expected in done.line
    assert [] == list((shell.home / "run").iterdir())


def test_ru_33_a_wrong_server_entry_is_a_line_of_the_log_and_stops_nothing(
    tmp_path: Path,
) -> None:
    entry = '{"mcpServers": {"broken": {"comand": "x"}}}'
    with running_daemon(tmp_path, files={"mcp.json": entry}, environ={}) as daemon:
        assert 0 == daemon.stop()
    assert "broken" in daemon.log
    assert "comand" in daemon.log


def test_p_6_it_uses_no_file_of_the_folder_it_is_started_in(tmp_path: Path) -> None:
    """Every file is there, and each would be noticed."""
    speaker = Speaker("yes")
    with serve_in_thread(speaker) as up:
        here = {
            "woollama.toml": 'default_model = "here/m"\n[server]\nlog_level = "debug"\n',
            "inferencers.toml": f'[inferencers.here]\nbase_url = "{up.url}"\n',
            "recipes.toml": '[recipes.here]\ninferencer = "here/m"\n',
            "mcp.json": '{"mcpServers": {"here": {"command": "here"}}}',
            ".env": "WOOLLAMA_TOKEN=wl-here\n",
        }
        for name, text in here.items():
            (tmp_path / name).write_text(text)
        with running_daemon(tmp_path, files={}, environ={}) as daemon:
            status, said = post(daemon, chat(model="here/m"))
            assert 404 == status
            assert "here" not in said.replace("here/m", "")
            connection = connect(daemon)
            for path in ("/w1/patterns", "/w1/tools", "/v1/models"):
                connection.request("GET", path)
                assert "here" not in connection.getresponse().read().decode()
            connection.close()
            assert 0 == daemon.stop()
    assert [] == speaker.bodies
    assert " debug " not in daemon.log


def test_without_plugins_it_starts_in_spite_of_one_that_is_not_there(tmp_path: Path) -> None:
    files = {"woollama.toml": '[plugins]\nenabled = ["ghost"]\n'}
    with running_daemon(tmp_path, "--no-plugins", files=files, environ={}) as daemon:
        connection = connect(daemon)
        connection.request("GET", "/v1/models")
        names = [model["id"] for model in json.loads(connection.getresponse().read())["data"]]
        connection.close()
        assert 0 == daemon.stop()
    assert [] == [name for name in names if name.startswith("local/")]


# How it ends


@both_servers
def test_sigterm_lets_a_stream_come_to_its_end_and_exits_0(server: str, tmp_path: Path) -> None:
    speaker = Speaker("one ", "two", holds=True)
    with serving(tmp_path, speaker, "--server", server) as daemon:
        connection = connect(daemon)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(stream=True)))
        reply = connection.getresponse()
        said = reply.readline()
        daemon.process.send_signal(signal.SIGTERM)
        _wait_until_refused(daemon)
        speaker.release.set()
        said += reply.read()
        connection.close()
        assert 0 == daemon.process.wait(LIMIT_S)
    assert b"one " in said
    assert b"two" in said
    assert said.rstrip().endswith(b"data: [DONE]")
    assert "Traceback" not in daemon.log


def _wait_until_refused(daemon: RunningDaemon) -> None:
    """Until it takes no new connections: it has heard the signal."""
    host, port = daemon.url.removeprefix("http://").split(":")
    patience = threading.Event()
    for _ in range(600):
        try:
            socket.create_connection((host, int(port)), timeout=LIMIT_S).close()
        except OSError:
            return
        patience.wait(0.05)
    raise AssertionError(daemon.log)


# What its log holds


@both_servers
@pytest.mark.parametrize("form", ["text", "json"])
def test_p_60_no_prompt_reply_or_key_is_in_the_log_at_any_level(
    server: str, form: str, tmp_path: Path
) -> None:
    flags = ("--server", server, "--log-format", form, "--log-level", "debug")
    shown = {"PYTHONASYNCIODEBUG": "1", "PYTHONDEVMODE": "1"}
    speaker = Speaker({"reasoning_content": REPLY}, REPLY)
    with serving(tmp_path, speaker, *flags, **shown) as daemon:
        header = {"x-marker": HEADER, "authorization": f"Bearer {HEADER}"}
        assert 200 == post(daemon, chat(), header)[0]
        assert REPLY in post(daemon, chat(stream=True), header)[1]
        assert 404 == post(daemon, chat(model=f"nobody/{PROMPT}"))[0]
        assert 400 == post(daemon, f'{{"model": "up/m", "messages": ["{PROMPT}"')[0]
        assert 400 == post(daemon, {**chat(), "stream": PROMPT})[0]
        assert 404 == post(daemon, chat(model="woollama/nothing"), header)[0]
        connection = connect(daemon)
        connection.request("GET", f"/v1/models?{PROMPT}", headers=header)
        connection.getresponse().read()
        connection.close()
        _say_nonsense(daemon)
        assert 0 == daemon.stop()
    assert {f"Bearer {KEY}"} == set(speaker.keys)
    log = daemon.log
    # The name of a model is no secret, and is what a line is found by.
    log = log.replace(f"nobody/{PROMPT}", "")
    assert [] == [word for word in (PROMPT, REPLY, KEY, HEADER) if word in log]
    assert log.count("/v1/chat/completions") >= 6


def _say_nonsense(daemon: RunningDaemon) -> None:
    """Bytes that are no HTTP: what a server library would like to log."""
    host, port = daemon.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LIMIT_S) as raw:
        raw.sendall(f"{PROMPT} {HEADER}\r\nx: {KEY}\r\n\r\n".encode())
        raw.recv(4096)


def test_p_60_log_bodies_is_the_one_switch_and_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, Speaker(REPLY), "--log-bodies") as daemon:
        assert "Bodies are logged: everything that users write." in daemon.log.splitlines()
        assert 200 == post(daemon, chat())[0]
        assert 0 == daemon.stop()
    assert PROMPT in daemon.log
    assert REPLY in daemon.log
    assert KEY not in daemon.log


def test_each_request_is_one_line_of_json_when_that_is_wanted(tmp_path: Path) -> None:
    with serving(tmp_path, Speaker("yes"), "--log-format", "json") as daemon:
        assert 200 == post(daemon, chat())[0]
        assert 0 == daemon.stop()
    (line,) = [line for line in daemon.log.splitlines() if line.startswith("{")]
    entry = json.loads(line)
    assert ("up/m", "up", 200, 3, 2) == tuple(
        entry[key] for key in ("model", "provider", "status", "prompt_tokens", "completion_tokens")
    )
