"""The ``openai`` package, types and client, agrees with what we and the strict chat fake say."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai import AuthenticationError, BadRequestError
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from tests.clients.openai_network import client_of
from tests.clients.typed_dicts import misfits
from woollama.core.canonical import FunctionCall, ToolCall
from woollama.core.testing.fake import say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.golden import load_cases
from woollama.core.wire import WireSettings
from woollama.core.wire.chat import COMPATIBLE

pytestmark = pytest.mark.clients

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dialects" / "compatible"
CASES = [case for case in load_cases(FIXTURES) if case.has("wire_request.json")]
EXTRA_BODIES = {"foo", "top_k", "chat_template_kwargs"}
NOT_OPENAIS = ("reasoning_content", "reasoning_details")
"""What other servers of this dialect have in an assistant's message (OC-9, OC-22)."""

MODEL = "m-1"
HI: Any = {"role": "user", "content": "hi"}
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))
SAID = say("It is 3 C.", calls=[CALL], reasoning="I must look.")
BODY: dict[str, Any] = {"model": MODEL, "messages": [HI]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.name)
def test_what_we_send_is_a_request_but_for_opaque_reasoning(case: Any) -> None:
    body = case.json("wire_request.json")
    body = {key: value for key, value in body.items() if key not in EXTRA_BODIES}
    for message in body["messages"]:
        for key in NOT_OPENAIS:
            message.pop(key, None)
        for called in message.get("tool_calls", ()):
            called.pop("extra_content", None)
    streaming, whole = CompletionCreateParamsStreaming, CompletionCreateParamsNonStreaming
    assert [] == misfits(body, streaming if body.get("stream") else whole)


def test_what_the_fake_says_is_a_completion() -> None:
    reply = CompatibleFake().render(SAID, BODY)
    ChatCompletion.model_validate_json(reply.chunks[0], strict=True)


def test_what_the_fake_streams_are_chunks() -> None:
    asked = {**BODY, "stream": True, "stream_options": {"include_usage": True}}
    reply = CompatibleFake().render(SAID, asked)
    *events, done = [chunk.removeprefix(b"data: ") for chunk in reply.chunks]
    assert b"[DONE]\n\n" == done
    for event in events:
        ChatCompletionChunk.model_validate_json(event, strict=True)


def test_the_client_reads_a_reply_of_the_fake() -> None:
    with client_of(CompatibleFake([SAID])) as client:
        message = client.chat.completions.create(model=MODEL, messages=[HI]).choices[0].message
    assert "It is 3 C." == message.content
    assert "I must look." == message.model_dump()["reasoning_content"]
    assert ["call_1"] == [call.id for call in message.tool_calls or ()]


def test_the_client_adds_a_stream_of_the_fake_up() -> None:
    with (
        client_of(CompatibleFake([SAID])) as client,
        client.chat.completions.stream(
            model=MODEL, messages=[HI], tools=[TOOL], stream_options={"include_usage": True}
        ) as stream,
    ):
        completion = stream.get_final_completion()
    message = completion.choices[0].message
    assert "It is 3 C." == message.content
    assert completion.usage is not None
    call = (message.tool_calls or [])[0]
    assert ("call_1", "look", {"city": "Oslo"}) == (
        call.id,
        call.function.name,
        json.loads(call.function.arguments),
    )


def test_the_client_reads_a_refusal_of_the_fake() -> None:
    fake = CompatibleFake([SAID], effort_beside_tools="refuse")
    with client_of(fake) as client, pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(
            model=MODEL, messages=[HI], tools=[TOOL], reasoning_effort="high"
        )
    assert "reasoning_effort" == caught.value.param
    with client_of(CompatibleFake(key="other")) as client, pytest.raises(AuthenticationError):
        client.models.list()


def test_what_the_client_sends_in_a_whole_play_is_read_and_sent_on() -> None:
    """A client that echoes what it got, nulls and all."""
    fake = CompatibleFake([SAID, say("bye")])
    with client_of(fake) as client:
        first = client.chat.completions.create(model=MODEL, messages=[HI], tools=[TOOL])
        said: Any = first.choices[0].message.model_dump(exclude_none=True)
        result: Any = {"role": "tool", "tool_call_id": "call_1", "content": "3 C"}
        client.chat.completions.create(model=MODEL, messages=[HI, said, result], tools=[TOOL])
    sent = json.loads(fake.requests[-1].body)
    request = COMPATIBLE.codec.decode_request(sent)
    wire = COMPATIBLE.codec.encode(
        request, base_url="http://peer.test/v1", stream=False, settings=WireSettings()
    )
    assert sent == json.loads(wire.body)
