"""What only its own dialect understands: kept in a run, sent back where it may (RU-12)."""

import json
import logging
from typing import Any

import anyio
import pytest

from tests.core.scripted import HI, Scripted, call, recipe
from woollama.core import FunctionTools, orchestrate, tool
from woollama.core.canonical import AssistantMessage, FunctionCall, Reply, ToolCall
from woollama.core.testing.fake import FakeReply, json_reply, say
from woollama.core.testing.fakes.anthropic_rules import signature_of
from woollama.core.wire import WireSettings

SIGNATURE = signature_of("Let me look.")
ENCRYPTED = "gAAAA-encrypted-of-the-test"


@tool
def look(city: str) -> str:
    """Looks at a thermometer."""
    return f"30 degrees in {city}"


def anthropic_reply() -> FakeReply:
    thinking = {"type": "thinking", "thinking": "Let me look.", "signature": SIGNATURE}
    used = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Rome"}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return json_reply(
        200,
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [thinking, used],
            "stop_reason": "tool_use",
            "usage": usage,
        },
    )


def responses_reply() -> FakeReply:
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Let me look."}],
        "encrypted_content": ENCRYPTED,
    }
    called = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"city":"Rome"}',
        "status": "completed",
    }
    return json_reply(
        200,
        {
            "id": "resp_1",
            "object": "response",
            "model": "m",
            "status": "completed",
            "output": [reasoning, called],
        },
    )


async def second_request(dialect: str, first: Reply | FakeReply, settings: WireSettings) -> Any:
    """The body that a run sends once its tool has answered, and the final reply as a dict."""
    up = Scripted([first, say("Warm.")], dialect=dialect, settings=settings)
    with anyio.fail_after(5):
        final = await orchestrate(recipe("look"), [HI], FunctionTools(look), **up.call)
    assert "Warm." == final["choices"][0]["message"]["content"]
    return up.bodies()[1], final


@pytest.mark.parametrize(
    ("dialect", "reply", "secret"),
    [("anthropic", anthropic_reply, SIGNATURE), ("responses", responses_reply, ENCRYPTED)],
)
@pytest.mark.parametrize("replay", [False, True])
async def test_ru_12_a_run_sends_it_back_only_when_the_provider_says_so(
    dialect: str, reply: Any, secret: str, replay: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = WireSettings(replay_reasoning=replay)
    body, final = await second_request(dialect, reply(), settings)
    assert replay is (secret in json.dumps(body))
    assert secret not in json.dumps(final)
    assert secret not in caplog.text


async def test_ru_12_what_compatible_servers_want_back_goes_back_verbatim() -> None:
    extra = {"google": {"thought_signature": SIGNATURE}}
    details = ({"type": "reasoning.encrypted", "data": ENCRYPTED, "index": 0},)
    called = ToolCall(
        id="call_1",
        function=FunctionCall(name="look", arguments='{"city":"Rome"}'),
        extra_content=extra,
    )
    message = AssistantMessage(
        content="So.", tool_calls=(called,), reasoning="Let me look.", reasoning_details=details
    )
    first = Reply(
        id="c", created=1, model="m", message=message, finish_reason="tool_calls", usage=None
    )
    body, _ = await second_request("compatible", first, WireSettings())
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    assert extra == said["tool_calls"][0]["extra_content"]
    assert list(details) == said["reasoning_details"]


@pytest.mark.parametrize("dialect", ["anthropic", "cerebras", "ollama", "responses"])
async def test_ru_12_it_goes_to_no_other_dialect(dialect: str) -> None:
    up = Scripted([say("Warm.")], dialect=dialect, settings=WireSettings(replay_reasoning=True))
    asked = call("look", '{"city":"Rome"}', "call_1")
    said = {
        "role": "assistant",
        "content": "So.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": ENCRYPTED}],
        "tool_calls": [
            {
                "id": asked.id,
                "type": "function",
                "function": {"name": asked.name, "arguments": asked.arguments},
                "extra_content": {"google": {"thought_signature": SIGNATURE}},
            }
        ],
    }
    result = {"role": "tool", "tool_call_id": "call_1", "content": "30 degrees"}
    with anyio.fail_after(5):
        await orchestrate(recipe("look"), [HI, said, result, HI], FunctionTools(look), **up.call)
    sent = up.fake.requests[0].body.decode()
    assert ENCRYPTED not in sent
    assert SIGNATURE not in sent
