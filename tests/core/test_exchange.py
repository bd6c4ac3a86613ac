"""One exchange: a refusal keeps its status whatever becomes of its body; bodies have limits."""

from collections.abc import AsyncIterator, Iterable

import anyio
import pytest

from woollama.core import Provider
from woollama.core.errors import InferenceError, ProviderError, ReplyError, TransportError
from woollama.core.exchange import (
    LIMIT_ERROR_BYTES,
    name_provider,
    open_reply,
    read_body,
    read_out,
)
from woollama.core.providers import Target
from woollama.core.testing.upstream import Exchange, Script, Upstream, head, serve, whole
from woollama.core.transport import NO_LIMITS, Timeouts
from woollama.core.transport.http import HttpTransport
from woollama.core.wire import WireRequest

SECRET = "sk-s3cret-0123456789"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def target(upstream: Upstream) -> Target:
    return Target(Provider("x", upstream.url), "m")


async def refused(script: Script, timeouts: Timeouts = NO_LIMITS) -> InferenceError:
    transport = HttpTransport()
    with anyio.fail_after(5):
        async with serve(script) as upstream:
            wire = WireRequest(method="POST", url=f"{upstream.url}/x", body=b"{}")
            reply = open_reply(target(upstream), wire, transport=transport, timeouts=timeouts)
            with pytest.raises(InferenceError) as caught:
                await reply.__aenter__()
            await transport.aclose()
    return caught.value


@pytest.mark.parametrize("reset", [False, True])
async def test_a_refusal_whose_body_breaks_off_keeps_its_status(*, reset: bool) -> None:
    async def script(exchange: Exchange) -> None:
        headers = {"content-length": "999", "retry-after": "3", "x-request-id": "r"}
        await exchange.send(head(429, headers) + b'{"error": {"mess')
        await (exchange.reset() if reset else exchange.close())

    error = await refused(script)
    assert isinstance(error, ProviderError)
    assert (429, 3.0, "r", "rate_limit") == (
        error.status,
        error.retry_after,
        error.request_id,
        error.kind,
    )


async def test_a_refusal_whose_body_never_ends_keeps_its_status() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(500, {"content-length": "999"}) + b"busy")
        await exchange.gone.wait()

    error = await refused(script, Timeouts(between=0.05))
    assert (500, "busy") == (error.status, error.message)


async def test_of_a_refusal_only_so_much_is_read() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(500, {"content-length": str(1 << 40)}))
        while not exchange.gone.is_set():
            await exchange.send(b"x" * 65536)

    error = await refused(script)
    assert (500, "x" * 500) == (error.status, error.message)
    assert LIMIT_ERROR_BYTES == len(error.payload)


async def test_a_redirect_without_a_place_is_told() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(whole(b"", status=304))

    error = await refused(script)
    assert ("redirect", 304) == (error.kind, getattr(error, "peer_status", None))
    assert "'elsewhere'" in error.message


class Chunks:
    """A reply whose body is at hand."""

    status = 200

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.headers: dict[str, str] = {}
        self.left = list(pieces)

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)


@pytest.mark.parametrize(("limit", "body"), [(100, b"abcd"), (3, b"abc"), (2, b"ab")])
async def test_a_body_is_read_up_to_its_limit(limit: int, body: bytes) -> None:
    assert body == await read_body(Chunks([b"ab", b"cd"]), limit_bytes=limit)


async def test_reading_out_ends_at_the_end() -> None:
    reply = Chunks([b"ab", b"cd"])
    await read_out(reply.chunks)
    assert [] == reply.left


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", SECRET)
    return Target(Provider("x", "http://h/v1", "WOOLLAMA_TEST_KEY"), "m")


def test_a_failed_connection_says_whose_it_is_once(named: Target) -> None:
    error = TransportError("http://h cannot be reached.", kind="connect")
    name_provider(error, named)
    name_provider(error, named)
    assert "Provider 'x': http://h cannot be reached." == error.message == error.args[0]


def test_another_error_keeps_its_words_and_loses_the_key(named: Target) -> None:
    error = ReplyError(f"odd {SECRET}", hint=f"see {SECRET}", payload={"a": [SECRET]})
    name_provider(error, named)
    assert "odd *** see ***" == str(error)
    assert {"a": ["***"]} == error.payload
    assert SECRET not in repr(error)


def test_a_payload_too_deep_to_look_through_is_left_out(named: Target) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    error = ReplyError("m", payload=deep)
    name_provider(error, named)
    assert error.payload is None


def test_a_missing_key_hides_nothing_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WOOLLAMA_TEST_KEY", raising=False)
    error = ReplyError("m", payload={"a": 1})
    name_provider(error, Target(Provider("x", "http://h/v1", "WOOLLAMA_TEST_KEY"), "m"))
    assert ("m", {"a": 1}) == (error.message, error.payload)


@pytest.mark.parametrize("key", ["k", "short"])
def test_a_key_that_is_a_common_word_is_not_looked_for(key: str) -> None:
    error = ReplyError("the short keyword")
    name_provider(error, Target(Provider("x", "http://h/v1", extra_headers={"x-key": key}), "m"))
    assert "the short keyword" == error.message
