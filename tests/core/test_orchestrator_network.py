"""Runs over real sockets, by both transports: a whole story, and who hears when a caller leaves."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from tests.core.scripted import HI, KEY, Tools, calls, recipe
from woollama.core import ModelRegistry, Provider, Timeouts, Transport, orchestrate_events
from woollama.core.errors import TransportError
from woollama.core.orchestrator import EventIter
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.upstream import Exchange, Upstream, head, serve
from woollama.core.transport.fast import FastTransport
from woollama.core.transport.http import HttpTransport

HOW = pytest.mark.parametrize("managed", [False, True], ids=["for", "with"])


@pytest.fixture(params=["asyncio-fast", "asyncio-http", "trio-http"])
def network(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def anyio_backend(network: str) -> str:
    return network.partition("-")[0]


@pytest.fixture
async def transport(network: str) -> AsyncGenerator[Transport]:
    made = FastTransport() if network.endswith("fast") else HttpTransport()
    yield made
    await made.aclose()


def events_from(upstream: Upstream, transport: Transport, **more: Any) -> EventIter:
    registry = ModelRegistry([Provider("up", upstream.url)])
    return orchestrate_events(
        recipe("a"),
        [HI],
        Tools("a"),
        stream=True,
        registry=registry,
        transport=transport,
        api_key=KEY,
        **more,
    )


async def drain(events: EventIter, *, managed: bool) -> list[dict[str, Any]]:
    if not managed:
        return [event async for event in events]
    async with events:
        return [event async for event in events]


@HOW
async def test_a_run_over_sockets(transport: Transport, managed: bool) -> None:
    with anyio.fail_after(5):
        async with serve(CompatibleFake([calls("a"), say("it is done")])) as upstream:
            given = events_from(upstream, transport, run_timeout_s=60, timeouts=Timeouts(whole=60))
            events = await drain(given, managed=managed)
    text = "".join(event["content"] for event in events if event["type"] == "delta")
    assert ("it is done", "final") == (text, events[-1]["type"])


async def silent(exchange: Exchange) -> None:
    """Begins a reply, and says nothing more."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    stream = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    await exchange.send(head(200, stream) + b"%x\r\n%s\r\n" % (len(chunk), chunk))
    await exchange.gone.wait()


@HOW
async def test_leaving_closes_the_connection(transport: Transport, managed: bool) -> None:
    with anyio.fail_after(5):
        async with serve(silent) as upstream:
            events = events_from(upstream, transport)
            if managed:
                async with events:
                    await anext(events)
            else:
                await anext(events)
                await events.aclose()
            await upstream.exchanges[0].gone.wait()


@HOW
async def test_a_cancelled_reader_closes_the_connection(
    transport: Transport, managed: bool
) -> None:
    with anyio.fail_after(5):
        async with serve(silent) as upstream:
            events = events_from(upstream, transport)

            async def read() -> None:
                await drain(events, managed=managed)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await upstream.wait_for(1)
                tasks.cancel_scope.cancel()
            await upstream.exchanges[0].gone.wait()


@HOW
async def test_the_deadline_of_the_run_closes_the_connection(
    transport: Transport, managed: bool
) -> None:
    with anyio.fail_after(5):
        async with serve(silent) as upstream:
            given = events_from(upstream, transport, run_timeout_s=0.05)
            with pytest.raises(TransportError) as caught:
                await drain(given, managed=managed)
            # On a slow machine it may pass before the request is there.
            for exchange in upstream.exchanges:
                await exchange.gone.wait()
    assert (504, "timeout") == (caught.value.status, caught.value.kind)
