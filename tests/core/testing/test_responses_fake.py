"""The strict server of the Responses API: what it refuses, and that it takes what we send."""

import json
from typing import Any

import msgspec
import pytest

from tests.core.wire.exchange import HI, WEATHER, call, encode, reply_of
from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FunctionCall,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from woollama.core.testing.fake import FakeReply, FakeRequest, say
from woollama.core.testing.fakes.responses import ResponsesFake
from woollama.core.wire import WireRequest, WireSettings
from woollama.core.wire.responses import RESPONSES

KEY = {"authorization": "Bearer sk-test"}
PATH = "/v1/responses"
WHOLE: dict[str, Any] = {"model": "m", "input": "hi", "store": False}
CALL: dict[str, Any] = {
    "type": "function_call",
    "call_id": "c",
    "name": "f",
    "arguments": "{}",
}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "c", "output": "x"}
THOUGHT: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "gA",
}
USER: dict[str, Any] = {"role": "user", "content": "hi"}
ANSWER: dict[str, Any] = {"role": "assistant", "content": "ok"}
OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
CLOSED: dict[str, Any] = {**OPEN, "additionalProperties": False, "required": ["a"]}


def ask(
    fake: ResponsesFake,
    body: Any,
    headers: Any = KEY,
    *,
    method: str = "POST",
    path: str = PATH,
) -> FakeReply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return fake.answer(FakeRequest(method=method, path=path, headers=headers, body=data))


def error_of(reply: FakeReply) -> dict[str, Any]:
    return json.loads(b"".join(reply.chunks))["error"]


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", "parameters": {}, "strict": False, **fields}


REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({"seed": 7}, "seed", "unknown_parameter"),
    ({"stop": ["X"]}, "stop", "unknown_parameter"),
    ({"messages": []}, "messages", "unknown_parameter"),
    ({"reasoning_effort": "low"}, "reasoning_effort", "unknown_parameter"),
    ({"max_tokens": 1}, "max_tokens", "unknown_parameter"),
    ({"response_format": {}}, "response_format", "unknown_parameter"),
    ({"input": [{**USER, "name": "n"}]}, "input[0].name", "unknown_parameter"),
    ({"input": [{**USER, "content": 1}]}, "input[0].content", "invalid_type"),
    ({"input": [{"role": "tool", "content": ""}]}, "input[0].role", "invalid_value"),
    ({"input": [{"type": "message"}]}, "input[0].role", "invalid_value"),
    ({"input": [{"type": "tool_result"}]}, "input[0].type", "invalid_value"),
    ({"input": [{}]}, "input[0].type", "invalid_value"),
    ({"input": [{"role": "user"}]}, "input[0].content", "missing_required_parameter"),
    ({"input": 1}, "input", "invalid_type"),
    (
        {"input": [{**USER, "content": [{"type": "output_text", "text": "x"}]}]},
        "input[0].content[0].type",
        "invalid_value",
    ),
    (
        {"input": [{**ANSWER, "content": [{"type": "input_text", "text": "x"}]}]},
        "input[0].content[0].type",
        "invalid_value",
    ),
    ({"input": [{**ANSWER, "reasoning": "x"}]}, "input[0].reasoning", "unknown_parameter"),
    (
        {"input": [{**USER, "content": [{"type": "input_audio"}]}]},
        "input[0].content[0].type",
        "invalid_value",
    ),
    ({"input": [CALL]}, "input", None),
    ({"input": [OUTPUT]}, "input", None),
    ({"input": [OUTPUT, CALL]}, "input", None),
    ({"input": [CALL, OUTPUT, OUTPUT]}, "input", None),
    ({"input": [{**CALL, "call_id": ""}]}, "input[0].call_id", "invalid_value"),
    ({"input": [{**CALL, "name": "a.b"}]}, "input[0].name", "invalid_value"),
    ({"input": [{**CALL, "arguments": {}}]}, "input[0].arguments", "invalid_type"),
    ({"input": [THOUGHT]}, "input", None),
    ({"input": [THOUGHT, USER]}, "input", None),
    ({"tools": [tool(function={})]}, "tools[0].function", "unknown_parameter"),
    (
        {"tools": [{"type": "function", "name": "f"}]},
        "tools[0].parameters",
        "missing_required_parameter",
    ),
    ({"tools": [tool(name="a.b")]}, "tools[0].name", "invalid_value"),
    (
        {"tools": [tool(strict=None, parameters=OPEN)]},
        "tools[0].parameters",
        "invalid_function_parameters",
    ),
    (
        {"tools": [tool(strict=True, parameters={**CLOSED, "required": []})]},
        "tools[0].parameters",
        "invalid_function_parameters",
    ),
    (
        {"tools": [tool(strict=True, parameters={**CLOSED, "anyOf": [OPEN]})]},
        "tools[0].parameters",
        "invalid_function_parameters",
    ),
    ({"tool_choice": "required"}, "tool_choice", None),
    (
        {"tools": [tool()], "tool_choice": {"type": "function", "name": "g"}},
        "tool_choice",
        None,
    ),
    (
        {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        "tool_choice.function",
        "unknown_parameter",
    ),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort", "invalid_value"),
    (
        {"text": {"format": {"type": "json_schema"}}},
        "text.format.name",
        "missing_required_parameter",
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "o", "schema": OPEN, "strict": True}}},
        "text.format.schema",
        "invalid_function_parameters",
    ),
    ({"previous_response_id": "r"}, "previous_response_id", "previous_response_not_found"),
    ({"previous_response_id": "r", "conversation": "c"}, "conversation", None),
    ({"stream_options": {}}, "stream_options", None),
    (
        {"stream": True, "stream_options": {"include_usage": True}},
        "stream_options.include_usage",
        "unknown_parameter",
    ),
    ({"temperature": 3}, "temperature", "invalid_value"),
    ({"model": None}, "model", "invalid_type"),
]


