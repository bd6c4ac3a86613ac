"""A client that leaves: what both runners tell a request, and how its work ends by it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import anyio
import h2.connection
import h2.events
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.server.at_the_door import Kind, read_until, served
from woollama.server.leaving import LEAVING, Leaving, call_while_connected, while_connected
from woollama.server.surface.client import read_request

Connected = Callable[[Scope, Receive], AbstractContextManager[None]]

GET = b"GET /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(params=["hypercorn", "uvicorn"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(params=[while_connected, call_while_connected])
def connected(request: pytest.FixtureRequest) -> Connected:
    return request.param


class Told:
    """An application that asks to be told, and holds its answer; by the path of each request.

    Paths: ``/head`` begins the answer first, ``/late`` asks only when the client has left,
    ``/back`` takes its callback back, ``/whole`` answers at once and goes on working.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.arrived = anyio.Event()
        self.told = anyio.Event()
        self.go = anyio.Event()
        self.done = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, telling = scope["path"], scope["extensions"][LEAVING]

        def tell() -> None:
            self.calls.append(path)
            self.told.set()

        if path == "/late":
            self.arrived.set()
            while (await receive())["type"] != "http.disconnect":
                pass
        telling(tell)
        if path == "/back":
            telling(None)
        if path in {"/head", "/whole"}:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            more = path == "/head"
            body = path.encode()
            await send({"type": "http.response.body", "body": body, "more_body": more})
        self.arrived.set()
        if path == "/late":
            await self.told.wait()
        else:
            await self.go.wait()
        self.done.set()


@pytest.mark.parametrize("path", [b"", b"head", b"late"])
async def test_a_request_is_told_once_that_its_client_has_left(kind: Kind, path: bytes) -> None:
    app = Told()
    async with served(app, kind=kind) as door:
        async with await door.connect() as stream:
            await stream.send(GET % path)
            await app.arrived.wait()
            assert [] == app.calls
        with anyio.fail_after(5):
            await app.told.wait()
        app.go.set()
        await app.done.wait()
    assert ["/" + path.decode()] == app.calls


async def test_what_was_taken_back_is_not_told(kind: Kind) -> None:
    app = Told()
    async with served(app, kind=kind, drain_timeout_s=0.1) as door:
        async with await door.connect() as stream:
            await stream.send(GET % b"back")
            await app.arrived.wait()
        async with await door.connect() as stream:
            await stream.send(GET % b"head")
            await read_until(stream, b"/head")
        await app.told.wait()
        app.go.set()
    assert ["/head"] == app.calls


async def test_nobody_is_told_behind_the_end_of_its_answer(kind: Kind) -> None:
    app = Told()
    async with served(app, kind=kind, drain_timeout_s=0.1) as door:
        async with await door.connect() as stream:
            await stream.send(GET % b"whole")
            await read_until(stream, b"/whole")
            await app.arrived.wait()
        async with await door.connect() as stream:
            await stream.send(GET % b"head")
            await read_until(stream, b"/head")
        await app.told.wait()
        app.go.set()
    assert ["/head"] == app.calls


async def test_of_two_on_one_connection_the_one_that_is_answered_is_told(kind: Kind) -> None:
    app = Told()
    async with served(app, kind=kind, drain_timeout_s=0.1) as door:
        async with await door.connect() as stream:
            await stream.send(GET % b"whole" + GET % b"head")
            await read_until(stream, b"/head")
        with anyio.fail_after(5):
            await app.told.wait()
        app.go.set()
    assert ["/head"] == app.calls


async def test_a_stream_of_http_2_that_its_client_resets_is_told_alone() -> None:
    app = Told()
    async with served(app, kind="hypercorn", drain_timeout_s=0.1) as door:
        async with await door.connect() as stream:
            client = h2.connection.H2Connection()
            client.initiate_connection()
            for number, path in ((1, "/head"), (3, "/whole")):
                client.send_headers(number, http_2_head(path), end_stream=True)
            await stream.send(client.data_to_send())
            body = b""
            with anyio.fail_after(5):
                while not {b"/head", b"/whole"} <= set(body.split(b"|")):
                    for event in client.receive_data(await stream.receive()):
                        if isinstance(event, h2.events.DataReceived):
                            body += event.data + b"|"
            client.reset_stream(1)
            await stream.send(client.data_to_send())
            with anyio.fail_after(5):
                await app.told.wait()
        app.go.set()
    assert ["/head"] == app.calls


