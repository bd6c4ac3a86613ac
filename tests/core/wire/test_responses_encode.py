"""Requests to the Responses API: R-1 to R-14, R-18, R-19, and RE-11, RE-13, RE-19 to RE-22."""

import json
from typing import Any

import pytest

from tests.core.wire.exchange import HI, WEATHER, body_of, call, encode, error_of, refused
from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FunctionCall,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.providers import ModelRegistry, Provider
from woollama.core.wire import Bearer, WireSettings
from woollama.core.wire.chat import COMPATIBLE
from woollama.core.wire.responses import RESPONSES

DROP = WireSettings(
    drop_params=frozenset({"messages.name", "messages.content.cache_control", "store", "seed"})
)


def body(**fields: Any) -> dict[str, Any]:
    return body_of(RESPONSES, **fields)


def items(*messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return body(messages=list(messages), **fields)["input"]


def test_r_1_requests_go_to_responses() -> None:
    for base_url in ("http://peer.test/v1", "http://peer.test/v1/"):
        wire = encode(RESPONSES, base_url=base_url)
        assert ("POST", "http://peer.test/v1/responses") == (wire.method, wire.url)
        assert {"content-type": "application/json"} == dict(wire.headers)
    assert Bearer() == RESPONSES.key_place
    assert ("responses", "openai") == (RESPONSES.name, RESPONSES.family)


def test_r_2_calls_follow_the_text_and_results_answer_their_call_id() -> None:
    expected = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "get_weather", "arguments": "[1"},
        {"type": "function_call_output", "call_id": "b", "output": "warm"},
        {"type": "function_call_output", "call_id": "a", "output": ""},
    ]
    calls = [call("a"), call("b", arguments="[1")]
    assert expected == items(
        HI,
        {"role": "assistant", "content": "Looking.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "warm", "is_error": True},
        {"role": "tool", "tool_call_id": "a", "content": ""},
    )


@pytest.mark.parametrize("content", [None, "", []])
def test_r_2_calls_without_text_bring_no_message(content: Any) -> None:
    said = {"role": "assistant", "content": content, "tool_calls": [call("a")]}
    assert ["function_call"] == [item["type"] for item in items(said)]


def test_r_2_an_empty_answer_stays_a_message() -> None:
    assert [{"role": "assistant", "content": ""}] == items({"role": "assistant", "content": ""})
    assert [] == items({"role": "assistant", "content": None})


def test_r_2_parts_of_a_result_are_input_parts() -> None:
    result = {
        "role": "tool",
        "tool_call_id": "a",
        "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "https://x/i.png", "detail": "low"}},
        ],
    }
    expected = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "https://x/i.png", "detail": "low"},
    ]
    assert expected == items(result)[0]["output"]


def test_r_2_text_parts_of_an_answer_are_sent_as_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [{"role": "assistant", "content": "ab"}] == items(
        {"role": "assistant", "content": parts}
    )


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": None, "refusal": "No."}, [{"type": "refusal", "refusal": "No."}]),
        (
            {"content": "Well.", "refusal": "No."},
            [{"type": "output_text", "text": "Well."}, {"type": "refusal", "refusal": "No."}],
        ),
        (
            {"content": [{"type": "text", "text": "a", "x": 1}, {"type": "new", "y": 2}]},
            [{"type": "output_text", "text": "a", "x": 1}, {"type": "new", "y": 2}],
        ),
    ],
)
def test_r_2_an_answer_that_is_more_than_text_is_a_list_of_its_own_parts(
    message: dict[str, Any], content: list[Any]
) -> None:
    expected = [{"type": "message", "role": "assistant", "content": content}]
    assert expected == items({"role": "assistant", **message})


def test_r_2_a_result_does_not_repeat_the_name_of_its_function() -> None:
    said = {"role": "assistant", "content": None, "tool_calls": [call("a")]}
    same = {"role": "tool", "tool_call_id": "a", "content": "x", "name": "get_weather"}
    other = {**same, "name": "other"}
    assert [None, "other"] == [item.get("name") for item in items(said, same, other)[1:]]