@pytest.mark.parametrize(("fields", "param", "code"), REFUSED)
def test_it_refuses_and_names_what_is_wrong(
    fields: dict[str, Any], param: str, code: str | None
) -> None:
    reply = ask(ResponsesFake([say("ok")]), {**WHOLE, **fields})
    error = error_of(reply)
    assert (400, "invalid_request_error", param, code) == (
        reply.status,
        error["type"],
        error["param"],
        error["code"],
    )


@pytest.mark.parametrize("missing", ["model", "input"])
def test_it_refuses_a_body_without_what_it_needs(missing: str) -> None:
    body = {key: value for key, value in WHOLE.items() if key != missing}
    error = error_of(ask(ResponsesFake(), body))
    assert (missing, f"Missing required parameter: '{missing}'.") == (
        error["param"],
        error["message"],
    )


def test_it_says_which_field_it_does_not_know_as_the_server_does() -> None:
    error = error_of(ask(ResponsesFake(), {**WHOLE, "seed": 7}))
    assert "Unknown parameter: 'seed'." == error["message"]


def test_thinking_without_its_encrypted_content_is_not_found_when_nothing_is_stored() -> None:
    thought = {key: value for key, value in THOUGHT.items() if key != "encrypted_content"}
    body = {**WHOLE, "input": [USER, thought, ANSWER]}
    assert 404 == ask(ResponsesFake(), body).status
    assert 200 == ask(ResponsesFake([say("ok")]), {**body, "store": True}).status


@pytest.mark.parametrize(
    "headers",
    [{}, {"x-api-key": "sk-test"}, {"authorization": "sk-test"}, {"authorization": "Bearer "}],
)
def test_it_reads_the_key_in_one_place(headers: dict[str, str]) -> None:
    assert 401 == ask(ResponsesFake([say("ok")]), WHOLE, headers).status


def test_it_takes_its_own_key_only() -> None:
    fake = ResponsesFake([say("ok")], key="sk-test")
    assert 200 == ask(fake, WHOLE).status
    refused = ask(fake, WHOLE, {"authorization": "Bearer sk-other"})
    assert (401, "invalid_api_key") == (refused.status, error_of(refused)["code"])


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"path": "/v1/chat/completions"}, 404),
        ({"method": "GET"}, 405),
        ({"method": "GET", "path": "/v1/models", "headers": {}}, 401),
    ],
)
def test_it_refuses_what_is_no_request_of_its_api(fields: dict[str, Any], status: int) -> None:
    assert status == ask(ResponsesFake([say("ok")]), WHOLE, **fields).status


