"""Where the daemon listens: server/address.py, binding.py and unix_socket.py."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from woollama.server.address import (
    Address,
    host_of,
    is_address,
    is_loopback,
    is_wildcard,
    parse_address,
)
from woollama.server.binding import BindError, Binding, open_binding
from woollama.server.sections import ServerSettings
from woollama.server.settings import Settings
from woollama.server.unix_socket import open_socket


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def bound(runtime: Path | None, *, token: str | None = None, **server: Any) -> Generator[Binding]:
    server = {"address": "127.0.0.1:0", **server}
    settings = Settings(config_dir=Path("/nowhere"), token=token, server=ServerSettings(**server))
    environ = {} if runtime is None else {"XDG_RUNTIME_DIR": str(runtime)}
    with open_binding(settings, environ) as binding:
        yield binding


def refused(runtime: Path | None, **server: Any) -> BindError:
    with pytest.raises(BindError) as caught, bound(runtime, **server):
        pass
    assert "\n" not in str(caught.value)
    return caught.value


def connects(place: Any) -> bool:
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        try:
            client.connect(place)
        except OSError:
            return False
    return True


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000),
        ("localhost", "localhost", 9665),
        (" 8000 ", "127.0.0.1", 8000),
        ("0", "127.0.0.1", 0),
        ("[::1]:80", "::1", 80),
        ("[::1]", "::1", 9665),
        ("::1", "::1", 9665),
        ("::", "::", 9665),
        ("0.0.0.0:1", "0.0.0.0", 1),
        ("box.lan:65535", "box.lan", 65535),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int) -> None:
    assert Address(host=host, port=port) == parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":80",
        "host:",
        "host:http",
        "host:65536",
        "70000",
        "-1",
        "http://127.0.0.1:80",
        "a/b",
        "a:b:1",
        "[localhost]:80",
        "[::1",
        "[::1]80",
        "a b:1",
        "1.2.3.4:٣",
    ],
)
def test_what_is_no_address_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"write HOST:PORT, as 127\.0\.0\.1:9665"):
        parse_address(text)


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("127.0.0.1:1", "[::1]:1", "box.lan:1"):
        assert text == str(parse_address(text))
    assert "http://127.0.0.1:1" == parse_address("0.0.0.0:1").url
    assert "http://[::1]:1" == parse_address("[::]:1").url


def test_loopback_is_a_short_list() -> None:
    ours = ("localhost", "LOCALHOST.", "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1")
    others = ("", "0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil.example")
    assert [True] * len(ours) == [is_loopback(host) for host in ours]
    assert [False] * len(others) == [is_loopback(host) for host in others]
    assert (True, True, False) == tuple(map(is_wildcard, ("0.0.0.0", "::", "localhost")))
    assert (True, False) == tuple(map(is_address, ("10.0.0.1", "a.lan")))


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("A.Example", "a.example"),
        ("a.example.:80", "a.example"),
        ("127.0.0.1:9665", "127.0.0.1"),
        ("[::1]:9665", "::1"),
        ("[::1]", "::1"),
        ("", None),
        (":80", None),
        ("a:b", None),
        ("[::1", None),
        ("[a]", None),
        ("[::1]x", None),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str | None) -> None:
    assert host == host_of(authority)


def test_both_sockets_listen_and_the_address_file_names_the_real_port(runtime: Path) -> None:
    with bound(runtime) as binding:
        assert 0 != binding.address.port
        assert connects(("127.0.0.1", binding.address.port))
        assert runtime / "woollama.sock" == binding.uds
        assert connects(str(binding.uds))
        assert runtime / "woollama.addr" == binding.address_file
        assert f"{binding.address}\n" == (runtime / "woollama.addr").read_text()
        assert () == binding.notices
        assert 2 == len(binding.sockets)
        assert socket.AF_INET == binding.sockets[0].family
    assert [] == list(runtime.iterdir())
    assert not connects(("127.0.0.1", binding.address.port))


def test_the_socket_and_the_file_are_their_owners_alone(runtime: Path) -> None:
    before = os.umask(0)
    try:
        with bound(runtime) as binding:
            assert binding.uds is not None
            assert binding.address_file is not None
            assert 0o600 == stat.S_IMODE(binding.uds.stat().st_mode)
            assert 0o600 == stat.S_IMODE(binding.address_file.stat().st_mode)
    finally:
        os.umask(before)


def test_ipv6_works(runtime: Path) -> None:
    with bound(runtime, address="[::1]:0") as binding:
        assert socket.AF_INET6 == binding.sockets[0].family
        assert f"[::1]:{binding.address.port}\n" == (runtime / "woollama.addr").read_text()


def test_every_address_takes_both_families() -> None:
    with bound(None, address="[::]:0", token="t") as binding:
        assert connects(("127.0.0.1", binding.address.port))


def test_localhost_is_resolved(runtime: Path) -> None:
    with bound(runtime, address="localhost:0") as binding:
        assert connects(("127.0.0.1", binding.address.port))


def test_a_taken_port_is_one_line_and_an_exit_code(runtime: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        error = refused(runtime, address=address)
        assert str(error).startswith(f"{address} is already in use by another program")
        assert 69 == error.exit_code
    assert [] == list(runtime.iterdir()), "the socket that was made first is gone again"


def test_a_port_that_is_bound_and_does_not_listen_yet_is_taken_by_the_first_to_listen() -> None:
    with bound(None) as first:
        error = refused(None, address=str(first.address))
        assert 69 == error.exit_code


def test_a_second_instance_is_refused_and_steals_nothing(runtime: Path) -> None:
    with bound(runtime) as first:
        before = (runtime / "woollama.sock").stat().st_ino
        error = refused(runtime)
        assert str(error).startswith(f"a woollama already listens on {runtime}/woollama.sock;")
        assert 69 == error.exit_code
        assert before == (runtime / "woollama.sock").stat().st_ino
        assert f"{first.address}\n" == (runtime / "woollama.addr").read_text()
        assert connects(str(first.uds))


def test_a_dead_socket_file_is_replaced(runtime: Path) -> None:
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(runtime / "woollama.sock"))
    dead.close()
    (runtime / "woollama.addr").write_text("127.0.0.1:1\n")
    with bound(runtime) as binding:
        assert connects(str(binding.uds))
        assert f"{binding.address}\n" == (runtime / "woollama.addr").read_text()


def test_of_two_that_start_at_once_over_a_dead_socket_one_is_told(runtime: Path) -> None:
    """The lock on the directory: looking and replacing are one step."""
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(runtime / "woollama.sock"))
    dead.close()
    program = (
        "import sys; from pathlib import Path\n"
        "from woollama.server.unix_socket import AlreadyServed, open_socket\n"
        "sys.stdin.readline()\n"
        "try:\n"
        f"    made = open_socket(Path({str(runtime / 'woollama.sock')!r}), backlog=1)\n"
        "except AlreadyServed:\n"
        "    print('told', flush=True)\n"
        "else:\n"
        "    print('made', flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        said = [child.stdout.readline().strip() for child in children if child.stdout]
        assert ["made", "told", "told"] == sorted(said)
    finally:
        for child in children:
            child.communicate("end\n", timeout=10)


def test_a_daemon_that_is_too_busy_to_answer_is_alive(runtime: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy:
        busy.bind(str(runtime / "woollama.sock"))
        busy.listen(0)
        waiting: list[socket.socket] = []
        try:
            with pytest.raises(BlockingIOError):  # noqa: PT012 - until its queue is full
                while True:
                    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    waiting.append(client)
                    client.setblocking(False)
                    client.connect(str(runtime / "woollama.sock"))
            assert "already listens" in str(refused(runtime))
        finally:
            for client in waiting:
                client.close()


def test_an_address_file_that_cannot_be_written_is_a_notice(runtime: Path) -> None:
    (runtime / "woollama.addr").mkdir()
    with bound(runtime) as binding:
        assert None is binding.address_file
        assert connects(str(binding.uds))
        assert 1 == len(binding.notices)
        assert binding.notices[0].startswith("no address file: ")
        assert {"woollama.sock", "woollama.addr"} == {path.name for path in runtime.iterdir()}


def test_another_ones_files_are_not_removed(runtime: Path) -> None:
    with bound(runtime) as binding:
        assert binding.uds is not None
        assert binding.address_file is not None
        for path in (binding.uds, binding.address_file):
            path.unlink()
            path.write_text("another's")
    assert ["another's"] * 2 == [path.read_text() for path in sorted(runtime.iterdir())]


def test_ru_55_without_a_runtime_directory_there_is_tcp_only_with_a_notice() -> None:
    with bound(None) as binding:
        assert None is binding.uds
        assert None is binding.address_file
        assert ("no Unix socket, TCP only: XDG_RUNTIME_DIR is not set",) == binding.notices
        assert connects(("127.0.0.1", binding.address.port))


def test_k08_a_path_longer_than_a_socket_path_may_be_is_tcp_only_with_a_notice(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("r" * 100)
    folder.mkdir()
    with bound(folder) as binding:
        assert None is binding.uds
        assert 1 == len(binding.notices)
        assert "no Unix socket, TCP only: the path is longer than" in binding.notices[0]


@pytest.mark.parametrize(
    ("folder", "reason"),
    [("relative/run", "is no absolute path"), ("/nowhere/at/all", "No such file or directory")],
)
def test_a_runtime_directory_that_cannot_be_used_is_a_notice(folder: str, reason: str) -> None:
    with bound(Path(folder)) as binding:
        assert 1 == len(binding.notices)
        assert reason in binding.notices[0]


def test_a_file_in_the_sockets_place_stays(runtime: Path) -> None:
    (runtime / "woollama.sock").write_text("precious")
    with bound(runtime) as binding:
        assert "exists and is no socket" in binding.notices[0]
    assert "precious" == (runtime / "woollama.sock").read_text()


def test_a_socket_of_ones_own_choice_must_work(runtime: Path) -> None:
    with bound(runtime, uds=str(runtime / "own.sock")) as binding:
        assert runtime / "own.sock" == binding.uds
        assert runtime / "own.addr" == binding.address_file
    error = refused(runtime, uds="/nowhere/own.sock")
    assert "no Unix socket at /nowhere/own.sock: No such file or directory" == str(error)
    assert 78 == error.exit_code


def test_the_socket_can_be_off(runtime: Path) -> None:
    with bound(runtime, uds=False) as binding:
        assert None is binding.uds
        assert () == binding.notices
    assert [] == list(runtime.iterdir())


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "localhost.example:0"])
def test_off_loopback_needs_a_token(address: str) -> None:
    error = refused(None, address=address)
    assert "so it needs a token: set WOOLLAMA_TOKEN" in str(error)
    assert 78 == error.exit_code


def test_off_loopback_with_a_token_listens() -> None:
    with bound(None, address="0.0.0.0:0", token="t") as binding:
        assert "0.0.0.0" == binding.address.host
        assert binding.address.url.startswith("http://127.0.0.1:")


def test_an_address_of_another_machine_is_refused() -> None:
    error = refused(None, address="192.0.2.1:0", token="t")
    assert "'192.0.2.1' is no address of this machine; 127.0.0.1 is" == str(error)
    assert 78 == error.exit_code


def test_a_name_that_cannot_be_found_is_refused() -> None:
    name = "n" * 64  # too long to be asked for
    error = refused(None, address=f"{name}:0", token="t")
    assert f"{name!r} is no address of this machine; 127.0.0.1 is" == str(error)
    assert 78 == error.exit_code


def test_sockets_are_not_inherited_by_child_processes(runtime: Path) -> None:
    with bound(runtime) as binding:
        assert [False, False] == [each.get_inheritable() for each in binding.sockets]


def test_a_busy_directory_lock_is_not_waited_for_for_ever(runtime: Path) -> None:
    program = (
        "import fcntl, os, sys\n"
        f"fcntl.flock(os.open({str(runtime)!r}, os.O_RDONLY), fcntl.LOCK_EX)\n"
        "print('locked', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert b"locked\n" == holder.stdout.readline()
        with bound(runtime) as binding:
            assert 1 == len(binding.notices)
    finally:
        holder.communicate(timeout=10)
    made, file = open_socket(runtime / "woollama.sock", backlog=1)
    made.close()
    file.remove()
