"""The strict server of Chat Completions: what it refuses, and that it takes what we send."""

import json
from typing import Any

import msgspec
import pytest

from tests.core.wire.exchange import HI, WEATHER, call, encode, error_of, reply_of
from woollama.core.canonical import AssistantMessage, FunctionCall, ToolCall, Usage
from woollama.core.testing.fake import FakeReply, FakeRequest, say
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.wire import WireRequest, WireSettings
from woollama.core.wire.chat import COMPATIBLE

KEY = {"authorization": "Bearer sk-test"}
PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [HI]}
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call("a")]}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "a", "content": "x"}
OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {}}}


def ask(
    fake: CompatibleFake,
    body: Any,
    headers: Any = KEY,
    *,
    method: str = "POST",
    path: str = PATH,
) -> FakeReply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return fake.answer(FakeRequest(method=method, path=path, headers=headers, body=data))


def said(reply: FakeReply) -> dict[str, Any]:
    return json.loads(b"".join(reply.chunks))


def chunks(reply: FakeReply) -> list[dict[str, Any]]:
    assert b"data: [DONE]\n\n" == reply.chunks[-1]
    return [json.loads(chunk.removeprefix(b"data: ")) for chunk in reply.chunks[:-1]]


def strict(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}]


REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({"input": "hi"}, "input", "unknown_parameter"),
    ({"reasoning": {}}, "reasoning", "unknown_parameter"),
    ({"options": {"num_ctx": 1}}, "options", "unknown_parameter"),
    ({"extra_body": {}}, "extra_body", "unknown_parameter"),
    ({"messages": []}, "messages", "invalid_value"),
    ({"messages": [{"content": "hi"}]}, "messages[0].role", "missing_required_parameter"),
    ({"messages": [{**HI, "role": "developer"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{**HI, "role": "function"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
    ({"messages": [{**HI, "content": None}]}, "messages[0].content", "invalid_type"),
    ({"messages": [{**HI, "is_error": True}]}, "messages[0].is_error", "unknown_parameter"),
    ({"messages": [{"role": "assistant"}]}, "messages[0].content", None),
    (
        {"messages": [{"role": "assistant", "content": "x", "reasoning": "r"}]},
        "messages[0].reasoning",
        "unknown_parameter",
    ),
    ({"messages": [RESULT]}, "messages[0].role", None),
    ({"messages": [CALLED]}, "messages[1].role", None),
    ({"messages": [CALLED, HI]}, "messages[1].role", None),
    ({"messages": [CALLED, RESULT, RESULT]}, "messages[2].role", None),
    ({"messages": [CALLED, {**RESULT, "tool_call_id": "b"}]}, "messages[1].role", None),
    (
        {"messages": [{**CALLED, "tool_calls": [call("x" * 41)]}]},
        "messages[0].tool_calls[0].id",
        "invalid_value",
    ),
    (
        {"messages": [{**CALLED, "tool_calls": [call("a", "a.b")]}]},
        "messages[0].tool_calls[0].function.name",
        "invalid_value",
    ),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "invalid_value"),
    ({"tools": []}, "tools", "invalid_value"),
    ({"tools": strict(OPEN)}, "tools[0].function.parameters", "invalid_function_parameters"),
    ({"tool_choice": "auto"}, "tool_choice", None),
    ({"parallel_tool_calls": False}, "parallel_tool_calls", None),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "tool_choice",
        None,
    ),
    ({"reasoning_effort": "huge"}, "reasoning_effort", "invalid_value"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "invalid_value"),
    ({"stream_options": {"include_usage": True}}, "stream_options", None),
    ({"top_logprobs": 2}, "top_logprobs", None),
    ({"temperature": 2.5}, "temperature", "invalid_value"),
    ({"n": 0}, "n", "invalid_value"),
]


@pytest.mark.parametrize(("fields", "param", "code"), REFUSED)
def test_it_refuses_and_names_what_is_wrong(
    fields: dict[str, Any], param: str, code: str | None
) -> None:
    reply = ask(CompatibleFake([say("ok")]), {**BODY, **fields})
    error = said(reply)["error"]
    assert (400, "invalid_request_error", param, code) == (
        reply.status,
        error["type"],
        error["param"],
        error["code"],
    )


@pytest.mark.parametrize(
    "headers",
    [{}, {"x-api-key": "sk-test"}, {"authorization": "sk-test"}, {"authorization": "Bearer "}],
)
def test_it_reads_the_key_in_one_place(headers: dict[str, str]) -> None:
    assert 401 == ask(CompatibleFake([say("ok")]), BODY, headers).status


def test_it_takes_its_own_key_only() -> None:
    fake = CompatibleFake([say("ok")], key="sk-test")
    assert 200 == ask(fake, BODY).status
    assert 401 == ask(fake, BODY, {"authorization": "Bearer sk-other"}).status


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"path": "/v1/responses"}, 404),
        ({"method": "GET"}, 405),
        ({"method": "GET", "path": "/v1/models", "headers": {}}, 401),
    ],
)
def test_it_refuses_what_is_no_request_of_its_api(fields: dict[str, Any], status: int) -> None:
    assert status == ask(CompatibleFake([say("ok")]), BODY, **fields).status


