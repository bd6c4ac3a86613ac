"""What the fast transport has to itself, against a real server on loopback."""

import anyio
import pytest

from woollama.core.testing.upstream import Exchange, head, serve, whole
from woollama.core.transport import NO_LIMITS
from woollama.core.transport import fast as module
from woollama.core.transport.fast import FastTransport
from woollama.core.wire import WireRequest

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def post(url: str, body: bytes = b"{}") -> WireRequest:
    return WireRequest(method="POST", url=f"{url}/chat/completions", body=body)


async def read(transport: FastTransport, url: str, body: bytes = b"{}") -> bytes:
    with anyio.fail_after(5):
        async with transport.open(post(url, body), timeouts=NO_LIMITS) as response:
            return b"".join([chunk async for chunk in response.chunks])


async def echo(exchange: Exchange) -> None:
    await exchange.send(whole(exchange.request.body))


async def test_a_reply_that_was_left_gives_nothing_of_the_next_one() -> None:
    """The connection is the same; whose bytes come on it is not."""
    transport = FastTransport()
    async with serve(echo) as upstream:
        async with transport.open(post(upstream.url, b"mine"), timeouts=NO_LIMITS) as mine:
            chunks = aiter(mine.chunks)
            assert b"mine" == await anext(chunks)
        async with transport.open(post(upstream.url, b"other"), timeouts=NO_LIMITS) as other:
            with pytest.raises(RuntimeError, match="this reply was left"):
                await anext(chunks)
            assert [b"other"] == [chunk async for chunk in other.chunks]
        assert 1 == len(upstream.connections)
        await transport.aclose()


async def test_what_nobody_uses_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEEP_ALIVE_S", 0.05)
    transport = FastTransport()
    async with serve(echo) as upstream:
        assert b"1" == await read(transport, upstream.url, b"1")
        with anyio.fail_after(5):
            await upstream.connections[0].gone.wait()
        assert b"2" == await read(transport, upstream.url, b"2")
        assert 2 == len(upstream.connections)
        await transport.aclose()


async def test_the_address_of_a_name_that_answers_is_found() -> None:
    """``localhost`` may have two, and the server listens on one (RFC 8305)."""
    transport = FastTransport()
    async with serve(echo) as upstream:
        assert b"{}" == await read(transport, f"http://localhost:{upstream.port}/v1")
        await transport.aclose()


async def test_an_ipv6_address_is_reached() -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            received = b""
            while b"\r\n\r\n{}" not in received:
                received += await stream.receive()
            assert f"host: [::1]:{port}\r\n".encode() in received
            await stream.send(whole(b"six"))

    listener = await anyio.create_tcp_listener(local_host="::1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    transport = FastTransport()
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        assert b"six" == await read(transport, f"http://[::1]:{port}/v1")
        await transport.aclose()
        tasks.cancel_scope.cancel()


async def test_closing_cuts_what_is_under_way() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "9"}) + b"part")
        await exchange.gone.wait()

    transport = FastTransport()
    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with transport.open(post(upstream.url), timeouts=NO_LIMITS) as response:
                chunks = aiter(response.chunks)
                assert b"part" == await anext(chunks)
                await transport.aclose()
                with pytest.raises(module.TransportError, match="closed the connection"):
                    await anext(chunks)
            await upstream.connections[0].gone.wait()
