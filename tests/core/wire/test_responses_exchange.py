"""Whole turns against the strict fakes: R-13 to R-19, A-14 to A-16, P-20, P-22 to P-24."""

from typing import Any

import anyio
import msgspec
import pytest

from tests.core.wire.exchange import HI, WEATHER, call, stream
from woollama.core.canonical import Delta, TextDelta, request_from_openai
from woollama.core.errors import InferenceError, ProviderError, TruncatedReply
from woollama.core.providers import ModelRegistry, Provider, Target
from woollama.core.testing.fake import Fake, FakeReply, FakeTransport, say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.fakes.responses import ResponsesFake
from woollama.core.turn import fetch_reply, open_turn

pytestmark = pytest.mark.anyio

CONVERSATION: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        HI,
        {"role": "assistant", "content": None, "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "3 C"},
        HI,
    ],
    "tools": [WEATHER],
    "reasoning_effort": "high",
}


def target(dialect: str) -> Target:
    provider = Provider("up", "http://peer.test/v1", dialect=dialect)
    return ModelRegistry([provider]).resolve("up/m")


async def ask(fake: Fake, dialect: str, **fields: Any) -> Any:
    request = request_from_openai({**CONVERSATION, **fields})
    with anyio.fail_after(5):
        return await fetch_reply(
            target(dialect), request, transport=FakeTransport(fake), api_key="k"
        )


async def test_p_22_only_the_dialect_decides_whether_an_effort_goes_beside_tools() -> None:
    """A-14, R-18: the chat fake refuses it with advice, the Responses fake answers."""
    fake = CompatibleFake([say("ok")], effort_beside_tools="refuse")
    with pytest.raises(ProviderError) as caught:
        await ask(fake, "compatible")
    assert caught.value.hint is not None
    assert 'dialect = "responses"' in caught.value.hint
    reply = await ask(ResponsesFake([say("ok")]), "responses")
    assert "ok" == reply.message.content


async def test_p_22_another_400_gets_no_advice() -> None:
    fake = CompatibleFake([say("ok")], cap_field="max_completion_tokens")
    with pytest.raises(ProviderError) as caught:
        await ask(fake, "compatible", max_tokens=9)
    assert caught.value.hint is None


async def test_p_23_the_plan_server_is_read_whatever_label_it_uses() -> None:
    """R-12 to R-16: no system item, a stream, nothing stored, an empty terminal output."""
    fake = ResponsesFake([say("It is warm.", reasoning="Hm.")], plan=True)
    reply = await ask(fake, "responses")
    assert ("It is warm.", "Hm.") == (reply.message.content, reply.message.reasoning)
    sent = fake.requests[0].json()
    assert ("Be brief.", True, False) == (sent["instructions"], sent["stream"], sent["store"])


async def listen(transport: FakeTransport, seen: list[Delta]) -> None:
    request = request_from_openai(CONVERSATION)
    with anyio.fail_after(5):
        async with open_turn(
            target("responses"), request, transport=transport, stream=True, api_key="k"
        ) as turn:
            async for delta in turn.deltas:
                seen += (delta,)


def cut(label: str) -> FakeReply:
    whole = ResponsesFake().render(say("secret words"), {"model": "m", "input": "", "stream": True})
    return msgspec.structs.replace(whole, headers={"content-type": label}, chunks=whole.chunks[:-1])


async def test_r_14_a_cut_stream_is_told_with_its_label_and_without_its_body() -> None:
    with pytest.raises(TruncatedReply) as caught:
        await ask(ResponsesFake([cut("text/odd")]), "responses")
    assert "text/odd" in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_p_24_not_streaming_releases_nothing_before_a_good_end() -> None:
    """R-13, R-17, A-16: the same bytes give text in live mode, and only an error in the other."""
    transport = FakeTransport(ResponsesFake([cut("text/event-stream")]))
    seen: list[Delta] = []
    with pytest.raises(TruncatedReply):
        await listen(transport, seen)
    assert "secret words" == "".join(d.text for d in seen if isinstance(d, TextDelta))
    assert 0 == transport.open_replies
    with pytest.raises(TruncatedReply):
        await ask(ResponsesFake([cut("text/event-stream")]), "responses")


async def test_p_24_a_failed_response_releases_nothing_either() -> None:
    failed = stream(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "par"},
        {"type": "response.failed", "response": {"error": {"message": "oops"}}},
    )
    with pytest.raises(InferenceError, match="oops"):
        await ask(ResponsesFake([FakeReply(chunks=(failed,))]), "responses")


async def test_a_15_the_key_goes_where_the_dialect_reads_it_and_nowhere_else() -> None:
    for dialect, fake in (
        ("responses", ResponsesFake([say("ok")], key="k")),
        ("compatible", CompatibleFake([say("ok")], key="k")),
    ):
        await ask(fake, dialect)
        headers = fake.requests[0].headers
        assert {"authorization": "Bearer k"} == {
            name: value for name, value in headers.items() if "k" in value.split()
        }