@pytest.mark.parametrize(("given", "sent"), [(None, False), (False, False), (True, True)])
def test_r_3_tools_are_flat_and_strict_is_explicit(given: bool | None, sent: bool) -> None:
    """R-3, RE-13: absent is strict in practice, so it is always said."""
    function = {**WEATHER["function"], "description": "Weather now", "strict": given, "x": 1}
    expected = {
        "type": "function",
        "name": "get_weather",
        "description": "Weather now",
        "parameters": WEATHER["function"]["parameters"],
        "strict": sent,
        "x": 1,
    }
    assert [expected] == body(tools=[{"type": "function", "function": function}])["tools"]


def test_re_13_strict_and_parameters_are_sent_when_the_caller_gave_neither() -> None:
    expected: dict[str, Any] = {
        "type": "function",
        "name": "now",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }
    tool = {"type": "function", "function": {"name": "now"}}
    assert [expected] == body(tools=[tool])["tools"]


def test_r_3_tools_of_other_types_lose_only_their_nesting() -> None:
    tools: list[Any] = [
        {"type": "web_search", "filters": {}},
        {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
        {"type": "odd", "odd": 1},
    ]
    expected: list[Any] = [
        {"type": "web_search", "filters": {}},
        {"type": "custom", "name": "sql", "format": {"type": "text"}},
        {"type": "odd", "odd": 1},
    ]
    assert expected == body(tools=tools)["tools"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        (
            {"type": "function", "function": {"name": "get_weather"}},
            {"type": "function", "name": "get_weather"},
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [WEATHER]}},
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", **WEATHER["function"]}],
            },
        ),
        ({"type": "web_search"}, {"type": "web_search"}),
    ],
)
def test_r_3_the_choice_of_a_tool_is_flat_too(given: Any, sent: Any) -> None:
    assert sent == body(tools=[WEATHER], tool_choice=given)["tool_choice"]


def test_r_4_the_effort_is_reasoning_effort() -> None:
    assert {"effort": "high"} == body(reasoning_effort="high")["reasoning"]
    assert "reasoning_effort" not in body(reasoning_effort="high")
    asked = body(reasoning_effort="low", reasoning={"summary": "auto", "effort": "high"})
    assert {"summary": "auto", "effort": "low"} == asked["reasoning"]


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_r_5_the_cap_is_max_output_tokens(name: str) -> None:
    sent = body(**{name: 7})
    assert 7 == sent["max_output_tokens"]
    assert {"max_tokens", "max_completion_tokens"}.isdisjoint(sent)


def test_r_5_a_setting_of_chat_completions_does_not_rename_the_cap() -> None:
    settings = WireSettings(output_field="max_completion_tokens")
    assert 7 == body(max_tokens=7, settings=settings)["max_output_tokens"]


def test_r_6_the_cache_key_is_as_on_chat_completions() -> None:
    settings = WireSettings(cache_key="mine")
    for dialect in (RESPONSES, COMPATIBLE):
        assert "mine" == body_of(dialect, settings=settings)["prompt_cache_key"]
        own = body_of(dialect, settings=settings, prompt_cache_key="own")
        assert "own" == own["prompt_cache_key"]


def test_r_6_the_ask_to_cache_is_as_on_chat_completions() -> None:
    asked = WireSettings(cache_control=True, extra_body={"prompt_cache_retention": "24h"})
    for dialect in (RESPONSES, COMPATIBLE):
        assert "24h" == body_of(dialect, settings=asked)["prompt_cache_retention"]
        assert "cache_control" not in body_of(dialect, settings=asked)


def test_r_7_nothing_is_stored_and_the_whole_conversation_goes_along() -> None:
    sent = body(messages=[HI, {"role": "assistant", "content": "yes"}, HI])
    assert sent["store"] is False
    assert ["hi", "yes", "hi"] == [item["content"] for item in sent["input"]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store", True),
        ("previous_response_id", "resp_1"),
        ("conversation", {"id": "conv_1"}),
        ("input", "hi"),
        ("instructions", "be brief"),
    ],
)
def test_r_7_what_would_lean_on_stored_state_is_refused_by_name(name: str, value: Any) -> None:
    error = refused(RESPONSES, **{name: value})
    assert ("unsupported_parameter", name) == (error.kind, error.param)


