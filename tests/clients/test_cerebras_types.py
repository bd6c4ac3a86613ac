"""The ``openai`` package, types and client, agrees with what we and the strict Cerebras say."""

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
from woollama.core.testing.fakes.cerebras import CerebrasFake
from woollama.core.testing.golden import load_cases

pytestmark = pytest.mark.clients

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dialects" / "cerebras"
CASES = [case for case in load_cases(FIXTURES) if case.has("wire_request.json")]
EXTRA_BODIES = {"reasoning_format", "foo"}
"""What the cases put into ``extra_body``, which is sent unseen."""

MODEL = "gpt-oss-120b"
HI: Any = {"role": "user", "content": "hi"}
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))
SAID = say("It is 3 C.", calls=[CALL], reasoning="I must look.")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.name)
def test_what_we_send_is_a_request_but_for_the_name_of_the_thinking(case: Any) -> None:
    body = case.json("wire_request.json")
    body = {key: value for key, value in body.items() if key not in EXTRA_BODIES}
    for message in body["messages"]:
        message.pop("reasoning", None)
    hint = (
        CompletionCreateParamsStreaming
        if body.get("stream")
        else CompletionCreateParamsNonStreaming
    )
    assert [] == misfits(body, hint)


def test_what_the_fake_says_is_a_completion() -> None:
    reply = CerebrasFake().render(SAID, {"model": MODEL, "messages": [HI]})
    ChatCompletion.model_validate_json(reply.chunks[0], strict=True)


def test_what_the_fake_streams_are_chunks() -> None:
    reply = CerebrasFake().render(SAID, {"model": MODEL, "messages": [HI], "stream": True})
    *events, done = [chunk.removeprefix(b"data: ") for chunk in reply.chunks]
    assert b"[DONE]\n\n" == done
    for event in events:
        # The package types a fragment's id as optional and its name likewise (CB-4).
        ChatCompletionChunk.model_validate_json(event, strict=True)


def test_the_client_reads_a_reply_of_the_fake() -> None:
    with client_of(CerebrasFake([SAID])) as client:
        message = client.chat.completions.create(model=MODEL, messages=[HI]).choices[0].message
    assert "It is 3 C." == message.content
    assert "I must look." == message.model_dump()["reasoning"]
    assert ["call_1"] == [call.id for call in message.tool_calls or ()]


def test_the_client_adds_a_stream_of_the_fake_up() -> None:
    with (
        client_of(CerebrasFake([SAID])) as client,
        client.chat.completions.stream(model=MODEL, messages=[HI], tools=[TOOL]) as stream,
    ):
        message = stream.get_final_completion().choices[0].message
    assert "It is 3 C." == message.content
    call = (message.tool_calls or [])[0]
    assert ("call_1", "look", {"city": "Oslo"}) == (
        call.id,
        call.function.name,
        json.loads(call.function.arguments),
    )


def test_the_client_reads_a_refusal_of_the_fake() -> None:
    with client_of(CerebrasFake([SAID])) as client, pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(
            model=MODEL, messages=[HI], extra_body={"enable_thinking": True}
        )
    assert "wrong_api_format" == caught.value.code
    assert "property 'enable_thinking' is unsupported" in caught.value.message


def test_the_clients_key_is_in_the_place_that_is_read() -> None:
    with client_of(CerebrasFake(key="k")) as client:
        assert [MODEL, "zai-glm-4.7"] == [model.id for model in client.models.list()]
    with client_of(CerebrasFake(key="k"), "other") as client, pytest.raises(AuthenticationError):
        client.models.list()