@pytest.mark.parametrize("body", [b"{", b"[]", b""])
def test_it_refuses_what_is_no_object(body: bytes) -> None:
    assert 400 == ask(ResponsesFake([say("ok")]), body).status


def test_it_lists_its_models_and_knows_no_others() -> None:
    fake = ResponsesFake([say("ok")], models=["gpt-r"])
    listed = ask(fake, b"", method="GET", path="/v1/models")
    found = RESPONSES.codec.decode_models(b"".join(listed.chunks))
    assert ["gpt-r"] == [info.id for info in found]
    assert (404, "model_not_found") == (
        ask(fake, WHOLE).status,
        error_of(ask(fake, WHOLE))["code"],
    )
    assert 200 == ask(fake, {**WHOLE, "model": "gpt-r"}).status


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"input": [{"role": "system", "content": "s"}]}, "System messages are not allowed"),
        ({"input": [{"role": "developer", "content": "s"}]}, "System messages are not allowed"),
        ({"stream": False}, "Stream must be set to true"),
        ({"store": None}, "Store must be set to false"),
    ],
)
def test_p_23_the_plan_server_refuses_in_its_own_shape(fields: dict[str, Any], detail: str) -> None:
    body = {**WHOLE, "stream": True, **fields}
    reply = ask(ResponsesFake([say("ok")], plan=True), body)
    assert (400, {"detail": detail}) == (reply.status, json.loads(reply.chunks[0]))
    assert {"detail": "x"} == json.loads(ResponsesFake(plan=True).error(500, "x").chunks[0])


def test_p_23_the_plan_server_ends_without_output_under_another_label() -> None:
    reply = ask(ResponsesFake([say("ok")], plan=True), {**WHOLE, "stream": True})
    assert "application/json" == reply.headers["content-type"]
    assert b'"output":[]' in reply.chunks[-1]
    assert "ok" == reply_of(RESPONSES, b"".join(reply.chunks)).message.content


SAID = say(
    "It is warm.",
    reasoning="Let me\n\nsee.",
    calls=[ToolCall(id="c", function=FunctionCall(name="f", arguments='{"a": 1}'))],
    usage=Usage(
        prompt_tokens=5,
        completion_tokens=7,
        total_tokens=12,
        cached_tokens=1,
        cache_write_tokens=2,
        reasoning_tokens=3,
    ),
    model="gpt-r",
)


@pytest.mark.parametrize(("stream", "plan"), [(False, False), (True, False), (True, True)])
def test_what_it_says_reads_as_what_it_was_to_say(stream: bool, plan: bool) -> None:
    reply = ask(ResponsesFake([SAID], plan=plan), {**WHOLE, "stream": stream})
    found = reply_of(RESPONSES, b"".join(reply.chunks))
    assert (SAID.message.content, SAID.message.reasoning, SAID.message.tool_calls) == (
        found.message.content,
        found.message.reasoning,
        found.message.tool_calls,
    )
    assert (SAID.id, SAID.created, SAID.model, SAID.usage, "tool_calls") == (
        found.id,
        found.created,
        found.model,
        found.usage,
        found.finish_reason,
    )
    assert stream is (len(reply.chunks) > 4)


@pytest.mark.parametrize(
    ("finish", "native"),
    [
        ("stop", "completed"),
        ("length", "incomplete.max_output_tokens"),
        ("content_filter", "incomplete.content_filter"),
    ],
)
def test_it_ends_as_it_was_to_end(finish: str, native: str) -> None:
    for stream in (False, True):
        answer = ask(ResponsesFake([say("a", finish=finish)]), {**WHOLE, "stream": stream})
        found = reply_of(RESPONSES, b"".join(answer.chunks))
        assert (finish, native) == (found.finish_reason, found.native_finish_reason)


def test_it_can_fail_and_refuse() -> None:
    answer = ask(ResponsesFake([say("a", finish="error")]), {**WHOLE, "stream": True})
    assert b"response.failed" in answer.chunks[-1]
    refusal = msgspec.structs.replace(say(), message=AssistantMessage(refusal="I will not."))
    answer = ask(ResponsesFake([refusal]), {**WHOLE, "stream": True})
    assert "I will not." == reply_of(RESPONSES, b"".join(answer.chunks)).message.refusal


