"""A turn: its deltas as they come, its headers, and an upstream request that ends with it."""

from typing import Any

import anyio
import pytest

from tests.core.chat_upstream import DONE, HI, STREAM, completion, delta, event, says, streams
from woollama.core import Provider, Transport
from woollama.core.canonical import Delta, Finish, ReasoningDelta, TextDelta, request_from_openai
from woollama.core.errors import CannotEncode, ProviderError, TransportError, TruncatedReply
from woollama.core.providers import Target
from woollama.core.testing.upstream import Exchange, Script, Upstream, chunked, head, serve
from woollama.core.transport.http import HttpTransport
from woollama.core.turn import Turn, fetch_reply, new_id, open_turn
from woollama.core.wire import WireSettings

REQUEST = request_from_openai({"model": "m", "messages": HI})


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def transport() -> Any:
    transport = HttpTransport()
    yield transport
    await transport.aclose()


def target(upstream: Upstream, **fields: Any) -> Target:
    return Target(Provider("x", upstream.url, **fields), "m")


async def deltas_of(turn: Turn) -> list[Delta]:
    return [delta async for delta in turn.deltas]


async def test_the_deltas_of_one_read_come_together(transport: Transport) -> None:
    first, second = anyio.Event(), anyio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers=STREAM))
        await exchange.send(chunked([delta("a") + delta("b")], end=False))
        await first.wait()
        await exchange.send(chunked([delta("c", finish="stop") + DONE]))
        await second.wait()

    with anyio.fail_after(5):
        async with (
            serve(script) as upstream,
            open_turn(target(upstream), REQUEST, transport=transport, stream=True) as turn,
        ):
            batches = aiter(turn.batches)
            texts = [d for d in await anext(batches) if isinstance(d, TextDelta)]
            assert [TextDelta("a"), TextDelta("b")] == texts
            first.set()
            assert (TextDelta("c"),) == await anext(batches)
            assert (Finish("stop", "stop"),) == await anext(batches)
            second.set()


async def test_a_turn_has_the_headers_worth_passing_on(transport: Transport) -> None:
    headers = {"x-request-id": "r", "server": "s", "x-ratelimit-limit-tokens": "9"}
    async with (
        serve(says(headers=headers)) as upstream,
        open_turn(target(upstream), REQUEST, transport=transport, stream=False) as turn,
    ):
        assert {"x-request-id": "r", "x-ratelimit-limit-tokens": "9"} == turn.headers


async def test_a_turn_names_what_was_left_out(transport: Transport) -> None:
    settings = WireSettings(drop_params=frozenset({"seed"}))
    request = request_from_openai({"model": "m", "messages": HI, "seed": 7})
    async with (
        serve(says()) as upstream,
        open_turn(
            target(upstream, settings=settings), request, transport=transport, stream=False
        ) as turn,
    ):
        assert ("seed",) == turn.dropped


async def test_what_the_dialect_cannot_say_is_raised_before_anything_is_sent(
    transport: Transport,
) -> None:
    request = request_from_openai({"model": "m", "messages": HI, "options": {"num_ctx": 1}})
    async with serve(says()) as upstream:
        with pytest.raises(CannotEncode):
            await fetch_reply(target(upstream), request, transport=transport)
        assert [] == upstream.requests


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (says({"error": {"message": "no"}}, status=401), ProviderError),
        (says({"error": {"message": "no"}}), ProviderError),
        (streams(delta("Par")), TruncatedReply),
        (streams(delta("Par"), end=False), TransportError),
        (streams(delta("Par"), event({"error": "no"})), ProviderError),
    ],
)
async def test_p_24_a_16_nothing_is_released_before_a_good_end(
    transport: Transport, script: Script, kind: type[Exception]
) -> None:
    async with serve(script) as upstream:
        with pytest.raises(kind):
            await fetch_reply(target(upstream), REQUEST, transport=transport)


async def test_a_whole_reply_may_come_as_a_stream(transport: Transport) -> None:
    async with serve(streams(delta("Par"), delta("is", finish="length"), DONE)) as upstream:
        reply = await fetch_reply(target(upstream), REQUEST, transport=transport)
    assert ("Paris", "length", "m-2026") == (
        reply.message.content,
        reply.finish_reason,
        reply.model,
    )


async def test_c_10_thinking_between_tags_is_parted_where_the_operator_says_so(
    transport: Transport,
) -> None:
    tagged = streams(delta("<think>hm"), delta("</think>yes", finish="stop"), DONE)
    async with serve(tagged) as upstream:
        for tags, expected in ((True, ("yes", "hm")), (False, ("<think>hm</think>yes", None))):
            asked = target(upstream, think_tags=tags)
            reply = await fetch_reply(asked, REQUEST, transport=transport)
            assert expected == (reply.message.content, reply.message.reasoning)


async def test_thinking_between_tags_is_parted_in_a_stream(transport: Transport) -> None:
    tagged = streams(delta("<think>hm"), delta("</think>yes", finish="stop"), DONE)
    async with (
        serve(tagged) as upstream,
        open_turn(
            target(upstream, think_tags=True), REQUEST, transport=transport, stream=True
        ) as turn,
    ):
        found = await deltas_of(turn)
    assert [ReasoningDelta("hm"), TextDelta("yes")] == found[1:3]


async def test_leaving_a_turn_closes_the_upstream_request(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers=STREAM))
        await exchange.send(chunked([delta("a")], end=False))
        await exchange.gone.wait()

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with open_turn(
                target(upstream), REQUEST, transport=transport, stream=True
            ) as turn:
                await anext(aiter(turn.batches))
            await upstream.connections[0].gone.wait()


async def test_a_turn_that_is_never_read_closes_the_upstream_request(
    transport: Transport,
) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "1000"}))
        await exchange.gone.wait()

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with open_turn(target(upstream), REQUEST, transport=transport, stream=False):
                pass
            await upstream.connections[0].gone.wait()


async def test_an_error_of_the_callers_own_passes_unchanged(transport: Transport) -> None:
    mine = KeyError("mine")
    async with serve(says()) as upstream:
        with pytest.raises(KeyError) as caught:
            async with open_turn(target(upstream), REQUEST, transport=transport, stream=False):
                raise mine
    assert mine is caught.value


async def test_the_usage_and_the_words_of_the_server_are_kept(transport: Transport) -> None:
    async with serve(says(completion(id="chatcmpl-9"))) as upstream:
        reply = await fetch_reply(target(upstream), REQUEST, transport=transport)
    assert ("chatcmpl-9", 1, "stop") == (reply.id, reply.created, reply.native_finish_reason)
    assert reply.usage is not None
    assert 3 == reply.usage.total_tokens


def test_c_7_a_fresh_id_is_one_of_its_own_and_fits_everywhere() -> None:
    ids = {new_id() for _ in range(100)}
    assert 100 == len(ids)
    assert all(len(one) == 24 and one.isalnum() for one in ids)