def test_r_7_not_to_store_is_what_is_done_anyway() -> None:
    assert body(store=False, previous_response_id=None)["store"] is False
    wire = encode(RESPONSES, store=True, settings=DROP)
    assert json.loads(wire.body)["store"] is False
    assert ("store",) == wire.dropped


def test_r_9_thinking_is_not_sent_back_and_no_summary_is_asked_for() -> None:
    said = {
        "role": "assistant",
        "content": "ok",
        "reasoning": "secret",
        "reasoning_details": [{"type": "reasoning.text", "text": "secret"}],
        "tool_calls": [{**call("a"), "extra_content": {"google": "secret"}}],
    }
    wire = encode(RESPONSES, messages=[said], reasoning_effort="low")
    assert b"secret" not in wire.body
    assert {"effort": "low"} == json.loads(wire.body)["reasoning"]
    assert "include" not in json.loads(wire.body)


ENCRYPTED = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "status": "completed"}


@pytest.mark.parametrize("replay", [False, True])
def test_r_9_encrypted_thinking_goes_back_only_when_the_provider_says_so(replay: bool) -> None:
    """RU-12: each item has its summary, and what it led to follows."""
    calls = (ToolCall(id="a", function=FunctionCall(name="f", arguments="{}")),)
    opaque = {
        "responses": (ENCRYPTED, {"type": "reasoning", "id": "rs_2"}),
        "anthropic": ({"type": "thinking", "signature": "s"},),
    }
    request = ChatRequest(
        model="m",
        messages=(
            AssistantMessage(tool_calls=calls, opaque=opaque),
            ToolMessage(tool_call_id="a", content="x"),
            AssistantMessage(opaque=opaque),
        ),
    )
    settings = WireSettings(replay_reasoning=replay)
    wire = RESPONSES.codec.encode(request, base_url="http://x", stream=True, settings=settings)
    sent = json.loads(wire.body)["input"]
    again: dict[str, Any] = {
        "summary": [],
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "gAAA",
    }
    assert ([again] if replay else []) == [i for i in sent if i.get("type") == "reasoning"]
    assert ["function_call", "function_call_output"] == [item["type"] for item in sent[-2:]]


def test_r_11_a_seed_is_sent_as_it_is_and_the_servers_refusal_is_told() -> None:
    sent = body(seed=7, stop="X", presence_penalty=0.5, n=2, logprobs=True, logit_bias={"1": 2})
    expected: dict[str, Any] = {"seed": 7, "stop": ["X"], "presence_penalty": 0.5, "n": 2}
    expected |= {"logprobs": True, "logit_bias": {"1": 2}}
    assert expected == {key: sent[key] for key in expected}
    said = {"message": "Unknown parameter: 'seed'.", "type": "invalid_request_error"}
    error = error_of(
        RESPONSES, 400, {"error": {**said, "param": "seed", "code": "unknown_parameter"}}
    )
    assert ("invalid_request", "seed", "unknown_parameter", said["message"]) == (
        error.kind,
        error.param,
        error.code,
        error.message,
    )


def test_r_11_what_every_api_assumes_anyway_is_no_request() -> None:
    assumed = {"n": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "logprobs": False}
    sent = body(**assumed, stop=[], logit_bias={}, modalities=["text"])
    assert {"model", "input", "store", "stream"} == set(sent)


def test_r_11_a_field_that_the_operator_drops_is_named() -> None:
    wire = encode(RESPONSES, seed=7, settings=DROP)
    assert "seed" not in json.loads(wire.body)
    assert ("seed",) == wire.dropped


@pytest.mark.parametrize("name", ["max_tokens", "max_output_tokens"])
def test_r_11_the_cap_can_be_dropped_by_either_name(name: str) -> None:
    settings = WireSettings(drop_params=frozenset({name}))
    wire = encode(RESPONSES, max_tokens=7, settings=settings)
    assert ("max_tokens",) == wire.dropped
    assert "max_output_tokens" not in json.loads(wire.body)


