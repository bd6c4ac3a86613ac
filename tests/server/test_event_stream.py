"""Events to a client, and the comments between them: surface/client.py."""

import anyio
import pytest
from starlette.types import Message

from woollama.core.scopes import open_tasks
from woollama.server.surface.client import EventStream

COMMENT = b": keep-alive\n\n"


class Client:
    """What arrives; it takes a message only when it is let."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.statuses: list[int] = []
        self.asked = anyio.Event()
        self.go = anyio.Event()
        self.at_once = 0

    async def send(self, message: Message) -> None:
        self.at_once += 1
        assert 1 == self.at_once, "two send at the same time"
        self.asked.set()
        await self.go.wait()
        self.at_once -= 1
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])
        else:
            self.bodies.append(message.get("body", b""))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("woollama.server.surface.client.KEEP_ALIVE_S", 0.01)


async def test_a_comment_that_is_being_sent_is_not_written_into() -> None:
    client = Client()
    with anyio.fail_after(5), EventStream(client.send, {}) as stream:
        await client.asked.wait()
        assert stream.begun
        async with open_tasks() as tasks:
            tasks.start_soon(stream.write, b"event")
            await anyio.wait_all_tasks_blocked()
            client.go.set()
        await stream.end(b"last")
    assert [200] == client.statuses
    assert [COMMENT, b"event", b"last"] == client.bodies


async def test_no_comment_is_written_into_an_event_that_is_being_sent() -> None:
    client = Client()
    with anyio.fail_after(5), EventStream(client.send, {}) as stream:
        async with open_tasks() as tasks:
            tasks.start_soon(stream.write, b"event")
            with anyio.move_on_after(0.1):
                await anyio.sleep_forever()
            client.go.set()
        await stream.end()
    assert [b"event", b""] == client.bodies


async def test_no_comment_follows_the_end() -> None:
    client = Client()
    client.go.set()
    with anyio.fail_after(5), EventStream(client.send, {}) as stream:
        await stream.end(b"last")
        with anyio.move_on_after(0.1):
            await anyio.sleep_forever()
    assert [b"last"] == client.bodies


async def test_a_comment_that_cannot_be_sent_ends_with_the_stream() -> None:
    client = Client()
    with EventStream(client.send, {}):
        await client.asked.wait()
    await anyio.wait_all_tasks_blocked()
    assert [] == client.bodies
