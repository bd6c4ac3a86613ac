"""Requests to Anthropic: the fields beside the conversation (N-1 to N-4, N-11, N-17, AE-1 …)."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from woollama.core.canonical import request_from_openai
from woollama.core.errors import CannotEncode
from woollama.core.wire import Header, WireRequest, WireSettings
from woollama.core.wire.anthropic import ANTHROPIC, DEFAULT_MAX_TOKENS

HI = {"role": "user", "content": "hi"}
NEW = WireSettings(anthropic_version="2026-10-21")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


def encode(
    *,
    base_url: str = "https://api.anthropic.com/v1",
    stream: bool = False,
    settings: WireSettings | None = None,
    **fields: Any,
) -> WireRequest:
    request = request_from_openai({"model": "claude-x", "messages": [HI], **fields})
    return ANTHROPIC.codec.encode(
        request, base_url=base_url, stream=stream, settings=settings or WireSettings()
    )


def body(**fields: Any) -> dict[str, Any]:
    return json.loads(encode(**fields).body)


def refused(**fields: Any) -> CannotEncode:
    with pytest.raises(CannotEncode) as caught:
        encode(**fields)
    return caught.value


def assert_refused(param: str, **fields: Any) -> None:
    error = refused(**fields)
    assert ("unsupported_parameter", param) == (error.kind, error.param)
    assert error.hint is not None
    assert "drop_params" in error.hint


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"),
        ("http://127.0.0.1:8080/proxy/v1/", "http://127.0.0.1:8080/proxy/v1/messages"),
        ("http://peer.test", "http://peer.test/messages"),
    ],
)
def test_n_1_requests_go_to_messages_under_the_base_with_a_version(base_url: str, url: str) -> None:
    wire = encode(base_url=base_url)
    assert ("POST", url) == (wire.method, wire.url)
    assert {"content-type": "application/json", "anthropic-version": "2023-06-01"} == wire.headers


def test_ae_1_the_version_is_one_setting() -> None:
    assert "2026-10-21" == encode(settings=NEW).headers["anthropic-version"]


def test_n_2_ae_14_the_key_has_one_place_and_the_codec_puts_nothing_there() -> None:
    assert Header(name="x-api-key") == ANTHROPIC.key_place
    for wire in (encode(), ANTHROPIC.codec.models_request("https://api.anthropic.com/v1")):
        assert {"x-api-key", "authorization"}.isdisjoint(wire.headers)


def test_n_2_n_18_the_model_list_is_asked_whole_and_with_a_version() -> None:
    wire = ANTHROPIC.codec.models_request("https://api.anthropic.com/v1/")
    assert "GET" == wire.method
    assert "https://api.anthropic.com/v1/models?limit=1000" == wire.url
    assert {"anthropic-version": "2023-06-01"} == wire.headers
    assert b"" == wire.body


def test_n_18_the_context_of_a_model_is_its_max_input_tokens() -> None:
    listed = {
        "data": [
            {"type": "model", "id": "claude-x", "max_input_tokens": 200_000, "max_tokens": 64_000},
            {"type": "model", "id": "claude-y", "max_input_tokens": None},
        ],
        "has_more": False,
    }
    models = ANTHROPIC.codec.decode_models(json.dumps(listed).encode())
    assert [("claude-x", 200_000), ("claude-y", None)] == [(m.id, m.context) for m in models]


def test_n_4_a_cap_is_always_sent() -> None:
    assert DEFAULT_MAX_TOKENS == 16_384 == body()["max_tokens"]
    assert 7 == body(max_tokens=7)["max_tokens"]
    assert 9 == body(max_tokens=7, max_completion_tokens=9)["max_tokens"]


def test_n_4_the_models_own_cap_stands_in_for_one_that_is_not_asked() -> None:
    own = WireSettings(max_output_tokens=8192)
    assert 8192 == body(settings=own)["max_tokens"]
    assert 7 == body(settings=own, max_tokens=7)["max_tokens"]


def test_n_4_c_4_an_operators_default_beats_ours_and_nothing_else() -> None:
    fill = WireSettings(extra_body={"max_tokens": 100})
    assert 100 == body(settings=fill)["max_tokens"]
    assert 7 == body(settings=fill, max_tokens=7)["max_tokens"]
    assert 8 == body(settings=fill, max_tokens=7, extra_body={"max_tokens": 8})["max_tokens"]


def test_c_4_extra_body_is_merged_shallowly_and_the_requests_comes_last() -> None:
    sent = body(
        settings=WireSettings(extra_body={"speed": "fast", "stop_sequences": ["A"]}),
        stop=["B"],
        extra_body={"context_management": {"edits": []}},
    )
    assert ("fast", ["B"]) == (sent["speed"], sent["stop_sequences"])
    assert {"edits": []} == sent["context_management"]


def test_n_11_an_effort_brings_adaptive_summarized_thinking() -> None:
    sent = body(reasoning_effort="xhigh")
    assert {"effort": "xhigh"} == sent["output_config"]
    assert {"type": "adaptive", "display": "summarized"} == sent["thinking"]
    assert "reasoning_effort" not in sent


def test_n_11_a_13_without_an_effort_neither_field_is_sent() -> None:
    assert {"output_config", "thinking"}.isdisjoint(body())


def test_n_11_thinking_that_was_asked_for_by_name_stays() -> None:
    sent = body(reasoning_effort="low", thinking={"type": "adaptive", "display": "omitted"})
    assert {"type": "adaptive", "display": "omitted"} == sent["thinking"]
    assert {"effort": "low"} == sent["output_config"]


def test_ae_19_no_effort_ever_brings_manual_or_disabled_thinking() -> None:
    for effort in ("low", "medium", "high", "xhigh", "max"):
        assert "adaptive" == body(reasoning_effort=effort)["thinking"]["type"]


def test_c_2_a_schema_is_an_output_format_beside_the_effort() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}
    sent = body(response_format=wanted, reasoning_effort="low", output_config={"later": 1})
    assert {
        "later": 1,
        "effort": "low",
        "format": {"type": "json_schema", "schema": SCHEMA},
    } == sent["output_config"]
    assert "response_format" not in sent


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "json_object"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "n"}},
        {"type": "grammar", "json_schema": {"schema": {}}},
    ],
)
def test_c_3_a_format_without_a_schema_is_refused(wanted: dict[str, Any]) -> None:
    assert_refused("response_format", response_format=wanted)


def test_a_text_format_asks_for_nothing() -> None:
    assert "output_config" not in body(response_format={"type": "text"})


@pytest.mark.parametrize("name", ["temperature", "top_p"])
@pytest.mark.parametrize("value", [0, 0.3, 1, 1.0])
def test_n_17_sampling_is_sent_between_0_and_1(name: str, value: float) -> None:
    assert value == body(**{name: value})[name]


@pytest.mark.parametrize("name", ["temperature", "top_p"])
@pytest.mark.parametrize("value", [-0.1, 1.01, 2, float("nan")])
def test_n_17_sampling_outside_is_refused(name: str, value: float) -> None:
    assert_refused(name, **{name: value})


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_ae_1_the_newer_version_has_no_sampling_even_at_its_defaults(name: str) -> None:
    assert_refused(name, settings=NEW, **{name: 1})


def test_ae_1_the_older_version_has_top_k() -> None:
    assert 40 == body(top_k=40)["top_k"]


def test_ae_18_sampling_is_sent_whatever_the_models_name() -> None:
    assert 0.5 == body(model="claude-opus-4-8", temperature=0.5)["temperature"]


def test_a_1_the_body_depends_on_the_model_and_the_url_in_nothing_but_them() -> None:
    one = body(base_url="https://api.anthropic.com/v1", model="a")
    other = body(base_url="http://localhost:1", model="claude-3-haiku")
    assert {**one, "model": None} == {**other, "model": None}


@pytest.mark.parametrize(
    "asked",
    [
        {"seed": 1},
        {"presence_penalty": 0.5},
        {"frequency_penalty": -0.5},
        {"n": 2},
        {"logprobs": True},
        {"top_logprobs": 3},
        {"prompt_cache_key": "k"},
        {"options": {"num_ctx": 1}},
        {"keep_alive": "5m"},
        {"metadata": {"user_id": "u", "team": "x"}},
        {"service_tier": "flex"},
        {"logit_bias": {"1": 2}},
        {"store": True},
        {"output_config": "high"},
        {"tools": [{"type": "web_search"}]},
        {"tool_choice": {"type": "allowed_tools"}},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_n_17_c_3_what_the_dialect_has_no_words_for_is_refused_by_name(
    asked: dict[str, Any],
) -> None:
    assert_refused(next(iter(asked)), **asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"n": 1},
        {"presence_penalty": 0, "frequency_penalty": 0.0},
        {"logprobs": False, "top_logprobs": 0},
        {"service_tier": "auto"},
        {"store": False},
        {"tools": [], "parallel_tool_calls": True},
        {"tool_choice": "auto"},
        {"tool_choice": "none"},
        {"parallel_tool_calls": False},
        {"stop": []},
        {"metadata": {}, "user": ""},
        {"stream_options": {"include_usage": True}},
        {"logit_bias": {}},
        {"output_config": {}},
    ],
    ids=lambda asked: "-".join(asked),
)
def test_a_default_is_no_request(asked: dict[str, Any]) -> None:
    assert body() == body(**asked)


def test_what_an_operator_drops_is_left_out_and_told() -> None:
    drop = frozenset({"seed", "temperature", "tools", "tool_choice", "messages.name"})
    wire = encode(
        settings=WireSettings(drop_params=drop),
        messages=[{**HI, "name": "Ann"}],
        seed=1,
        temperature=0.2,
        tools=[WEATHER, {"type": "web_search"}],
        tool_choice={"type": "allowed_tools"},
    )
    assert {"seed", "temperature", "tools", "tool_choice", "messages[0].name"} == set(wire.dropped)
    sent = json.loads(wire.body)
    assert {"seed", "temperature", "tool_choice"}.isdisjoint(sent)
    assert ["get_weather"] == [tool["name"] for tool in sent["tools"]]


def test_what_is_set_and_not_dropped_is_not_told() -> None:
    assert () == encode(temperature=0.2).dropped


def test_a_user_is_the_metadata_of_the_api() -> None:
    assert {"user_id": "u1"} == body(user="u1")["metadata"]
    assert {"user_id": "u1"} == body(metadata={"user_id": "u1"})["metadata"]
    assert {"user_id": "u1"} == body(user="u1", metadata={"user_id": "u1"})["metadata"]


def test_c_3_two_users_at_once_are_refused() -> None:
    assert_refused("metadata", user="u1", metadata={"user_id": "u2"})


def test_stop_is_renamed() -> None:
    sent = body(stop="END")
    assert ["END"] == sent["stop_sequences"]
    assert "stop" not in sent


@pytest.mark.parametrize(
    "own",
    [
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"container": "c1"},
        {"diagnostics": {"previous_message_id": "msg_1"}},
        {"inference_geo": "eu"},
        {"service_tier": "standard_only"},
        {"speed": "fast"},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        {"user_profile_id": "p"},
    ],
    ids=lambda own: next(iter(own)),
)
def test_fields_of_the_api_itself_are_sent_as_they_are(own: dict[str, Any]) -> None:
    assert {**body(), **own} == body(**own)


def test_n_17_the_ask_to_cache_is_a_setting_and_a_clients_own_wins() -> None:
    cached = WireSettings(cache_control=True)
    assert {"type": "ephemeral"} == body(settings=cached)["cache_control"]
    own = {"type": "ephemeral", "ttl": "1h"}
    assert own == body(settings=cached, cache_control=own)["cache_control"]


def test_n_19_a_stream_is_asked_for_when_it_is_wanted() -> None:
    assert "stream" not in body()
    sent = body(stream=True, stream_options={"include_usage": True})
    assert sent["stream"] is True
    assert "stream_options" not in sent


def tool_choice(choice: Any, **fields: Any) -> Any:
    return body(tools=[WEATHER], tool_choice=choice, **fields).get("tool_choice")


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ({"type": "function", "function": {"name": "f"}}, {"type": "tool", "name": "f"}),
    ],
)
def test_a_choice_is_written_in_the_apis_words(choice: Any, written: Mapping[str, Any]) -> None:
    assert written == tool_choice(choice)
    alone = {**written, "disable_parallel_tool_use": True}
    assert alone == tool_choice(choice, parallel_tool_calls=False)


def test_no_choice_is_parallel_or_not() -> None:
    assert {"type": "none"} == tool_choice("none", parallel_tool_calls=False)
    assert tool_choice(None) is None
    alone = {"type": "auto", "disable_parallel_tool_use": True}
    assert alone == tool_choice(None, parallel_tool_calls=False)


def test_ae_15_a_forced_choice_is_sent_beside_any_thinking() -> None:
    manual = {"type": "enabled", "budget_tokens": 2048}
    assert {"type": "any"} == tool_choice("required", thinking=manual)
    assert {"type": "any"} == tool_choice("required", reasoning_effort="high")


def test_a_forced_choice_without_tools_is_for_the_server_to_refuse() -> None:
    assert {"type": "any"} == body(tool_choice="required")["tool_choice"]


def test_a_tool_is_flat_and_its_schema_an_object() -> None:
    bare = {"type": "function", "function": {"name": "now"}}
    loose: dict[str, Any] = {
        "type": "function",
        "function": {"name": "any", "parameters": {}, "strict": False},
    }
    typed = {
        "type": "function",
        "function": {"name": "get_weather", "description": "Now", "parameters": SCHEMA},
    }
    assert [
        {"name": "now", "input_schema": {"type": "object", "properties": {}}},
        {"name": "any", "input_schema": {"type": "object", "properties": {}}, "strict": False},
        {"name": "get_weather", "description": "Now", "input_schema": SCHEMA},
    ] == body(tools=[bare, loose, typed])["tools"]


def test_a_schema_without_a_type_gets_one_and_keeps_the_rest() -> None:
    loose = {"type": "function", "function": {"name": "f", "parameters": {"required": ["a"]}}}
    sent = body(tools=[loose])["tools"][0]
    assert {"type": "object", "required": ["a"]} == sent["input_schema"]


def test_keys_that_the_api_has_on_a_tool_are_sent_and_others_refused() -> None:
    marked = {"name": "f", "cache_control": {"type": "ephemeral"}}
    sent = body(tools=[{"type": "function", "function": marked}])["tools"][0]
    assert {"type": "ephemeral"} == sent["cache_control"]
    odd = {"type": "function", "function": {"name": "f", "colour": "red"}}
    assert_refused("tools[1].function.colour", tools=[WEATHER, odd])


def test_the_apis_own_tools_bear_a_date_and_are_sent_as_they_are() -> None:
    assert [SEARCH] == body(tools=[SEARCH])["tools"]
