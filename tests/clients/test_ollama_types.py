"""The ``ollama`` package, types and client, agrees with what we send and what our fake says."""

import itertools
import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ollama import ChatResponse, Client, ListResponse, Message, Options, ResponseError
from ollama._types import ChatRequest

from tests.clients.fake_network import httpx_network
from woollama.core.canonical import FunctionCall, Reply, ToolCall, assemble
from woollama.core.testing.fake import Fake, FakeRequest, say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.golden import load_cases
from woollama.core.wire import WireSettings
from woollama.core.wire.ollama import OLLAMA

pytestmark = pytest.mark.clients

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dialects" / "ollama"
CASES = [case for case in load_cases(FIXTURES) if case.has("wire_request.json")]
NEWER_FIELDS = {"truncate", "shift"}
NEWER_MESSAGE_FIELDS = {"tool_call_id"}
NEWER_OPTIONS = {"min_p", "draft_num_predict"}
"""What the server has and the package does not know yet."""

CALL = ToolCall(id="call_1", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))
SAID = say("It is 3 C.", calls=[CALL], reasoning="I must look.", model="m")


@contextmanager
def client_of(fake: Fake) -> Generator[Any]:
    """The package's own client, whose network is the fake. Any: its methods are half typed."""
    with closing(Client(host="http://peer.test", transport=httpx_network(fake))) as client:
        yield client


def check_body(body: dict[str, Any]) -> None:
    assert body.keys() <= ChatRequest.model_fields.keys() | NEWER_FIELDS
    ChatRequest.model_validate(body)
    options = body.get("options", {})
    assert options.keys() <= Options.model_fields.keys() | NEWER_OPTIONS
    Options.model_validate(options)
    for message in body["messages"]:
        assert message.keys() <= Message.model_fields.keys() | NEWER_MESSAGE_FIELDS
        # The package wraps an image that the wire has bare.
        images = message.get("images", [])
        read = Message.model_validate({**message, "images": [{"value": data} for data in images]})
        assert images == read.model_dump()["images"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.name)
def test_what_we_send_is_a_chat_request(case: Any) -> None:
    check_body(case.json("wire_request.json"))


@pytest.mark.parametrize("stream", [True, False])
def test_what_the_fake_says_is_a_chat_response(stream: bool) -> None:
    reply = OllamaFake().render(SAID, {"model": "m", "stream": stream})
    for chunk in reply.chunks:
        response = ChatResponse.model_validate_json(chunk)
        assert response.created_at is not None
        assert "assistant" == response.message.role


def test_the_fakes_list_of_models_is_one() -> None:
    with client_of(OllamaFake(models=["a", "b"])) as client:
        assert ["a", "b"] == [model.model for model in client.list().models]
    body = b"".join(OllamaFake().models(FakeRequest(method="GET", path="/api/tags")).chunks)
    assert ListResponse.model_validate_json(body).models[0].modified_at is not None


def test_the_client_reads_a_reply_of_the_fake() -> None:
    with client_of(OllamaFake([SAID])) as client:
        response = client.chat("m", [{"role": "user", "content": "hi"}], think="low")
    message = response.message
    assert ("It is 3 C.", "I must look.") == (message.content, message.thinking)
    assert message.tool_calls is not None
    assert {"city": "Oslo"} == message.tool_calls[0].function.arguments


def test_the_client_reads_a_stream_of_the_fake() -> None:
    with client_of(OllamaFake([SAID])) as client:
        lines = list(client.chat("m", [{"role": "user", "content": "hi"}], stream=True))
    assert "It is 3 C." == "".join(line.message.content or "" for line in lines)
    assert "I must look." == "".join(line.message.thinking or "" for line in lines)
    assert [True] == [line.done for line in lines if line.done_reason]


def test_the_client_reads_a_refusal_of_the_fake() -> None:
    with (
        client_of(OllamaFake(models=["other"])) as client,
        pytest.raises(ResponseError, match="model 'm' not found") as caught,
    ):
        client.chat("m", [{"role": "user", "content": "hi"}])
    assert 404 == caught.value.status_code


def look(city: str) -> str:
    """Look at the sky.

    Args:
      city: Where.

    Returns:
      The weather.
    """
    return f"3 C in {city}"


def test_what_the_client_sends_in_a_whole_play_is_read_and_sent_on_as_it_was() -> None:
    fake = OllamaFake([SAID, say("bye", model="m")])
    messages: list[Any] = [{"role": "user", "content": "weather?", "images": []}]
    with client_of(fake) as client:
        first = client.chat("m", messages, tools=[look], options={"num_ctx": 512, "seed": 7})
        result = {"role": "tool", "tool_name": "look", "content": look("Oslo")}
        messages += [first.message, result]
        second = client.chat("m", messages, tools=[look], keep_alive="5m", format="json")
    assert "bye" == second.message.content
    for request in fake.requests:
        read = OLLAMA.codec.decode_request(request.json())
        wire = OLLAMA.codec.encode(
            read, base_url="http://h", stream=read.stream, settings=WireSettings()
        )
        sent = json.loads(wire.body)
        check_body(sent)
        again = OLLAMA.codec.decode_request(sent)
        assert read == again


def test_our_reading_of_the_fake_is_that_of_the_client() -> None:
    made = itertools.count()
    decoder = OLLAMA.codec.decoder(new_id=lambda: f"id{next(made)}", now=lambda: 0.0)
    reply = OllamaFake().render(SAID, {"model": "m"})
    deltas = [delta for chunk in reply.chunks for delta in decoder.feed(chunk)]
    ours: Reply = assemble([*deltas, *decoder.finish()])
    with client_of(OllamaFake([SAID])) as client:
        theirs = client.chat("m", [{"role": "user", "content": "hi"}])
    assert (theirs.message.content, theirs.message.thinking) == (
        ours.message.content,
        ours.message.reasoning,
    )