@pytest.mark.parametrize("body", [b"{", b"[]", b""])
def test_it_refuses_what_is_no_object(body: bytes) -> None:
    assert 400 == ask(CompatibleFake([say("ok")]), body).status


def test_it_lists_its_models_and_knows_no_others() -> None:
    fake = CompatibleFake([say("ok")], models=["m-1"])
    listed = ask(fake, b"", method="GET", path="/v1/models")
    found = COMPATIBLE.codec.decode_models(b"".join(listed.chunks))
    assert ["m-1"] == [info.id for info in found]
    assert 404 == ask(fake, BODY).status
    assert 200 == ask(fake, {**BODY, "model": "m-1"}).status


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_oc_2_it_may_know_the_cap_by_one_name_only(field: Any) -> None:
    other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[field]
    fake = CompatibleFake([say("ok")], cap_field=field)
    refused = said(ask(fake, {**BODY, other: 9}))["error"]
    assert (other, "unsupported_parameter") == (refused["param"], refused["code"])
    assert 200 == ask(fake, {**BODY, field: 9}).status
    assert 200 == ask(CompatibleFake([say("ok")]), {**BODY, other: 9}).status


@pytest.mark.parametrize(
    ("default", "effort", "tools", "taken"),
    [
        (None, "high", True, False),
        (None, "none", True, True),
        (None, None, True, True),
        (None, "high", False, True),
        ("medium", None, True, False),
        ("medium", "none", True, True),
    ],
)
def test_a_14_it_may_refuse_an_effort_beside_tools(
    default: str | None, effort: str | None, tools: bool, taken: bool
) -> None:
    """A-14, and OC-43: the model's own effort counts when none is sent."""
    body = {**BODY, "reasoning_effort": effort, **({"tools": [WEATHER]} if tools else {})}
    fake = CompatibleFake([say("ok")], effort_beside_tools="refuse", default_effort=default)
    reply = ask(fake, body)
    assert (200 if taken else 400) == reply.status
    if not taken:
        error = error_of(COMPATIBLE, 400, b"".join(reply.chunks))
        assert error.hint is not None
        assert "responses" in error.hint
    assert 200 == ask(CompatibleFake([say("ok")]), body).status


SAID = say(
    "It is warm.",
    reasoning="Let me see.",
    calls=[
        ToolCall(
            id="a",
            function=FunctionCall(name="f", arguments='{"a": 1}'),
            extra_content={"google": {"thought_signature": "s"}},
        ),
        ToolCall(id="b", function=FunctionCall(name="f", arguments="{}")),
    ],
    usage=Usage(prompt_tokens=5, completion_tokens=7, total_tokens=12, cached_tokens=0),
    model="m-1",
)


