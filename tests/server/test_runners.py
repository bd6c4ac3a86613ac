"""Serving, limits and stopping, by either runner: server/runners/."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.server.at_the_door import Door, Kind, Reply, echo, read_all, read_until, served
from woollama.core.errors import ConfigError
from woollama.core.scopes import open_tasks
from woollama.server import runners
from woollama.server.runners import find_runner, run, stop_on_signals

CHUNKED_AND_LENGTH = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
)
TWO_LENGTHS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n"
    b"Content-Length: 40\r\n\r\n{}GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
)
SPACE_BEFORE_COLON = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length : 2\r\n\r\n{}"
)
NO_HTTP = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is a TLS hello\r\n\r\n"


@pytest.fixture(params=["hypercorn", "uvicorn"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


class Held:
    """An application whose reply is held until it is let go, and that notices who leaves."""

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.go = anyio.Event()
        self.left = anyio.Event()
        self.cancelled = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        self.arrived.set()
        try:
            async with open_tasks() as tasks:
                tasks.start_soon(self._watch, receive)
                await self.go.wait()
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        await send({"type": "http.response.body", "body": b"last"})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()


@asynccontextmanager
async def asked(door: Door, *, path: str = "/") -> AsyncGenerator[ByteStream]:
    """A connection on which a request without a body was sent."""
    async with await door.connect() as stream:
        await stream.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        yield stream


@pytest.mark.parametrize("data", [CHUNKED_AND_LENGTH, TWO_LENGTHS, SPACE_BEFORE_COLON, NO_HTTP])
async def test_h10_what_could_hide_a_second_request_is_one_400_and_the_end(
    kind: Kind, data: bytes
) -> None:
    paths: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        await echo(scope, receive, send)

    async with served(app, kind=kind) as door:
        reply = await door.raw(data)
        assert (400, 1) == (reply.status, reply.answers)
        assert "close" == reply.headers["connection"]
        assert "invalid_request_error" == reply.error["type"]
        assert [] == paths
        assert 200 == (await door.ask()).status


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://127.0.0.1/v1/models?a=b", "/v1/models"),
        ("HTTP://localhost:1/v1/a%20b", "/v1/a b"),
        ("http://127.0.0.1/", "/"),
    ],
)
async def test_an_absolute_target_is_taken_apart(kind: Kind, target: str, path: str) -> None:
    async with served(kind=kind) as door:
        reply = await door.ask("GET", target)
        assert (200, f"GET {path} 0") == (reply.status, reply.body.decode())


async def test_an_absolute_target_without_a_path_is_the_root_or_refused() -> None:
    async with served(kind="hypercorn") as door:
        assert 200 == (await door.ask("GET", "http://127.0.0.1")).status
    async with served(kind="uvicorn") as door:
        assert 400 == (await door.ask("GET", "http://127.0.0.1")).status


async def test_an_absolute_target_on_another_host_is_refused(kind: Kind) -> None:
    async with served(kind=kind) as door:
        reply = await door.ask("GET", "http://evil.example/v1/models?a=b", host="127.0.0.1")
        assert 403 == reply.status


@pytest.mark.parametrize(
    "target", ["*", "evil.example:80", "ftp://127.0.0.1/x", "v1/models", "http:/x", "://x"]
)
async def test_a_target_that_is_no_path_is_refused(kind: Kind, target: str) -> None:
    async with served(kind=kind) as door:
        reply = await door.ask("OPTIONS" if target == "*" else "GET", target)
        assert 400 == reply.status
        assert "close" == reply.headers["connection"]


async def test_h13_heads_that_never_end_keep_nobody_from_being_served(kind: Kind) -> None:
    async with served(kind=kind, header_timeout_s=0.3) as door:
        slow = [await door.connect() for _ in range(150)]
        try:
            for stream in slow:
                await stream.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            with anyio.fail_after(2):
                assert 200 == (await door.ask()).status
            with anyio.fail_after(5):
                assert [b""] * len(slow) == [await read_all(stream) for stream in slow]
        finally:
            for stream in slow:
                await stream.aclose()


async def test_a_head_that_comes_in_drops_has_one_limit_for_all_of_it(kind: Kind) -> None:
    """Each drop would begin the time anew, if the limit were for a pause."""
    async with served(kind=kind, header_timeout_s=0.4) as door, await door.connect() as stream:
        dropped = 0
        with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):  # noqa: PT012
            while True:
                await stream.send(b"G" if dropped == 0 else b"E")
                dropped += 1
                with anyio.move_on_after(0.05):
                    await stream.receive()
        assert 2 < dropped < 30


async def test_a_client_that_says_nothing_is_let_go(kind: Kind) -> None:
    async with served(kind=kind, header_timeout_s=0.1) as door, await door.connect() as stream:
        assert b"" == await read_all(stream)


async def test_a_second_head_on_a_kept_connection_has_its_limit_too(kind: Kind) -> None:
    limits: dict[str, Any] = {"header_timeout_s": 0.2, "keep_alive_timeout_s": 60.0}
    async with served(kind=kind, **limits) as door, asked(door) as stream:
        await read_until(stream, b"GET / 0")
        await stream.send(b"GET / HTTP/1.1\r\n")
        assert b"" == await read_all(stream)


async def test_an_idle_connection_is_kept_and_then_closed(kind: Kind) -> None:
    limits: dict[str, Any] = {"header_timeout_s": 0.05, "keep_alive_timeout_s": 0.5}
    async with served(kind=kind, **limits) as door, asked(door) as stream:
        await read_until(stream, b"GET / 0")
        with anyio.move_on_after(0.2) as quiet:
            await stream.receive()
        assert quiet.cancelled_caught, "not closed by the limit for heads"
        await stream.send(b"GET /again HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await read_until(stream, b"GET /again 0")
        assert b"" == await read_all(stream)


async def test_a_head_that_is_too_long_is_refused(kind: Kind) -> None:
    async with served(kind=kind) as door:
        head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
        reply = await door.raw(head + b"x" * 200_000)
        assert 431 == reply.status
        assert "The head of the request is too long." == reply.error["message"]
        assert (
            200 == (await door.raw(head + b"x" * 20_000 + b"\r\nConnection: close\r\n\r\n")).status
        )


@pytest.mark.parametrize("paused", [False, True])
async def test_an_answer_before_a_long_body_is_read_reaches_the_client(
    kind: Kind, paused: bool
) -> None:
    """And the connection ends: a queue that nobody empties must not hold it."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        if paused:
            await anyio.sleep(0.1)
        await send({"type": "http.response.start", "status": 403, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})

    async with (
        served(app, kind=kind, body_limit_bytes=1 << 30) as door,
        door.client() as client,
    ):
        for _ in range(3):
            response = await client.post("/", content=b"x" * 20_000_000, timeout=5)
            assert (403, b"no") == (response.status_code, response.content)