def http_2_head(path: str) -> list[tuple[str, str]]:
    return [
        (":method", "GET"),
        (":path", path),
        (":scheme", "http"),
        (":authority", "127.0.0.1"),
    ]


class Working:
    """An application that works without end for its client, inside ``connected``."""

    def __init__(self, connected: Connected, *, begin: bool, bare: bool) -> None:
        self._connected = connected
        self._begin = begin
        self._bare = bare
        self.arrived = anyio.Event()
        self.ended = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._bare:
            del scope["extensions"]
        await read_request(receive, limit_bytes=10)
        with self._connected(scope, receive):
            if self._begin:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            self.arrived.set()
            await anyio.sleep_forever()
        task = asyncio.current_task()
        assert task is not None
        assert 0 == task.cancelling()
        await anyio.lowlevel.checkpoint()
        self.ended.set()


@pytest.mark.parametrize("bare", [False, True], ids=["told", "watched"])
@pytest.mark.parametrize("begin", [False, True])
async def test_the_work_ends_when_the_client_leaves(
    kind: Kind, connected: Connected, begin: bool, bare: bool
) -> None:
    app = Working(connected, begin=begin, bare=bare)
    async with served(app, kind=kind) as door:
        async with await door.connect() as stream:
            await stream.send(BODY)
            await app.arrived.wait()
        with anyio.fail_after(5):
            await app.ended.wait()


@pytest.mark.parametrize("bare", [False, True], ids=["told", "watched"])
async def test_a_client_that_left_while_it_sent_its_request_is_no_fault(
    kind: Kind, connected: Connected, bare: bool
) -> None:
    outcomes: list[str] = []
    done = anyio.Event()
    app = Working(connected, begin=False, bare=bare)

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ConnectionError as error:
            outcomes.append(str(error))
            raise
        finally:
            done.set()

    async with served(noting, kind=kind) as door:
        async with await door.connect() as stream:
            await stream.send(BODY[:-1])
        await done.wait()
    assert ["the client left before its request was complete"] == outcomes


# By themselves


async def silent() -> Message:
    await anyio.sleep_forever()
    raise AssertionError("it ended")


def asked() -> tuple[Leaving, Scope]:
    leaving = Leaving()
    return leaving, {"type": "http", "extensions": {LEAVING: leaving}}


async def run(connected: Connected, work: Callable[[], Awaitable[Any]], scope: Scope) -> None:
    with connected(scope, silent):
        await work()


async def test_what_is_inside_may_end_by_itself(connected: Connected) -> None:
    for scope in (asked()[1], {"type": "http"}):
        await run(connected, anyio.lowlevel.checkpoint, scope)
        await anyio.lowlevel.checkpoint()


async def test_who_leaves_later_ends_nothing(connected: Connected) -> None:
    leaving, scope = asked()
    await run(connected, anyio.lowlevel.checkpoint, scope)
    leaving.tell()
    await anyio.lowlevel.checkpoint()


async def test_a_fault_inside_is_raised(connected: Connected) -> None:
    async def fail() -> None:
        raise ValueError("inside")

    leaving, scope = asked()
    with pytest.raises(ValueError, match="inside"):
        await run(connected, fail, scope)
    leaving.tell()
    await anyio.lowlevel.checkpoint()


async def test_the_cancelling_of_somebody_else_goes_on(connected: Connected) -> None:
    leaving, scope = asked()
    task = asyncio.create_task(run(connected, anyio.sleep_forever, scope))
    await anyio.wait_all_tasks_blocked()
    leaving.tell()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_scope_inside_keeps_its_own_limit(connected: Connected) -> None:
    leaving, scope = asked()
    passed: list[str] = []

    async def work() -> None:
        with anyio.move_on_after(0):
            await anyio.sleep_forever()
        passed.append("limit")
        leaving.tell()
        await anyio.sleep_forever()
        passed.append("never")

    await run(connected, work, scope)
    assert ["limit"] == passed


async def test_a_run_cleans_up_behind_its_shield() -> None:
    leaving, scope = asked()
    cleaned = anyio.Event()

    async def work() -> None:
        with anyio.CancelScope(shield=True):
            asyncio.get_running_loop().call_soon(leaving.tell)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            cleaned.set()
        await anyio.sleep_forever()

    await run(while_connected, work, scope)
    assert cleaned.is_set()