def test_it_counts_the_words_of_everything_that_was_said() -> None:
    body = {
        **WHOLE,
        "instructions": "be brief",
        "input": [
            USER,
            {"role": "assistant", "content": [{"type": "output_text", "text": "a b c"}]},
            {**CALL, "arguments": '{"x": 1}'},
            {**OUTPUT, "output": "warm and dry"},
        ],
    }
    answer = ask(ResponsesFake([say("one two three")]), body)
    usage = json.loads(answer.chunks[0])["usage"]
    assert (2 + 1 + 3 + 2 + 3, 3) == (usage["input_tokens"], usage["output_tokens"])
    assert 1 == json.loads(ask(ResponsesFake([say("x")]), WHOLE).chunks[0])["usage"]["input_tokens"]


def test_it_takes_schemas_that_strict_mode_can_keep() -> None:
    format = {"type": "json_schema", "name": "o", "schema": CLOSED, "strict": True}
    body = {**WHOLE, "tools": [tool(strict=True, parameters=CLOSED)], "text": {"format": format}}
    assert 200 == ask(ResponsesFake([say("ok")]), body).status


def test_it_calls_without_a_word() -> None:
    answer = ask(ResponsesFake([say(calls=SAID.message.tool_calls)]), WHOLE)
    assert ["function_call"] == [item["type"] for item in json.loads(answer.chunks[0])["output"]]


def test_its_errors_are_openais() -> None:
    error = error_of(ResponsesFake().error(429, "Slow down.", code="slow_down"))
    assert ("rate_limit_error", "slow_down", None) == (
        error["type"],
        error["code"],
        error["param"],
    )
    assert "x" == error_of(ResponsesFake().error(400, "m", type="x"))["type"]


def test_it_answers_what_the_script_says_and_then_no_more() -> None:
    raw = FakeReply(status=503)
    fake = ResponsesFake([raw])
    assert raw == ask(fake, WHOLE)
    assert 500 == ask(fake, WHOLE).status
    assert 2 == len(fake.requests)


def sent(wire: WireRequest) -> FakeRequest:
    return FakeRequest(
        method=wire.method, path=PATH, headers={**wire.headers, **KEY}, body=wire.body
    )


@pytest.mark.parametrize("plan", [False, True])
def test_it_takes_what_our_codec_writes(plan: bool) -> None:
    calls = [call("a"), call("b", arguments="not json")]
    wire = encode(
        RESPONSES,
        messages=[
            {"role": "system", "content": "s"},
            {"role": "developer", "content": "d"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "https://x/i.png"}},
                    {"type": "file", "file": {"file_id": "f"}},
                ],
            },
            {"role": "assistant", "content": "t", "reasoning": "r", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "x", "name": "get_weather"},
            {
                "role": "tool",
                "tool_call_id": "b",
                "content": [{"type": "text", "text": "y"}],
                "is_error": True,
            },
            {"role": "assistant", "content": None, "refusal": "No."},
            HI,
        ],
        tools=[WEATHER, {"type": "function", "function": {"name": "now"}}],
        tool_choice={"type": "function", "function": {"name": "now"}},
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "o", "schema": {}}},
        reasoning_effort="high",
        max_tokens=9,
        temperature=1,
        top_p=1,
        n=1,
        stop=[],
        logprobs=False,
        user="u",
        metadata={"a": "b"},
        stream_options={"include_usage": True},
    )
    answer = ResponsesFake([say("ok")], plan=plan).answer(sent(wire))
    assert 200 == answer.status, answer.chunks


def test_it_takes_thinking_that_is_replayed() -> None:
    """RU-12: the first turn's encrypted thinking goes back in front of what it led to."""
    fake = ResponsesFake([SAID, say("done")])
    first = fake.answer(sent(encode(RESPONSES)))
    said = reply_of(RESPONSES, b"".join(first.chunks)).message
    request = ChatRequest(
        model="m",
        messages=(UserMessage(content="hi"), said, ToolMessage(tool_call_id="c", content="x")),
    )
    wire = RESPONSES.codec.encode(
        request,
        base_url="http://peer.test/v1",
        stream=True,
        settings=WireSettings(replay_reasoning=True),
    )
    assert b"gAAAA" in wire.body
    assert 200 == fake.answer(sent(wire)).status