async def test_413_reaches_a_client_that_goes_on_sending(kind: Kind) -> None:
    async with served(kind=kind, body_limit_bytes=1000) as door, door.client() as client:
        for size in (20_000_000, 1001):
            response = await client.post("/", content=b"x" * size, timeout=5)
            assert 413 == response.status_code
        assert 200 == (await client.post("/", content=b"x" * 1000)).status_code


async def test_bodies_come_whole_and_connections_are_reused(kind: Kind) -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(10):
            yield b"y" * 50_000

    async with served(kind=kind) as door, door.client() as client:
        for size in (0, 1, 70_000, 3_000_000):
            response = await client.post("/", content=b"x" * size)
            assert f"POST / {size}" == response.text
        assert "POST / 500000" == (await client.post("/", content=chunks())).text


async def test_a_short_body_comes_as_one_message(kind: Kind) -> None:
    messages: list[tuple[bytes, bool]] = []

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        messages.append((message["body"], message["more_body"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with served(app, kind=kind) as door:
        assert 200 == (await door.ask("POST", body=b"short")).status
        assert 200 == (await door.ask("GET")).status
    assert [(b"short", False), (b"", False)] == messages


@pytest.mark.parametrize(
    ("asked", "headers", "body"),
    [
        (b"GET / HTTP/1.1", [], b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"),
        (b"GET / HTTP/1.1", [(b"content-length", b"8")], b"onethree"),
        (b"GET / HTTP/1.0", [], b"onethree"),
        (b"HEAD / HTTP/1.1", [], b""),
        (b"HEAD / HTTP/1.1", [(b"transfer-encoding", b"chunked")], b""),
    ],
)
async def test_a_body_in_pieces_is_framed_as_its_client_reads_it(
    asked: bytes, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """On Hypercorn, where chunks are framed by us; an empty piece does not end the body."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in (b"one", b"", b"three"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with served(app, kind="hypercorn") as door:
        reply = await door.raw(asked + b"\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert (200, body) == (reply.status, reply.body)


async def test_a_head_does_not_wait_for_a_body_that_takes_its_time(kind: Kind) -> None:
    go = anyio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await go.wait()
        await send({"type": "http.response.body", "body": b"late"})

    async with served(app, kind=kind) as door, asked(door) as stream:
        assert b"late" not in await read_until(stream, b"\r\n\r\n")
        go.set()
        assert b"4\r\nlate\r\n0\r\n\r\n" == await read_until(stream, b"0\r\n\r\n")


async def test_behind_a_body_in_pieces_comes_one_of_a_known_length(kind: Kind) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"5")] if scope["path"] == "/known" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"piece", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with served(app, kind=kind) as door:
        head = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"
        reply = await door.raw(head % (b"/", b"") + head % (b"/known", b"Connection: close\r\n"))
    assert reply.body.startswith(b"5\r\npiece\r\n0\r\n\r\nHTTP/1.1 200")
    assert reply.body.endswith(b"\r\n\r\npiece")


async def test_pipelined_requests_are_answered_in_order(kind: Kind) -> None:
    async with served(kind=kind) as door:
        head = "GET /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        last = head.format(3) + "Connection: close\r\n\r\n"
        data = "".join(head.format(number) + "\r\n" for number in (1, 2)) + last
        reply = await door.raw(data.encode())
        assert 3 == reply.answers
        assert [1, 2, 3] == sorted((1, 2, 3), key=lambda n: reply.raw.index(b"GET /%d 0" % n))


async def test_a_client_that_leaves_is_noticed_while_it_is_answered(kind: Kind) -> None:
    app = Held()
    async with served(app, kind=kind) as door:
        async with asked(door):
            await app.arrived.wait()
        with anyio.fail_after(5):
            await app.left.wait()
        app.go.set()


async def test_a_client_that_reads_slowly_slows_the_application(kind: Kind) -> None:
    sent = 0
    full = anyio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(500):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            sent += 1
        full.set()
        await send({"type": "http.response.body", "body": b""})

    async with served(app, kind=kind) as door, asked(door) as stream:
        await stream.receive()
        with anyio.move_on_after(0.5):
            await full.wait()
        assert sent < 400
        with anyio.fail_after(10):
            while not full.is_set():
                await stream.receive()


async def test_no_server_is_named_and_the_date_is_there(kind: Kind) -> None:
    async with served(kind=kind) as door:
        reply = await door.ask()
        assert "server" not in reply.headers
        assert reply.headers["date"].endswith(" GMT")


async def test_the_application_never_sees_a_lifespan(kind: Kind) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])
        await echo(scope, receive, send)

    async with served(app, kind=kind) as door:
        await door.ask()
    assert ["http"] == seen


async def test_headers_of_a_proxy_do_not_move_a_peer_to_loopback(kind: Kind) -> None:
    peers: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        peers.append(scope["client"][0])
        await echo(scope, receive, send)

    async with served(app, kind=kind) as door:
        await door.ask(x_forwarded_for="10.0.0.9", forwarded="for=10.0.0.9")
    assert ["127.0.0.1"] == peers


async def test_http_2_by_prior_knowledge_works_on_hypercorn() -> None:
    h2 = pytest.importorskip("h2.connection")
    async with served(kind="hypercorn") as door, await door.connect() as stream:
        connection = h2.H2Connection()
        connection.initiate_connection()
        headers = [
            (":method", "GET"),
            (":path", "/h2"),
            (":scheme", "http"),
            (":authority", "127.0.0.1"),
        ]
        connection.send_headers(1, headers, end_stream=True)
        await stream.send(connection.data_to_send())
        body = b""
        with anyio.fail_after(5):
            while b"GET /h2 0" not in body:
                for event in connection.receive_data(await stream.receive()):
                    body += getattr(event, "data", b"") or b""
                out = connection.data_to_send()
                if out:
                    await stream.send(out)


# Stopping


async def test_a_drain_ends_at_once_when_nothing_is_under_way(kind: Kind) -> None:
    async with served(kind=kind, drain_timeout_s=60) as door, asked(door) as stream:
        await read_until(stream, b"GET / 0")
        async with await door.connect() as silent:
            door.stop.set()
            with anyio.fail_after(3):
                await door.ended.wait()
                assert b"" == await read_all(stream)
                assert b"" == await read_all(silent)


async def test_a_drain_lets_a_request_finish_and_takes_no_new_ones(kind: Kind) -> None:
    app = Held()
    async with served(app, kind=kind, drain_timeout_s=60) as door, asked(door) as stream:
        await app.arrived.wait()
        door.stop.set()
        with anyio.fail_after(3):
            while await connects(door):
                await anyio.wait_all_tasks_blocked()
        assert not door.ended.is_set()
        app.go.set()
        assert Reply(await read_all(stream)).raw.endswith(b"4\r\nlast\r\n0\r\n\r\n")
        with anyio.fail_after(3):
            await door.ended.wait()


async def connects(door: Door) -> bool:
    try:
        async with await door.connect():
            return True
    except OSError:
        return False


async def test_a_drain_has_an_end(kind: Kind) -> None:
    app = Held()
    async with served(app, kind=kind, drain_timeout_s=0.1) as door, asked(door) as stream:
        await app.arrived.wait()
        door.stop.set()
        with anyio.fail_after(3):
            await door.ended.wait()
            await app.cancelled.wait()
        assert not (await read_all(stream)).endswith(b"0\r\n\r\n")


async def test_a_drain_does_not_wait_for_a_client_that_does_not_read(kind: Kind) -> None:
    blocked = anyio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(100_000):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            if number == 20:
                blocked.set()

    async with served(app, kind=kind, drain_timeout_s=0.1) as door, asked(door):
        await blocked.wait()
        door.stop.set()
        with anyio.fail_after(3):
            await door.ended.wait()


async def test_being_cancelled_cuts_everything_at_once(kind: Kind) -> None:
    app = Held()
    with anyio.fail_after(3):
        async with served(app, kind=kind, drain_timeout_s=60) as door, asked(door) as stream:
            await app.arrived.wait()
            door.cancel()
            await app.cancelled.wait()
            assert not (await read_all(stream)).endswith(b"0\r\n\r\n")


async def test_a_fault_of_the_application_behind_every_boundary_ends_its_request_only(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("beyond the boundary")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (broken if scope["path"] == "/broken" else echo)(scope, receive, send)

    def undefended(app: ASGIApp, *_args: Any) -> ASGIApp:
        return app

    monkeypatch.setattr("tests.server.at_the_door.behind_door", undefended)
    async with served(app, kind=kind) as door:
        assert 500 == (await door.ask("GET", "/broken")).status
        assert 200 == (await door.ask("GET", "/fine")).status


def test_uvicorn_that_is_not_installed_is_told_with_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(_name: str) -> None:
        return None

    monkeypatch.setattr(runners, "find_spec", nowhere)
    with pytest.raises(ConfigError, match=r"pip install 'woollama-server\[uvicorn\]'"):
        find_runner("uvicorn")


def test_the_loop_is_uvloop_when_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def which() -> str:
        import asyncio

        return type(asyncio.get_running_loop()).__module__

    assert "uvloop" == run(which)

    def nowhere(_name: str) -> None:
        return None

    monkeypatch.setattr(runners, "find_spec", nowhere)
    assert run(which).startswith("asyncio.")


async def test_a_signal_sets_the_event_and_the_handlers_come_back() -> None:
    stop = anyio.Event()
    before = signal.getsignal(signal.SIGTERM)
    async with stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        with anyio.fail_after(5):
            await stop.wait()
    assert before == signal.getsignal(signal.SIGTERM)


# A daemon in a process of its own

DAEMON = Path(__file__).with_name("small_daemon.py")


@asynccontextmanager
async def daemon(kind: Kind, folder: Path, *flags: str) -> AsyncGenerator[Any]:
    (folder / "run").mkdir(exist_ok=True)
    environ = {
        **os.environ,
        "WOOLLAMA_CONFIG_DIR": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    process = await anyio.open_process(
        [sys.executable, str(DAEMON), kind, *flags],
        stdin=subprocess.DEVNULL,
        stderr=None,
        env=environ,
    )
    try:
        with anyio.fail_after(30):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def read_line(process: Any) -> str:
    line = b""
    while not line.endswith(b"\n"):
        line += await process.stdout.receive(1)
    return line.decode().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_exits_0_with_nothing_left_behind(
    kind: Kind, tmp_path: Path, number: signal.Signals
) -> None:
    async with daemon(kind, tmp_path) as process:
        port = int(await read_line(process))
        assert {"woollama.sock", "woollama.addr"} == {p.name for p in (tmp_path / "run").iterdir()}
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await read_until(stream, b"begun")
            process.send_signal(number)
            assert "stopping" == await read_line(process)
            assert (await read_all(stream)).endswith(b"0\r\n\r\n")
        assert 0 == await process.wait()
    assert [] == list((tmp_path / "run").iterdir())


async def test_a_second_signal_ends_at_once(kind: Kind, tmp_path: Path) -> None:
    async with daemon(kind, tmp_path, "for-ever") as process:
        port = int(await read_line(process))
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await read_until(stream, b"begun")
            process.send_signal(signal.SIGTERM)
            assert "stopping" == await read_line(process)
            process.send_signal(signal.SIGTERM)
            assert -signal.SIGTERM == await process.wait()


async def test_uvicorn_without_httptools_has_the_same_limits(tmp_path: Path) -> None:
    async with daemon("uvicorn", tmp_path, "no-httptools") as process:
        port = int(await read_line(process))

        async def raw(data: bytes) -> Reply:
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(data)
                return Reply(await read_all(stream))

        for data in (CHUNKED_AND_LENGTH, TWO_LENGTHS, SPACE_BEFORE_COLON, NO_HTTP):
            reply = await raw(data)
            assert (400, 1) == (reply.status, reply.answers)
        head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
        assert (await raw(head + b"x" * 200_000)).status in {400, 431}
        end = b"Connection: close\r\n\r\n"
        foreign = await raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n" + end)
        assert 403 == foreign.status
        async with await anyio.connect_unix(tmp_path / "run" / "woollama.sock") as stream:
            await stream.send(b"GET /slow HTTP/1.1\r\nHost: any\r\n\r\n")
            await read_until(stream, b"begun")
            process.terminate()
            assert (await read_all(stream)).endswith(b"0\r\n\r\n")
        assert 0 == await process.wait()


async def test_what_a_killed_daemon_leaves_is_replaced(kind: Kind, tmp_path: Path) -> None:
    async with daemon(kind, tmp_path) as process:
        await read_line(process)
        process.kill()
        await process.wait()
    assert (tmp_path / "run" / "woollama.sock").exists()
    async with daemon(kind, tmp_path) as process:
        await read_line(process)
        process.terminate()
        assert 0 == await process.wait()
