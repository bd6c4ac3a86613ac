"""Requests to Ollama: rules O-1 to O-4 and those of OL-1 to OL-26 that are about what is sent."""

import json
from typing import Any

import pytest

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FunctionCall,
    ToolCall,
    ToolMessage,
    UserMessage,
    request_from_openai,
)
from woollama.core.errors import CannotEncode
from woollama.core.wire import Bearer, WireRequest, WireSettings
from woollama.core.wire.ollama import OLLAMA

HI = {"role": "user", "content": "hi"}
PNG = "iVBORw0KGgo="
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object"}},
}


def encode(
    *,
    base_url: str = "http://peer.test",
    stream: bool = False,
    settings: WireSettings | None = None,
    **fields: Any,
) -> WireRequest:
    request = request_from_openai({"model": "qwen3:4b", "messages": [HI], **fields})
    return OLLAMA.codec.encode(
        request, base_url=base_url, stream=stream, settings=settings or WireSettings()
    )


def body(**fields: Any) -> dict[str, Any]:
    return json.loads(encode(**fields).body)


def messages(*given: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return body(messages=list(given), **fields)["messages"]


def refused(**fields: Any) -> CannotEncode:
    with pytest.raises(CannotEncode) as caught:
        encode(**fields)
    return caught.value


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("http://h:11434", "http://h:11434"),
        ("http://h:11434/", "http://h:11434"),
        ("http://h:11434/v1", "http://h:11434"),
        ("http://h:11434/v1/", "http://h:11434"),
        ("https://h/proxy/v1", "https://h/proxy"),
        ("https://h/v10", "https://h/v10"),
        ("https://h/v1/x", "https://h/v1/x"),
        ("http://v1", "http://v1"),
        ("http://v1/v1", "http://v1"),
    ],
)
def test_o_1_requests_go_to_api_chat_and_a_base_loses_its_v1(base_url: str, root: str) -> None:
    wire = encode(base_url=base_url)
    assert ("POST", f"{root}/api/chat") == (wire.method, wire.url)
    assert {"content-type": "application/json"} == dict(wire.headers)


def test_o_1_the_model_list_comes_from_api_tags() -> None:
    wire = OLLAMA.codec.models_request("http://h:11434/v1/")
    assert ("GET", "http://h:11434/api/tags", b"") == (wire.method, wire.url, wire.body)


def test_o_2_num_ctx_and_keep_alive_are_sent_when_set() -> None:
    sent = body(options={"num_ctx": 8192}, keep_alive="10m")
    assert ({"num_ctx": 8192}, "10m") == (sent["options"], sent["keep_alive"])


def test_o_2_settings_fill_in_num_ctx_and_keep_alive() -> None:
    sent = body(settings=WireSettings(num_ctx=4096, keep_alive=-1))
    assert ({"num_ctx": 4096}, -1) == (sent["options"], sent["keep_alive"])


@pytest.mark.parametrize("asked", [{"options": {"num_ctx": 8192}}, {"num_ctx": 8192}])
def test_o_2_the_request_wins_over_the_settings(asked: dict[str, Any]) -> None:
    sent = body(settings=WireSettings(num_ctx=4096, keep_alive="1h"), keep_alive=0, **asked)
    assert ({"num_ctx": 8192}, 0) == (sent["options"], sent["keep_alive"])


def test_o_2_nothing_is_sent_that_nobody_set() -> None:
    assert {"model": "qwen3:4b", "messages": [HI], "stream": False} == body()


def test_o_3_thinking_is_a_field_of_its_own_and_arguments_are_objects() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": '{"a":1}'}}
    said = {"role": "assistant", "content": "Hm", "reasoning": "why", "tool_calls": [call]}
    assert {
        "role": "assistant",
        "content": "Hm",
        "thinking": "why",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
    } == messages(said)[0]


def test_o_3_an_effort_is_sent_as_think() -> None:
    sent = body(reasoning_effort="high")
    assert "high" == sent["think"]
    assert "reasoning_effort" not in sent