@pytest.mark.parametrize("stream", [False, True])
def test_what_it_says_reads_as_what_it_was_to_say(stream: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if stream else {}
    reply = ask(CompatibleFake([SAID]), {**BODY, "stream": stream, **options})
    expected = msgspec.structs.replace(SAID, native_finish_reason="tool_calls")
    assert expected == reply_of(COMPATIBLE, b"".join(reply.chunks))


def test_a_stream_begins_with_the_role_and_ends_with_the_finish() -> None:
    found = chunks(ask(CompatibleFake([say("It is warm.")]), {**BODY, "stream": True}))
    deltas = [chunk["choices"][0]["delta"] for chunk in found]
    assert {"role": "assistant", "content": "", "refusal": None} == deltas[0]
    assert ["It", " is", " warm."] == [delta["content"] for delta in deltas[1:-1]]
    assert [None] * 4 + ["stop"] == [chunk["choices"][0]["finish_reason"] for chunk in found]


def test_usage_is_streamed_only_when_it_is_asked_for() -> None:
    quiet = chunks(ask(CompatibleFake([say("ok")]), {**BODY, "stream": True}))
    assert all("usage" not in chunk for chunk in quiet)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *others, last = chunks(ask(CompatibleFake([say("ok")]), {**BODY, **options}))
    assert [None] * len(others) == [chunk["usage"] for chunk in others]
    expected = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    assert ([], expected) == (last["choices"], last["usage"])


def test_it_gives_as_many_choices_as_are_asked_for() -> None:
    whole = said(ask(CompatibleFake([say("ok")]), {**BODY, "n": 2}))
    assert [0, 1] == [choice["index"] for choice in whole["choices"]]
    streamed = chunks(ask(CompatibleFake([say("ok")]), {**BODY, "n": 2, "stream": True}))
    assert {0, 1} == {chunk["choices"][0]["index"] for chunk in streamed}


def test_it_says_refusals_and_opaque_reasoning() -> None:
    message = AssistantMessage(refusal="I will not.", reasoning_details=({"type": "x"},))
    script = [msgspec.structs.replace(say(), message=message)] * 2
    fake = CompatibleFake(script)
    for stream in (False, True):
        found = reply_of(COMPATIBLE, b"".join(ask(fake, {**BODY, "stream": stream}).chunks))
        assert message == found.message


def test_it_answers_what_the_script_says_and_then_no_more() -> None:
    raw = FakeReply(status=503)
    fake = CompatibleFake([raw])
    assert raw == ask(fake, BODY)
    assert (500, "server_error") == (
        (reply := ask(fake, BODY)).status,
        said(reply)["error"]["type"],
    )


def sent(wire: WireRequest) -> FakeRequest:
    return FakeRequest(
        method=wire.method, path=PATH, headers={**wire.headers, **KEY}, body=wire.body
    )


@pytest.mark.parametrize("stream", [False, True])
def test_it_takes_what_our_codec_writes(stream: bool) -> None:
    calls: list[Any] = [
        {**call("a"), "extra_content": {"google": {}}},
        call("b", arguments="not json"),
    ]
    wire = encode(
        COMPATIBLE,
        stream=stream,
        settings=WireSettings(output_field="max_completion_tokens", cache_key="k"),
        messages=[
            {"role": "system", "content": "s"},
            {"role": "developer", "content": "d"},
            {
                "role": "user",
                "name": "ann",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "https://x/i.png"}},
                    {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "f"}},
                ],
            },
            {
                "role": "assistant",
                "content": "t",
                "reasoning": "r",
                "reasoning_details": [{"type": "reasoning.text"}],
                "tool_calls": calls,
            },
            {"role": "tool", "tool_call_id": "b", "content": "y", "is_error": True},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}]},
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
        stop=["x"],
        seed=7,
        logprobs=True,
        top_logprobs=2,
        presence_penalty=0.5,
        frequency_penalty=0.5,
        user="u",
        metadata={"a": "b"},
        verbosity="low",
    )
    fake = CompatibleFake([say("ok")], cap_field="max_completion_tokens")
    answer = fake.answer(sent(wire))
    assert 200 == answer.status, answer.chunks
