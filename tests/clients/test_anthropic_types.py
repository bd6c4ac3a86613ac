"""The ``anthropic`` package, types and client, agrees with what we send and what our fake says."""

import itertools
import json
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import msgspec
import pytest
from anthropic import Anthropic, Omit
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from pydantic import TypeAdapter

from tests.clients.fake_network import network_of
from tests.clients.typed_dicts import misfits
from woollama.core.canonical import (
    AssistantMessage,
    FunctionCall,
    Reply,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    request_from_openai,
)
from woollama.core.testing.fake import Fake, FakeReply, say
from woollama.core.testing.fakes.anthropic import AnthropicFake
from woollama.core.testing.golden import load_cases
from woollama.core.wire import WireSettings
from woollama.core.wire.anthropic import ANTHROPIC

pytestmark = pytest.mark.clients

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dialects" / "anthropic"
CASES = load_cases(FIXTURES)
REQUESTS = [case for case in CASES if case.has("wire_request.json")]
EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
ONLY_OLDER_VERSION = {"temperature", "top_p", "top_k"}
"""What the package has no types for: it speaks the newer version, which dropped them."""

CALL = ToolCall(id="toolu_1", function=FunctionCall(name="look", arguments='{"city":"Oslo"}'))
IDLE = ToolCall(id="toolu_2", function=FunctionCall(name="look", arguments="{}"))
SAID = say("It is 3 C.", calls=[CALL, IDLE], reasoning="I must look.")
TOOL: Any = {"name": "look", "input_schema": {"type": "object"}}


@contextmanager
def client_of(fake: Fake, **headers: Any) -> Generator[Anthropic]:
    """The package's own client, whose network is the fake and whose key is in our place."""
    network = httpx2.Client(transport=network_of(fake))
    placed: dict[str, Any] = {"authorization": Omit(), "x-api-key": "sk-test", **headers}
    with Anthropic(
        api_key="sk-test",
        base_url="http://peer.test",
        default_headers=placed,
        http_client=network,
        max_retries=0,
    ) as client:
        yield client


def check_body(body: dict[str, Any]) -> None:
    """Every key of the body is one the package knows, at every depth."""
    typed = {key: value for key, value in body.items() if key not in ONLY_OLDER_VERSION}
    shape = MessageCreateParamsStreaming if "stream" in body else MessageCreateParamsNonStreaming
    assert [] == misfits(typed, shape)


def test_a_body_that_does_not_fit_is_told_by_its_place() -> None:
    block = {"type": "text", "text": "hi", "colour": "red"}
    body: dict[str, Any] = {
        "model": "claude-x",
        "messages": [{"role": "user", "content": [block]}],
        "stop_sequences": "END",
        "seed": 1,
    }
    assert {
        "$.max_tokens: missing",
        "$.seed: unknown",
        "$.messages[0].content[0].colour: unknown",
        "$.stop_sequences: no list",
    } == set(misfits(body, MessageCreateParamsNonStreaming))


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.path.name)
def test_what_the_golden_requests_say_fits_the_types(case: Any) -> None:
    check_body(case.json("wire_request.json"))


@pytest.mark.parametrize("stream", [False, True])
def test_what_we_send_fits_the_types(stream: bool) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    asked = request_from_openai(
        {
            "model": "claude-x",
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Brief.", **mark}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "w?", **mark},
                        {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,/9j/"}},
                        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                        {
                            "type": "file",
                            "file": {
                                "filename": "a.pdf",
                                "file_data": "data:application/pdf;base64,JVBERi0=",
                            },
                        },
                        {"type": "file", "file": {"file_data": "data:text/plain;base64,QQ=="}},
                    ],
                },
            ],
            "tools": [
                {"type": "function", "function": {"name": "look", "strict": True}},
                {"type": "function", "function": {"name": "see", "description": "Sees", **mark}},
            ],
            "tool_choice": {"type": "function", "function": {"name": "look"}},
            "parallel_tool_calls": False,
            "reasoning_effort": "xhigh",
            "response_format": {"type": "json_schema", "json_schema": {"schema": {}, "name": "n"}},
            "temperature": 0.5,
            "stop": "END",
            "user": "u1",
            "service_tier": "standard_only",
        }
    )
    answered = AssistantMessage(
        content="Looking.", tool_calls=(CALL, IDLE), opaque={"anthropic": (thought,)}
    )
    results = (
        ToolMessage(tool_call_id="toolu_1", content="3C", is_error=True, extra=mark),
        ToolMessage(tool_call_id="toolu_2", content=""),
    )
    for history in ((), (answered, *results)):
        request = msgspec.structs.replace(asked, messages=(*asked.messages, *history))
        wire = ANTHROPIC.codec.encode(
            request,
            base_url="http://peer.test/v1",
            stream=stream,
            settings=WireSettings(replay_reasoning=True, cache_control=True),
        )
        check_body(json.loads(wire.body))