def test_o_4_a_key_goes_where_bearers_go_and_the_codec_adds_none() -> None:
    assert Bearer() == OLLAMA.key_place
    assert "authorization" not in encode().headers


@pytest.mark.parametrize("stream", [True, False])
def test_ol_1_stream_is_always_said(stream: bool) -> None:
    assert body(stream=stream)["stream"] is stream


def test_ol_2_sampling_fields_move_under_options() -> None:
    sent = body(
        temperature=0,
        top_p=0.5,
        seed=3,
        stop="END",
        max_completion_tokens=9,
        presence_penalty=0.1,
        frequency_penalty=0.25,
    )
    assert {
        "temperature": 0,
        "top_p": 0.5,
        "seed": 3,
        "stop": ["END"],
        "num_predict": 9,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.25,
    } == sent["options"]
    assert {"model", "messages", "stream", "options"} == sent.keys()


def test_ol_2_what_the_caller_set_in_options_wins() -> None:
    sent = body(
        temperature=0.2,
        max_tokens=10,
        top_k=5,
        options={"temperature": 0.7, "num_predict": 20, "top_k": 40, "seed": None},
    )
    assert {"temperature": 0.7, "num_predict": 20, "top_k": 40} == sent["options"]


def test_ol_2_options_of_the_provider_are_defaults() -> None:
    settings = WireSettings(extra_body={"options": {"num_gpu": 1}, "truncate": False})
    assert ({"num_gpu": 1}, False) == (
        body(settings=settings)["options"],
        body(settings=settings)["truncate"],
    )
    assert {"seed": 1} == body(settings=settings, seed=1)["options"]


@pytest.mark.parametrize("asked", [{"stop": "X"}, {"options": {"stop": "X"}}])
def test_ol_3_stop_is_always_a_list(asked: dict[str, Any]) -> None:
    assert ["X"] == body(**asked)["options"]["stop"]


@pytest.mark.parametrize("arguments", ["oops", "[1]", "", '"text"', '{"a":'])
def test_ol_4_arguments_that_are_no_object_are_an_empty_one(arguments: str) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    sent = messages({"role": "assistant", "content": None, "tool_calls": [call]})
    assert {} == sent[0]["tool_calls"][0]["function"]["arguments"]


def test_ol_5_a_result_carries_the_name_and_the_id_of_its_call() -> None:
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
    ]
    sent = messages(
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "2", "name": "other"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    )
    assert [
        {"role": "tool", "content": "2", "tool_name": "g", "tool_call_id": "b"},
        {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "a"},
    ] == sent[1:]