@pytest.mark.parametrize(("name", "value"), [("options", {"num_ctx": 1}), ("keep_alive", "5m")])
def test_r_11_what_only_ollama_has_is_refused_here(name: str, value: Any) -> None:
    """RU-18."""
    assert name == refused(RESPONSES, **{name: value}).param


def test_r_11_a_field_of_a_message_is_sent_as_it_is() -> None:
    named: dict[str, Any] = {**HI, "name": "ann", "audio": None, "annotations": []}
    assert [{**HI, "name": "ann"}] == items(named)
    wire = encode(RESPONSES, messages=[named], settings=DROP)
    assert [HI] == json.loads(wire.body)["input"]
    assert ("messages[0].name",) == wire.dropped


def test_r_11_a_field_of_a_part_is_sent_as_it_is() -> None:
    part = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}
    sent = items({"role": "user", "content": [part]})
    assert {"type": "ephemeral"} == sent[0]["content"][0]["cache_control"]
    wire = encode(RESPONSES, messages=[{"role": "user", "content": [part]}], settings=DROP)
    assert [{"type": "input_text", "text": "t"}] == json.loads(wire.body)["input"][0]["content"]
    assert ("messages[0].content[0].cache_control",) == wire.dropped


def test_r_12_system_texts_are_the_instructions_in_order() -> None:
    sent = body(
        messages=[
            {"role": "system", "content": "A", "name": None},
            {"role": "developer", "content": [{"type": "text", "text": "B"}]},
            HI,
            {"role": "system", "content": ""},
            {"role": "system", "content": "C"},
        ]
    )
    assert "A\n\nB\n\nC" == sent["instructions"]
    assert [HI] == sent["input"]


def test_r_12_without_system_text_there_are_no_instructions() -> None:
    assert "instructions" not in body(messages=[{"role": "system", "content": ""}, HI])


def test_r_12_what_is_no_text_has_no_place_in_the_instructions() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/i.png"}}
    error = refused(RESPONSES, messages=[{"role": "system", "content": [image]}])
    assert ("unsupported_content", "messages") == (error.kind, error.param)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "system", "content": "s", "name": "n"}, "messages[0].name"),
        (
            {
                "role": "system",
                "content": [{"type": "text", "text": "s", "cache_control": {"type": "e"}}],
            },
            "messages[0].content[0].cache_control",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [call("a")], "name": "n"},
            "messages[0].name",
        ),
    ],
)
def test_r_12_a_field_without_a_place_is_refused_or_dropped_by_name(
    message: dict[str, Any], param: str
) -> None:
    assert param == refused(RESPONSES, messages=[message]).param
    wire = encode(RESPONSES, messages=[message], settings=DROP)
    assert (param,) == wire.dropped


@pytest.mark.parametrize("stream", [False, True])
def test_r_13_a_stream_is_always_asked_for(stream: bool) -> None:
    assert body(stream=stream)["stream"] is True


def test_r_13_usage_comes_unasked_and_other_stream_options_pass() -> None:
    assert "stream_options" not in body(stream_options={"include_usage": True})
    options = {"include_usage": True, "include_obfuscation": False}
    assert {"include_obfuscation": False} == body(stream_options=options)["stream_options"]


def test_r_18_the_refusal_of_an_effort_beside_tools_names_this_dialect() -> None:
    said = {
        "message": "Function tools with reasoning_effort are not supported. Use /v1/responses.",
        "param": "reasoning_effort",
    }
    error = error_of(COMPATIBLE, 400, {"error": said})
    assert error.hint is not None
    assert 'dialect = "responses"' in error.hint
    other = error_of(COMPATIBLE, 400, {"error": {**said, "param": "model"}})
    assert other.hint is None


def test_r_19_nothing_infers_the_dialect() -> None:
    providers = [
        Provider("a", "https://api.openai.com/v1/responses"),
        Provider("responses", "https://api.openai.com/v1"),
        Provider("b", "https://api.openai.com/v1", dialect="responses"),
    ]
    registry = ModelRegistry(providers)
    models = ("a/gpt-5-responses", "responses/x", "b/x")
    found = [registry.resolve(model).dialect.name for model in models]
    assert ["compatible", "compatible", "responses"] == found