REPLIES: dict[str, Reply] = {
    "text": say("It is 3 C."),
    "calls": SAID,
    "refusal": Reply(
        id="msg_1",
        created=0,
        model="claude-x",
        message=AssistantMessage(content="So", refusal="Policy."),
        finish_reason="content_filter",
    ),
}


def chunks_of(reply: Reply, *, stream: bool) -> tuple[bytes, ...]:
    body: dict[str, Any] = {"model": "claude-x", "messages": [], "stream": stream}
    return AnthropicFake().render(reply, body).chunks


@pytest.mark.parametrize("name", REPLIES)
def test_what_our_fake_says_fits_the_types(name: str) -> None:
    Message.model_validate_json(b"".join(chunks_of(REPLIES[name], stream=False)))
    frames = chunks_of(REPLIES[name], stream=True)
    events = [json.loads(frame.split(b"\ndata: ")[1]) for frame in frames]
    for event in events:
        if event["type"] != "ping":
            EVENTS.validate_python(event)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.name)
def test_what_the_golden_replies_say_fits_the_types(case: Any) -> None:
    if case.kind == "exchange":
        Message.model_validate(case.json("wire_response.json"))


def ask(client: Anthropic, **fields: Any) -> Message:
    create: Any = client.messages.create
    return create(
        model="claude-x",
        max_tokens=1000,
        messages=[{"role": "user", "content": "w?"}],
        **fields,
    )


def test_the_client_reads_our_fakes_reply() -> None:
    with client_of(AnthropicFake([SAID], key="sk-test")) as client:
        message = ask(client, tools=[TOOL])
    assert ["thinking", "text", "tool_use", "tool_use"] == [b.type for b in message.content]
    assert "tool_use" == message.stop_reason
    assert (1, 9) == (message.usage.input_tokens, message.usage.output_tokens)


def test_the_client_puts_our_fakes_stream_together() -> None:
    with client_of(AnthropicFake([SAID, SAID])) as client:
        whole = ask(client)
        with client.messages.stream(
            model="claude-x", max_tokens=1000, messages=[{"role": "user", "content": "w?"}]
        ) as stream:
            assert "It is 3 C." == "".join(stream.text_stream)
            streamed = stream.get_final_message()
    assert whole.to_dict() == streamed.to_dict()


def test_the_client_reads_our_fakes_list_of_models() -> None:
    with client_of(AnthropicFake(models=["claude-x", "claude-y"])) as client:
        listed = list(client.models.list())
    assert [("claude-x", 200_000), ("claude-y", 200_000)] == [
        (model.id, model.max_input_tokens) for model in listed
    ]


def test_the_client_reads_our_fakes_refusals() -> None:
    with (
        client_of(AnthropicFake(), authorization="Bearer sk-test") as client,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        ask(client)
    assert "req_fake" == caught.value.request_id
    fake = AnthropicFake([FakeReply(status=529), AnthropicFake().error(429, "Too many")])
    with client_of(fake) as client:
        with pytest.raises(anthropic.BadRequestError, match="unknown field"):
            ask(client, extra_body={"seed": 1})
        with pytest.raises(anthropic.APIStatusError):
            ask(client)
        with pytest.raises(anthropic.RateLimitError, match="Too many"):
            ask(client)


def test_what_the_client_sends_is_decoded() -> None:
    fake = AnthropicFake([SAID, say("3 C.")])
    with client_of(fake) as client:
        first = ask(client, system="Brief.", tools=[TOOL])
        client.messages.create(
            model="claude-x",
            max_tokens=1000,
            system=[{"type": "text", "text": "Brief.", "cache_control": {"type": "ephemeral"}}],
            messages=[
                {"role": "user", "content": "w?"},
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": list(results_of(first))},
            ],
            tools=[TOOL],
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        )
    request = ANTHROPIC.codec.decode_request(json.loads(fake.requests[1].body))
    mark = {"cache_control": {"type": "ephemeral"}}
    system, question, said, *results = request.messages
    assert SystemMessage(content=(TextPart(text="Brief.", extra=mark),)) == system
    assert UserMessage(content="w?") == question
    assert isinstance(said, AssistantMessage)
    assert ("It is 3 C.", "I must look.") == (said.content, said.reasoning)
    assert (CALL, IDLE) == said.tool_calls
    assert ["toolu_1", "toolu_2"] == [
        message.tool_call_id for message in results if isinstance(message, ToolMessage)
    ]
    assert ("auto", False) == (request.tool_choice, request.params.parallel_tool_calls)


def results_of(message: Message) -> Iterable[Any]:
    for block, count in zip(message.content, itertools.count(), strict=False):
        if block.type == "tool_use":
            yield {"type": "tool_result", "tool_use_id": block.id, "content": f"{count} C"}