def test_ol_5_a_result_whose_call_is_gone_keeps_the_name_it_came_with() -> None:
    sent = messages({"role": "tool", "tool_call_id": "a", "content": "1", "name": "f"})
    assert [{"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "a"}] == sent


def test_ol_5_a_result_without_any_name_is_sent_with_its_id() -> None:
    sent = messages({"role": "tool", "tool_call_id": "a", "content": "1"})
    assert [{"role": "tool", "content": "1", "tool_call_id": "a"}] == sent


def test_ol_5_calls_without_an_id_are_tied_by_the_name() -> None:
    call = ToolCall(id="", function=FunctionCall(name="f", arguments="{}"))
    request = ChatRequest(
        model="m",
        messages=(
            AssistantMessage(tool_calls=(call,)),
            ToolMessage(tool_call_id="", content="1"),
        ),
    )
    wire = OLLAMA.codec.encode(request, base_url="http://h", stream=False, settings=WireSettings())
    sent = json.loads(wire.body)["messages"]
    assert [{"function": {"name": "f", "arguments": {}}}] == sent[0]["tool_calls"]
    assert {"role": "tool", "content": "1", "tool_name": "f"} == sent[1]


@pytest.mark.parametrize(
    ("effort", "think"),
    [
        ("none", False),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("max", "max"),
        ("xhigh", "max"),
        ("ultra", "max"),
        ("other", "other"),
    ],
)
def test_ol_6_efforts_have_their_words(effort: str, think: str | bool) -> None:
    assert think == body(reasoning_effort=effort)["think"]


def test_ol_6_its_own_word_for_an_effort_is_taken_too() -> None:
    assert True is body(think=True, reasoning_effort="low")["think"]


@pytest.mark.parametrize(
    "url", [f"data:image/png;base64,{PNG}", f"DATA:image/png;charset=x;Base64,{PNG}"]
)
def test_ol_7_images_lose_their_prefix_and_texts_join_with_a_newline(url: str) -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": url, "detail": "auto"}},
        {"type": "text", "text": "b"},
    ]
    sent = messages({"role": "user", "content": parts})
    assert [{"role": "user", "content": "a\nb", "images": [PNG]}] == sent


def test_ol_7_sound_goes_where_images_go() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    assert [{"role": "user", "content": "", "images": ["UklGRg=="]}] == messages(
        {"role": "user", "content": [part]}
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "http://127.0.0.1:8080/latest/meta-data",
        "http://[::ffff:127.0.0.1]/a.png",
        "http://2130706433/a.png",
        "file:///etc/passwd",
        "data:image/svg+xml,<svg/>",
        PNG,
        "",
    ],
)
def test_ol_7_an_image_by_address_is_refused_and_never_fetched(url: str) -> None:
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    error = refused(messages=[HI, {"role": "user", "content": parts}])
    assert ("unsupported_content", "messages", 400) == (error.kind, error.param, error.status)
    assert "messages[1].content[0]" in error.message


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"type": "file", "file": {"file_id": "f"}}, "a file"),
        ({"type": "hologram", "x": 1}, "'hologram'"),
    ],
)
def test_c_3_other_parts_are_refused_as_content(part: dict[str, Any], word: str) -> None:
    error = refused(messages=[{"role": "user", "content": [part]}])
    assert ("unsupported_content", "messages") == (error.kind, error.param)
    assert word in error.message


def test_ol_8_none_sends_no_tools_and_auto_is_not_said() -> None:
    assert "tools" not in body(tools=[WEATHER], tool_choice="none")
    sent = body(tools=[WEATHER], tool_choice="auto")
    assert [WEATHER] == sent["tools"]
    assert "tool_choice" not in sent


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "get_weather"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
    ],
)
def test_ol_8_a_forced_call_is_refused_or_dropped_as_the_operator_says(choice: Any) -> None:
    error = refused(tools=[WEATHER], tool_choice=choice)
    assert ("unsupported_parameter", "tool_choice") == (error.kind, error.param)
    settings = WireSettings(drop_params=frozenset({"tool_choice"}))
    wire = encode(tools=[WEATHER], tool_choice=choice, settings=settings)
    assert ("tool_choice",) == wire.dropped
    assert [WEATHER] == json.loads(wire.body)["tools"]


def test_ol_10_the_cap_is_num_predict() -> None:
    assert {"num_predict": 64} == body(max_tokens=64)["options"]


def test_ol_16_no_messages_and_no_keep_alive_unload_a_model() -> None:
    assert {"model": "qwen3:4b", "messages": [], "stream": False, "keep_alive": 0} == body(
        messages=[], keep_alive=0
    )


def test_ol_20_thinking_is_turned_off_by_saying_so_and_else_left_to_the_model() -> None:
    assert body(reasoning_effort="none")["think"] is False
    assert "think" not in body()


def test_a_13_no_effort_is_sent_that_nobody_chose() -> None:
    assert "think" not in body(tools=[WEATHER], temperature=0.1)


def test_ol_21_tool_schemas_are_sent_as_given() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": "string", "default": "x"}},
        "$defs": {"a": {"oneOf": [{"type": "string", "format": "date"}]}},
        "additionalProperties": False,
    }
    tool = {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": schema, "strict": True},
    }
    assert [tool] == body(tools=[tool])["tools"]


