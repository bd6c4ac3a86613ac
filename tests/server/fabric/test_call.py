"""A call in fabric's words: what is sent, what is named as left out, what is refused."""

from typing import Any

import pytest

from woollama.core.canonical import (
    AssistantMessage,
    AudioPart,
    ImagePart,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from woollama.core.errors import CannotEncode, RequestError
from woollama.core.patterns import PatternCall
from woollama.server.fabric.call import FabricCall, read_call
from woollama.server.fabric.wire import ChatSettings


def read(*messages: Any, drop_params: tuple[str, ...] = (), **more: Any) -> FabricCall:
    more.setdefault("model", "ollama/m")
    call = PatternCall(name="p", messages=messages, **more)
    return read_call(call, default_model=None, drop_params=drop_params)


def test_p_43_the_input_is_the_text_of_all_user_messages_with_blank_lines_between() -> None:
    parts = (TextPart(text="b"), TextPart(text="c"))
    asked = read(UserMessage(content="a"), UserMessage(content=parts), UserMessage(content=""))
    assert ("a\n\nb\n\nc", ()) == (asked.text, asked.dropped)


def test_p_43_other_roles_are_not_sent_and_are_named() -> None:
    asked = read(
        SystemMessage(content="s"),
        UserMessage(content="a"),
        AssistantMessage(content="b"),
        UserMessage(content="c"),
        AssistantMessage(content="d"),
    )
    assert "a\n\nc" == asked.text
    assert ("messages.assistant", "messages.system") == asked.dropped


def test_roles_are_named_as_the_caller_named_them() -> None:
    asked = read(
        SystemMessage(content="s", role="developer"), ToolMessage(tool_call_id="1", content="x")
    )
    assert ("messages.developer", "messages.tool") == asked.dropped


def test_one_image_is_taken_and_the_others_are_named(caplog: pytest.LogCaptureFixture) -> None:
    images = [ImagePart(url=f"https://example.org/{n}.png") for n in (1, 2)]
    asked = read(UserMessage(content=(TextPart(text="what?"), *images)))
    assert "https://example.org/1.png" == asked.image
    assert ("messages.image_url",) == asked.dropped
    assert ["fabric: 2 images in one call; only the first is sent"] == caplog.messages


def test_p_42_what_is_neither_text_nor_image_is_refused() -> None:
    part = AudioPart(data="AAAA", format="wav")
    with pytest.raises(CannotEncode) as caught:
        read(UserMessage(content=(TextPart(text="a"), part)))
    assert ("input[0].content[1]", 400) == (caught.value.param, caught.value.status)


def test_the_model_is_the_calls_or_the_sections() -> None:
    call = PatternCall(name="p")
    asked = read_call(call, default_model="ollama/d", drop_params=())
    assert "ollama/d" == asked.model
    with pytest.raises(RequestError, match="names no model to run on") as caught:
        read_call(call, default_model=None, drop_params=())
    assert ("model", 400) == (caught.value.param, caught.value.status)


def test_a_pattern_does_not_run_on_a_pattern() -> None:
    with pytest.raises(RequestError, match="not on another pattern"):
        read(model="woollama/other")


def test_p_40_variables_that_are_no_text_are_their_json() -> None:
    asked = read(variables={"a": "x", "b": 3, "c": True, "d": None, "e": {"k": ["v"]}, "f": ""})
    assert {"a": "x", "b": "3", "c": "true", "d": "null", "e": '{"k":["v"]}', "f": ""} == (
        asked.variables
    )


def test_variables_that_fabric_would_expand_are_refused() -> None:
    with pytest.raises(RequestError, match="must not contain"):
        read(variables={"a": ["{{b}}"]})


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("temperature", 0, ChatSettings(temperature=0.0)),
        ("top_p", 0.5, ChatSettings(top_p=0.5)),
        ("topP", 0.5, ChatSettings(top_p=0.5)),
        ("frequency_penalty", 0.1, ChatSettings(frequency_penalty=0.1)),
        ("presencePenalty", 0.1, ChatSettings(presence_penalty=0.1)),
        ("context", "me", ChatSettings(context="me")),
        ("strategy", "cot", ChatSettings(strategy="cot")),
        ("language", "de", ChatSettings(language="de")),
        ("search", True, ChatSettings(search=True)),
        ("search_location", "Oslo", ChatSettings(search_location="Oslo")),
        ("reasoning_effort", "high", ChatSettings(thinking="high")),
        ("reasoning_effort", "none", ChatSettings(thinking="off")),
        ("thinking", 2048, ChatSettings(thinking="2048")),
        ("thinking", "2048", ChatSettings(thinking="2048")),
        ("num_ctx", 8192, ChatSettings(context_length=8192)),
        ("temperature", None, ChatSettings()),
        ("n", 1, ChatSettings()),
        ("stop", [], ChatSettings()),
        ("stream_options", {"include_usage": True}, ChatSettings()),
    ],
)
def test_an_option_is_the_setting_that_fabric_has_for_it(
    option: str, value: Any, expected: ChatSettings
) -> None:
    assert expected == read(options={option: value}).settings


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("num_ctx", 0),
        ("num_ctx", True),
        ("search", "yes"),
        ("language", 1),
        ("context", "../../.env"),
        ("context", "~/x"),
        ("strategy", "/etc/passwd"),
        ("reasoning_effort", "extreme"),
        ("thinking", 0),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(RequestError, match=f"'{option}' must be") as caught:
        read(options={option: value})
    assert option == caught.value.param


def test_an_option_without_words_is_refused_by_name_or_left_out_and_named() -> None:
    with pytest.raises(CannotEncode, match="fabric has no words for 'max_tokens'") as caught:
        read(options={"max_tokens": 5})
    assert "max_tokens" == caught.value.param
    assert '"drop_params" of fabric in mcp.json' in str(caught.value)
    asked = read(options={"max_tokens": 5, "tools": [1]}, drop_params=("max_tokens", "tools"))
    assert ("max_tokens", "tools") == asked.dropped


def test_one_setting_by_two_names_must_agree() -> None:
    assert 0.5 == read(options={"top_p": 0.5, "topP": 0.5}).settings.top_p
    with pytest.raises(RequestError, match="given twice"):
        read(options={"top_p": 0.5, "topP": 0.6})
