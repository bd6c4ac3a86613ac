"""Messages and their parts, from a client's words to canonical and back."""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.canonical.values import CONTENT, MESSAGES
from woollama.core.canonical import (
    AssistantMessage,
    Content,
    FunctionCall,
    Message,
    OtherPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    content_from_openai,
    content_to_openai,
    message_from_openai,
    message_to_openai,
    text_of,
)
from woollama.core.errors import RequestError


@given(MESSAGES, st.sampled_from(["reasoning", "reasoning_content"]))
def test_a_message_written_and_read_is_the_same(message: Message, reasoning: str) -> None:
    written = message_to_openai(message, reasoning=reasoning)
    assert message == message_from_openai(written, "messages[0]")


@given(CONTENT)
def test_content_written_and_read_is_the_same(content: Content) -> None:
    assert content == content_from_openai(content_to_openai(content), "content")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"role": "system", "content": "s"}, SystemMessage(content="s")),
        (
            {"role": "developer", "content": "s", "name": "n"},
            SystemMessage(content="s", role="developer", extra={"name": "n"}),
        ),
        ({"role": "user", "content": []}, UserMessage(content=())),
        (
            {"role": "user", "content": ({"type": "text", "text": "t", "cache": 1},)},
            UserMessage(content=(TextPart(text="t", extra={"cache": 1}),)),
        ),
        ({"role": "assistant"}, AssistantMessage()),
        ({"role": "assistant", "content": None, "tool_calls": None}, AssistantMessage()),
        (
            {"role": "assistant", "content": "a", "reasoning": None, "reasoning_content": "r"},
            AssistantMessage(content="a", reasoning="r"),
        ),
        (
            {"role": "assistant", "content": "a", "reasoning": "x", "reasoning_content": "r"},
            AssistantMessage(content="a", reasoning="x"),
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},
            AssistantMessage(
                tool_calls=(ToolCall(id="", function=FunctionCall(name="f", arguments="{}")),)
            ),
        ),
        (
            {"role": "tool", "tool_call_id": "c", "content": None, "is_error": True},
            ToolMessage(tool_call_id="c", content="", is_error=True),
        ),
        (
            {"role": "tool", "tool_call_id": "c", "content": "x", "is_error": 1},
            ToolMessage(tool_call_id="c", content="x"),
        ),
        (MappingProxyType({"role": "user", "content": "m"}), UserMessage(content="m")),
    ],
)
def test_a_message_is_read(raw: Mapping[str, Any], message: Message) -> None:
    assert message == message_from_openai(raw, "messages[0]")


def test_thinking_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "th"}, {"type": "text", "text": "ink"}]
    message = message_from_openai({"role": "assistant", "reasoning": parts}, "m")
    assert AssistantMessage(reasoning="think") == message
    with pytest.raises(RequestError) as caught:
        message_from_openai({"role": "assistant", "reasoning": [7]}, "m")
    assert "m.reasoning[0]" == caught.value.param


@pytest.mark.parametrize(
    ("arguments", "text"),
    [("{", "{"), ("", ""), ({"a": 1}, '{"a":1}'), ([1], "[1]"), (None, "{}"), (0, "0")],
)
def test_c_8_the_arguments_of_a_call_are_text_as_they_came(arguments: Any, text: str) -> None:
    raw = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    message = message_from_openai(raw, "messages[0]")
    assert isinstance(message, AssistantMessage)
    assert text == message.tool_calls[0].arguments


def test_an_error_of_a_tool_leaves_only_where_a_dialect_has_it() -> None:
    written = message_to_openai(ToolMessage(tool_call_id="c", content="x", is_error=True))
    assert {"role": "tool", "tool_call_id": "c", "content": "x"} == written


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        ("hi", "m"),
        (None, "m"),
        (7, "m"),
        ([1], "m"),
        ({"content": ""}, "m.role"),
        ({"role": "function", "content": ""}, "m.role"),
        ({"role": ["user"], "content": ""}, "m.role"),
        ({"role": "user"}, "m.content"),
        ({"role": "user", "content": None}, "m.content"),
        ({"role": "user", "content": 7}, "m.content"),
        ({"role": "user", "content": {"type": "text"}}, "m.content"),
        ({"role": "system", "content": ["text"]}, "m.content[0]"),
        ({"role": "user", "content": [{"text": "t"}]}, "m.content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, "m.content[0].text"),
        ({"role": "user", "content": [{"type": "text", "text": 7}]}, "m.content[0].text"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "m.content[0].image_url"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "u"}]},
            "m.content[0].image_url",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": 7}}]},
            "m.content[0].image_url.url",
        ),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "d"}}]},
            "m.content[0].input_audio.format",
        ),
        ({"role": "user", "content": [{"type": "file"}]}, "m.content[0].file"),
        ({"role": "assistant", "content": 7}, "m.content"),
        ({"role": "assistant", "tool_calls": "x"}, "m.tool_calls"),
        ({"role": "assistant", "tool_calls": 7}, "m.tool_calls"),
        ({"role": "assistant", "tool_calls": [7]}, "m.tool_calls[0]"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "m.tool_calls[0]"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}, "m.tool_calls[0]"),
        ({"role": "assistant", "reasoning_details": 7}, "m.reasoning_details"),
        ({"role": "assistant", "reasoning_details": "x"}, "m.reasoning_details"),
        ({"role": "tool", "content": "x"}, "m.tool_call_id"),
        ({"role": "tool", "tool_call_id": 7, "content": "x"}, "m.tool_call_id"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(raw: Any, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        message_from_openai(raw, "m")
    assert (400, param) == (caught.value.status, caught.value.param)
    assert caught.value.message.startswith(param)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "content", "type", "text", "tool_calls", "function", "image_url"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_input_raises_anything_else(raw: Any) -> None:
    with suppress(RequestError):
        message_from_openai(raw, "m")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("a", "a"),
        ((), ""),
        ((TextPart(text="a"), OtherPart(type="x", raw={}), TextPart(text="b")), "ab"),
    ],
)
def test_the_text_of_content_is_that_of_its_text_parts(content: Any, text: str) -> None:
    assert text == text_of(content)


def test_the_text_of_parts_may_be_separated() -> None:
    assert "a\nb" == text_of((TextPart(text="a"), TextPart(text="b")), separator="\n")