def test_ol_22_unknown_options_and_wrong_types_are_sent_as_given() -> None:
    options = {"hologram": 1, "temperature": "hot"}
    assert options == body(options=options)["options"]


def test_ol_23_a_format_and_thinking_go_together() -> None:
    sent = body(reasoning_effort="low", response_format={"type": "json_object"})
    assert ("json", "low") == (sent["format"], sent["think"])


@pytest.mark.parametrize("asked", [{"extra_body": {"truncate": False}}, {"truncate": False}])
def test_ol_24_truncate_can_be_said(asked: dict[str, Any]) -> None:
    assert body(**asked)["truncate"] is False


def test_ol_25_thinking_of_earlier_turns_is_sent() -> None:
    sent = messages({"role": "assistant", "content": "4", "reasoning_content": "2+2"}, HI)
    assert {"role": "assistant", "content": "4", "thinking": "2+2"} == sent[0]


def test_ol_26_no_system_prompt_is_added_or_moved() -> None:
    late = {"role": "system", "content": "s"}
    assert [HI, late] == messages(HI, late)


def test_oc_41_system_messages_are_merged_where_a_setting_says_so() -> None:
    late = {"role": "developer", "content": "s"}
    sent = messages(late, HI, late, settings=WireSettings(merge_system=True))
    assert [{"role": "system", "content": "s\n\ns"}, HI] == sent


def test_c_1_developer_is_sent_as_system() -> None:
    assert [{"role": "system", "content": "d"}] == messages({"role": "developer", "content": "d"})


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ({"type": "json_object"}, "json"),
        ({"type": "json_object", "schema": {"type": "array"}}, {"type": "array"}),
        ({"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}, {}),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
            {"type": "object"},
        ),
    ],
)
def test_c_2_a_response_format_is_a_format(wanted: dict[str, Any], sent: Any) -> None:
    assert sent == body(response_format=wanted)["format"]


@pytest.mark.parametrize("wanted", [{"type": "text"}, {}])
def test_c_2_plain_text_needs_no_format(wanted: dict[str, Any]) -> None:
    assert "format" not in body(response_format=wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "grammar", "grammar": "root"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "n"}},
        {"type": "json_object", "schema": "text"},
    ],
)
def test_c_3_a_format_without_words_is_refused(wanted: dict[str, Any]) -> None:
    error = refused(response_format=wanted)
    assert ("unsupported_parameter", "response_format") == (error.kind, error.param)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("parallel_tool_calls", False),
        ("prompt_cache_key", "k"),
        ("metadata", {"a": "b"}),
        ("user", "u"),
        ("logit_bias", {"1": 2}),
        ("hologram", True),
    ],
)
def test_c_3_what_has_no_words_is_refused_by_name_or_dropped(name: str, value: Any) -> None:
    error = refused(**{name: value})
    assert ("unsupported_parameter", name, 400) == (error.kind, error.param, error.status)
    settings = WireSettings(drop_params=frozenset({name}))
    wire = encode(settings=settings, **{name: value})
    assert (name,) == wire.dropped
    assert name not in json.loads(wire.body)


@pytest.mark.parametrize(
    "nothing",
    [{"n": 1}, {"parallel_tool_calls": True}, {"tools": []}, {"tool_choice": "auto"}, {"user": ""}],
)
def test_c_3_what_the_api_would_assume_anyway_is_no_request(nothing: dict[str, Any]) -> None:
    assert {"model": "qwen3:4b", "messages": [HI], "stream": False} == body(**nothing)


def test_c_3_a_tool_that_is_no_function_is_refused_or_dropped() -> None:
    tools = [{"type": "web_search"}, WEATHER]
    assert "tools" == refused(tools=tools).param
    wire = encode(tools=tools, settings=WireSettings(drop_params=frozenset({"tools"})))
    assert (("tools",), [WEATHER]) == (wire.dropped, json.loads(wire.body)["tools"])