def test_c_2_images_and_files_are_input_parts() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:x;base64,AA=="}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_image", "file_id": "file-2"},
    ]
    expected = [
        {
            "type": "input_image",
            "image_url": "data:image/png;base64,iVBORw0KGgo=",
            "detail": "auto",
        },
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:x;base64,AA=="},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_image", "file_id": "file-2"},
    ]
    assert expected == items({"role": "user", "content": parts})[0]["content"]


def test_c_2_the_response_format_is_text_format() -> None:
    schema = {"name": "out", "schema": {"type": "object"}, "strict": True}
    given = {"type": "json_schema", "json_schema": schema}
    sent = body(response_format=given, verbosity="low", text={"x": 1})
    assert {"x": 1, "format": {"type": "json_schema", **schema}, "verbosity": "low"} == sent["text"]
    assert {"response_format", "verbosity"}.isdisjoint(sent)
    assert {"format": {"type": "json_object"}} == body(response_format={"type": "json_object"})[
        "text"
    ]


def test_c_3_sound_is_refused_as_content() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    error = refused(RESPONSES, messages=[{"role": "user", "content": [part]}])
    assert ("unsupported_content", "messages") == (error.kind, error.param)


def test_c_4_extra_bodies_are_merged_under_and_over_the_encoded_fields() -> None:
    settings = WireSettings(extra_body={"temperature": 0.1, "truncation": "auto"})
    sent = body(temperature=0.5, extra_body={"store": True, "top_p": 1}, settings=settings)
    expected = {"temperature": 0.5, "truncation": "auto", "store": True, "top_p": 1}
    assert expected == {key: sent[key] for key in expected}


def test_re_11_the_phase_of_a_reply_is_not_sent_back() -> None:
    asked = RESPONSES.codec.decode_request(
        {
            "model": "m",
            "input": [
                {
                    "type": "message",
                    "role": "assistant",
                    "phase": "commentary",
                    "content": [{"type": "output_text", "text": "Hm.", "annotations": []}],
                }
            ],
        }
    )
    assert (AssistantMessage(content="Hm."),) == asked.messages


def test_re_19_ids_of_calls_are_kept_as_given() -> None:
    turn = [
        {"role": "assistant", "content": None, "tool_calls": [call("0")]},
        {"role": "tool", "tool_call_id": "0", "content": "x"},
    ]
    assert ["0", "0", "0", "0"] == [item["call_id"] for item in items(*turn, *turn)]


def test_re_20_text_comes_before_all_calls_of_a_turn() -> None:
    said = {"role": "assistant", "content": "t", "tool_calls": [call("a"), call("b")]}
    assert [None, "a", "b"] == [item.get("call_id") for item in items(said)]


def test_re_21_items_carry_no_status_and_no_id() -> None:
    said = {"role": "assistant", "content": "t", "tool_calls": [call("a")]}
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    for item in items(HI, said, result):
        assert {"id", "status"}.isdisjoint(item)


def test_re_22_sampling_fields_are_sent_beside_an_effort() -> None:
    sent = body(reasoning_effort="high", temperature=0.5, top_p=0.9)
    assert (0.5, 0.9) == (sent["temperature"], sent["top_p"])


def test_the_list_of_models_is_openais() -> None:
    wire = RESPONSES.codec.models_request("http://x/v1/")
    assert ("GET", "http://x/v1/models", b"") == (wire.method, wire.url, wire.body)
    found = RESPONSES.codec.decode_models(b'{"data": [{"id": "gpt-r"}]}')
    assert ["gpt-r"] == [info.id for info in found]


def test_every_kind_of_message_is_written() -> None:
    request = ChatRequest(
        model="m",
        messages=(
            SystemMessage(content=(TextPart(text="s"),)),
            UserMessage(content=(TextPart(text="u"),)),
        ),
    )
    wire = RESPONSES.codec.encode(
        request, base_url="http://x", stream=False, settings=WireSettings()
    )
    expected = [{"role": "user", "content": [{"type": "input_text", "text": "u"}]}]
    assert expected == json.loads(wire.body)["input"]
