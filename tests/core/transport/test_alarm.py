"""An alarm that is set often, on the event loop's own clock."""

import asyncio

import anyio
import pytest

from woollama.core.transport.alarm import Alarm

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Bell:
    """Counts how often it was rung."""

    def __init__(self) -> None:
        self.rung = 0
        self.once = asyncio.Event()

    def ring(self) -> None:
        self.rung += 1
        self.once.set()


async def at_least_until(due: float) -> None:
    """Until everything that is due by then has run."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_at(due, passed.set)
    await passed.wait()


async def test_it_rings_once_at_its_time() -> None:
    loop, bell = asyncio.get_running_loop(), Bell()
    alarm = Alarm(loop, bell.ring)
    alarm.set_in(0)
    assert alarm.is_set
    with anyio.fail_after(5):
        await bell.once.wait()
    assert (1, False) == (bell.rung, alarm.is_set)


async def test_put_off_it_rings_at_the_later_time_only() -> None:
    loop, bell = asyncio.get_running_loop(), Bell()
    alarm, now = Alarm(loop, bell.ring), loop.time()
    alarm.set(now)
    alarm.set(now + 0.02)
    await at_least_until(now)
    assert 0 == bell.rung
    with anyio.fail_after(5):
        await bell.once.wait()
    assert loop.time() >= now + 0.02


async def test_brought_forward_it_rings_in_time() -> None:
    loop, bell = asyncio.get_running_loop(), Bell()
    alarm = Alarm(loop, bell.ring)
    alarm.set_in(60)
    alarm.set_in(0)
    with anyio.fail_after(5):
        await bell.once.wait()


@pytest.mark.parametrize("how", ["set to never", "closed"])
async def test_taken_back_it_does_not_ring(how: str) -> None:
    loop, bell = asyncio.get_running_loop(), Bell()
    alarm, now = Alarm(loop, bell.ring), loop.time()
    alarm.set(now)
    if how == "closed":
        alarm.close()
    else:
        alarm.set(None)
    await at_least_until(now)
    assert (0, False) == (bell.rung, alarm.is_set)


async def test_it_can_be_set_again_after_it_rang_or_was_taken_back() -> None:
    bell = Bell()
    alarm = Alarm(asyncio.get_running_loop(), bell.ring)
    for expected in (1, 2):
        alarm.set(None)
        alarm.set_in(0)
        with anyio.fail_after(5):
            await bell.once.wait()
        bell.once.clear()
        assert expected == bell.rung
