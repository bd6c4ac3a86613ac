"""The ``openai`` package, types and client, agrees with what we and the Responses fake say."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai import AuthenticationError, BadRequestError
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from tests.clients.openai_network import client_of
from tests.clients.typed_dicts import misfits
from woollama.core.canonical import FunctionCall, ToolCall
from woollama.core.testing.fake import FakeReply, say
from woollama.core.testing.fakes.responses import ResponsesFake
from woollama.core.testing.golden import load_cases
from woollama.core.wire import WireSettings
from woollama.core.wire.responses import RESPONSES

pytestmark = pytest.mark.clients

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dialects" / "responses"
CASES = [case for case in load_cases(FIXTURES) if case.has("wire_request.json")]
NOT_IN_THE_API = {"seed", "stop"}
"""What one case sends so that the server refuses it (R-11)."""

MODEL = "gpt-r"
BODY: dict[str, Any] = {"model": MODEL, "input": "hi", "store": False}
HI: Any = {"role": "user", "content": "hi"}
TOOL: Any = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))
SAID = say("It is 3 C.", calls=[CALL], reasoning="I must\n\nlook.")
events: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def payloads(reply: FakeReply) -> list[bytes]:
    return [chunk.split(b"data: ", 1)[1] for chunk in reply.chunks]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.name)
def test_what_we_send_is_a_request(case: Any) -> None:
    body = case.json("wire_request.json")
    body = {key: value for key, value in body.items() if key not in NOT_IN_THE_API}
    assert [] == misfits(body, ResponseCreateParamsStreaming)


def test_thinking_that_goes_back_is_an_item_of_the_api() -> None:
    item: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAA",
    }
    body = {**BODY, "input": [HI, item, {"role": "assistant", "content": "ok"}]}
    request = RESPONSES.codec.decode_request(body)
    wire = RESPONSES.codec.encode(
        request,
        base_url="http://peer.test/v1",
        stream=True,
        settings=WireSettings(replay_reasoning=True),
    )
    sent = json.loads(wire.body)
    assert item == sent["input"][1]
    assert [] == misfits(sent, ResponseCreateParamsStreaming)


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "error"])
def test_what_the_fake_says_is_a_response(finish: str) -> None:
    reply = ResponsesFake().render(say("It is 3 C.", finish=finish), BODY)
    Response.model_validate_json(reply.chunks[0], strict=True)


@pytest.mark.parametrize("plan", [False, True])
def test_what_the_fake_streams_are_events(plan: bool) -> None:
    reply = ResponsesFake(plan=plan).render(SAID, {**BODY, "stream": True})
    for payload in payloads(reply):
        event = events.validate_json(payload, strict=True)
        # The package takes any type of event for another one's when fields fit.
        assert json.loads(payload)["type"] == event.type


def test_the_client_reads_a_reply_of_the_fake() -> None:
    with client_of(ResponsesFake([SAID])) as client:
        response = client.responses.create(model=MODEL, input="hi", store=False)
    assert "It is 3 C." == response.output_text
    assert ["reasoning", "message", "function_call"] == [item.type for item in response.output]


def test_the_client_adds_a_stream_of_the_fake_up() -> None:
    with (
        client_of(ResponsesFake([SAID])) as client,
        client.responses.stream(model=MODEL, input="hi", store=False, tools=[TOOL]) as stream,
    ):
        kinds = [event.type for event in stream]
        response = stream.get_final_response()
    assert "It is 3 C." == response.output_text
    assert "response.function_call_arguments.delta" in kinds


def test_the_client_reads_a_refusal_of_the_fake() -> None:
    with client_of(ResponsesFake([SAID])) as client, pytest.raises(BadRequestError) as caught:
        client.responses.create(model=MODEL, input="hi", extra_body={"seed": 7})
    assert ("seed", "unknown_parameter") == (caught.value.param, caught.value.code)
    with client_of(ResponsesFake([SAID], key="other")) as client:
        with pytest.raises(AuthenticationError):
            client.responses.create(model=MODEL, input="hi")
        with pytest.raises(AuthenticationError):
            client.models.list()


def test_what_the_client_sends_in_a_whole_play_is_read_and_sent_on() -> None:
    """A client that echoes what it got: every item of the reply goes back, then the result."""
    fake = ResponsesFake([SAID, say("bye")])
    conversation: list[Any] = [HI]
    with client_of(fake) as client:
        first = client.responses.create(
            model=MODEL, input=conversation, store=False, tools=[TOOL], instructions="Be brief."
        )
        conversation += [item.to_dict() for item in first.output]
        conversation.append(
            {"type": "function_call_output", "call_id": "call_1", "output": "3 C in Oslo"}
        )
        client.responses.create(model=MODEL, input=conversation, store=False, tools=[TOOL])
    request = RESPONSES.codec.decode_request(json.loads(fake.requests[-1].body))
    assert ["UserMessage", "AssistantMessage", "ToolMessage"] == [
        type(message).__name__ for message in request.messages
    ]
    wire = RESPONSES.codec.encode(
        request,
        base_url="http://peer.test/v1",
        stream=True,
        settings=WireSettings(replay_reasoning=True),
    )
    sent = json.loads(wire.body)
    assert [] == misfits(sent, ResponseCreateParamsStreaming)
    kinds = [item.get("type", "message") for item in sent["input"]]
    assert ["message", "reasoning", "message", "function_call", "function_call_output"] == kinds