def test_c_3_a_key_of_a_message_is_refused_or_dropped() -> None:
    named = {**HI, "name": "ann"}
    assert "messages[1].name" == refused(messages=[HI, named]).param
    settings = WireSettings(drop_params=frozenset({"messages.name"}))
    wire = encode(messages=[HI, named], settings=settings)
    assert (("messages[1].name",), [HI, HI]) == (wire.dropped, json.loads(wire.body)["messages"])


def test_c_3_a_key_of_a_part_is_refused_or_dropped() -> None:
    part = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}, "note": None}
    said = [{"role": "user", "content": [part]}]
    assert "messages[0].content[0].cache_control" == refused(messages=said).param
    settings = WireSettings(drop_params=frozenset({"messages.content.cache_control"}))
    wire = encode(messages=said, settings=settings)
    assert ("messages[0].content[0].cache_control",) == wire.dropped


def test_c_3_a_name_that_is_no_text_names_no_tool() -> None:
    result = {"role": "tool", "tool_call_id": "a", "content": "1", "name": 7}
    assert "messages[0].name" == refused(messages=[result]).param
    settings = WireSettings(drop_params=frozenset({"messages.name"}))
    assert "tool_name" not in messages(result, settings=settings)[0]


def test_the_scale_of_an_image_is_left_to_the_server_and_reported() -> None:
    image = {"url": f"data:image/png;base64,{PNG}", "detail": "high"}
    wire = encode(
        messages=[{"role": "user", "content": [{"type": "image_url", "image_url": image}]}]
    )
    assert ("messages[0].content[0].image_url.detail",) == wire.dropped


@pytest.mark.parametrize("settings", [{"cache_control": True}, {"cache_key": "k"}])
def test_c_3_what_an_operator_set_is_not_dropped_either(settings: dict[str, Any]) -> None:
    assert refused(settings=WireSettings(**settings)).param in settings


def test_c_4_extra_body_is_merged_last_and_the_providers_first() -> None:
    settings = WireSettings(extra_body={"think": "low", "keep_alive": "1h"})
    sent = body(settings=settings, reasoning_effort="high", extra_body={"keep_alive": 5, "x": 1})
    assert ("high", 5, 1) == (sent["think"], sent["keep_alive"], sent["x"])


def test_p_3_num_ctx_beside_the_options_becomes_one() -> None:
    sent = body(num_ctx=2048, top_k=4)
    assert {"num_ctx": 2048, "top_k": 4} == sent["options"]
    assert "num_ctx" not in sent


def test_logprobs_are_sent_as_asked() -> None:
    sent = body(logprobs=True, top_logprobs=3)
    assert (True, 3) == (sent["logprobs"], sent["top_logprobs"])


def test_a_refusal_of_an_earlier_turn_stays_text() -> None:
    sent = messages(
        {"role": "assistant", "content": "a", "refusal": "no"},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "content": None},
    )
    assert ["a\nno", "no", ""] == [message["content"] for message in sent]


def test_ru_12_opaque_reasoning_and_is_error_do_not_leave() -> None:
    call = ToolCall(
        id="c",
        function=FunctionCall(name="f", arguments="{}"),
        extra_content={"google": {"thought_signature": "s"}},
    )
    request = ChatRequest(
        model="m",
        messages=(
            UserMessage(content="q"),
            AssistantMessage(
                tool_calls=(call,), reasoning_details=({"x": 1},), opaque={"anthropic": ({},)}
            ),
            ToolMessage(tool_call_id="c", content="r", is_error=True),
        ),
    )
    settings = WireSettings(replay_reasoning=True)
    wire = OLLAMA.codec.encode(request, base_url="http://h", stream=False, settings=settings)
    assert [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}],
        },
        {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "c"},
    ] == json.loads(wire.body)["messages"]


def test_model_names_are_sent_as_written() -> None:
    assert "hf.co/User/Qwen3:14B-iq4xs" == body(model="hf.co/User/Qwen3:14B-iq4xs")["model"]


def test_usage_always_comes_and_need_not_be_asked_for() -> None:
    assert "stream_options" not in body(stream=True, stream_options={"include_usage": True})
