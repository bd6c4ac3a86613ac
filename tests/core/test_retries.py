"""Asking again: what may pass, how long to wait, and never after the first byte (C-16)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from woollama.core import Retries
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TransportError
from woollama.core.retries import NO_RETRIES, enter_with_retries
from woollama.core.transport.network import timed_out, unreachable
from woollama.core.wire.faults import reply_error


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


class Door:
    """Opens after some failures; counts how often it was tried, and how long was waited."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.tried = 0
        self.waits: list[float] = []
        self.open_now = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[str]:
        self.tried += 1
        if self.failures:
            raise self.failures.pop(0)
        self.open_now += 1
        try:
            yield "open"
        finally:
            self.open_now -= 1

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await anyio.lowlevel.checkpoint()

    async def enter(self, retries: Retries) -> str:
        context, text = await enter_with_retries(self.open, retries, sleep=self.sleep)
        assert 1 == self.open_now
        await context.__aexit__(None, None, None)
        assert 0 == self.open_now
        return text


def said_no(status: int, **headers: str) -> ProviderError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply_error(status, named, b"{}", lambda: 0.0)


THREE = Retries(attempts=3, first_wait_s=1.0, longest_wait_s=3.0, longest_asked_s=60.0)


async def test_without_retries_it_is_tried_once() -> None:
    door = Door(said_no(503))
    with pytest.raises(ProviderError):
        await door.enter(NO_RETRIES)
    assert (1, []) == (door.tried, door.waits)


async def test_a_door_that_opens_is_entered_once() -> None:
    door = Door()
    assert "open" == await door.enter(THREE)
    assert (1, []) == (door.tried, door.waits)


MAY_PASS = [
    unreachable("http://h/v1", OSError()),
    timed_out("http://h/v1", "did not accept a connection", 1.0, connecting=True),
    *(said_no(status) for status in (408, 409, 429, 500, 502, 503, 504, 529)),
    said_no(400, x_should_retry="true"),
]
WILL_NOT_PASS = [
    *(said_no(status) for status in (400, 401, 402, 403, 404, 413, 422)),
    said_no(503, x_should_retry="false"),
    reply_error(429, {}, b'{"error": {"code": "insufficient_quota"}}', lambda: 0.0),
    said_no(429, retry_after="61"),
    TransportError("no address", kind="connect", retryable=False),
    TransportError("cut", kind="cut"),
    timed_out("http://h/v1", "did not answer", 1.0),
    ReplyError("odd"),
    InferenceError("other", status=503),
    KeyError("foreign"),
]


@pytest.mark.parametrize("failure", MAY_PASS, ids=str)
async def test_what_may_pass_is_tried_again(failure: InferenceError) -> None:
    door = Door(failure)
    assert "open" == await door.enter(THREE)
    assert 2 == door.tried


@pytest.mark.parametrize("failure", WILL_NOT_PASS, ids=str)
async def test_what_will_not_pass_is_raised_at_once(failure: Exception) -> None:
    door = Door(failure)
    with pytest.raises(type(failure)) as caught:
        await door.enter(THREE)
    assert failure is caught.value
    assert (1, []) == (door.tried, door.waits)


async def test_the_last_failure_is_raised_as_it_is() -> None:
    failures = [said_no(503), said_no(502), said_no(500)]
    door = Door(*failures)
    with pytest.raises(ProviderError) as caught:
        await door.enter(THREE)
    assert failures[-1] is caught.value
    assert (3, 2) == (door.tried, len(door.waits))


async def test_waits_grow_up_to_a_limit_with_up_to_a_quarter_more() -> None:
    door = Door(*(said_no(503) for _ in range(4)))
    await door.enter(Retries(attempts=5, first_wait_s=1.0, longest_wait_s=3.0))
    for base, wait in zip([1.0, 2.0, 3.0, 3.0], door.waits, strict=True):
        assert base <= wait <= base * 1.25


async def test_no_wait_is_possible() -> None:
    door = Door(said_no(503), said_no(503))
    await door.enter(Retries(attempts=3, first_wait_s=0))
    assert [0, 0] == door.waits


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after_ms": "1500", "retry_after": "7"}, 1.5),
        ({"retry_after": "60"}, 60.0),
    ],
)
async def test_oc_33_the_wait_that_the_peer_asks_for_is_obeyed(
    headers: dict[str, str], seconds: float
) -> None:
    door = Door(said_no(429, **headers))
    await door.enter(THREE)
    assert [seconds] == door.waits


async def test_c_16_a_failure_inside_is_not_tried_again() -> None:
    door, failure = Door(), said_no(503)
    context, _ = await enter_with_retries(door.open, THREE, sleep=door.sleep)
    assert not await context.__aexit__(ProviderError, failure, None)
    assert (1, 0) == (door.tried, door.open_now)


async def test_the_real_sleep_is_the_running_librarys() -> None:
    door = Door(said_no(503))
    with anyio.fail_after(5):
        retries = Retries(attempts=2, first_wait_s=0.001)
        context, text = await enter_with_retries(door.open, retries)
        await context.__aexit__(None, None, None)
    assert "open" == text


async def test_cancelling_ends_the_waiting() -> None:
    waiting, never = anyio.Event(), anyio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await never.wait()

    async def enter(door: Door) -> None:
        await enter_with_retries(door.open, THREE, sleep=sleep)

    door = Door(said_no(503))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter, door)
            await waiting.wait()
            tasks.cancel_scope.cancel()
    assert 1 == door.tried


async def test_cancelling_an_attempt_is_no_failure_to_try_again() -> None:
    opening, never, tried = anyio.Event(), anyio.Event(), 0

    @asynccontextmanager
    async def door() -> AsyncGenerator[None]:
        nonlocal tried
        tried += 1
        opening.set()
        await never.wait()
        yield

    async def enter() -> None:
        await enter_with_retries(door, THREE)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter)
            await opening.wait()
            tasks.cancel_scope.cancel()
    assert 1 == tried
