"""A request, from a client's body to canonical."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core.canonical import (
    FunctionTool,
    NamedTool,
    OtherChoice,
    OtherTool,
    Params,
    UserMessage,
    request_from_openai,
    tool_to_openai,
)
from woollama.core.errors import RequestError

BASE: Mapping[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_the_least_request() -> None:
    request = request_from_openai(BASE)
    assert ("m", (UserMessage(content="hi"),), (), None, Params(), False) == (
        request.model,
        request.messages,
        request.tools,
        request.tool_choice,
        request.params,
        request.stream,
    )
    assert {} == request.extra == request.extra_body


def test_every_parameter_is_read() -> None:
    asked: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 1,
        "max_tokens": 9,
        "stop": ["a", "b"],
        "seed": -1,
        "presence_penalty": 0,
        "frequency_penalty": 0.5,
        "n": 1,
        "logprobs": True,
        "top_logprobs": 2,
        "response_format": {"type": "json_object"},
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "prompt_cache_key": "k",
        "metadata": {"a": "b"},
        "user": "u",
        "stream_options": {"include_usage": True},
        "options": {"num_ctx": 1},
        "keep_alive": "5m",
    }
    assert set(Params.__struct_fields__) == set(asked)
    request = request_from_openai({**BASE, **asked, "stream": True})
    assert {**asked, "stop": ("a", "b")} == request.params.asked()
    assert request.stream


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stop": "x"}, {"stop": ("x",)}),
        ({"max_completion_tokens": 3}, {"max_tokens": 3}),
        ({"max_completion_tokens": 3, "max_tokens": 9}, {"max_tokens": 3}),
        ({"max_completion_tokens": None, "max_tokens": 9}, {"max_tokens": 9}),
        ({"keep_alive": -1}, {"keep_alive": -1}),
        ({"temperature": None, "n": None}, {}),
    ],
)
def test_a_parameter_has_one_name_and_null_is_absent(
    fields: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    assert expected == request_from_openai({**BASE, **fields}).params.asked()


def test_fields_we_do_not_know_are_kept_as_they_came() -> None:
    request = request_from_openai({**BASE, "x_new": {"a": [1]}, "logit_bias": {}, "y": None})
    assert {"x_new": {"a": [1]}, "logit_bias": {}} == request.extra


def test_the_extra_body_is_kept_apart() -> None:
    assert {"a": 1} == request_from_openai({**BASE, "extra_body": {"a": 1}}).extra_body


TOOLS = [
    (
        {"type": "function", "function": {"name": "f"}},
        FunctionTool(name="f"),
    ),
    (
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "d",
                "parameters": {"type": "object"},
                "strict": True,
                "x": 1,
            },
        },
        FunctionTool(
            name="f", description="d", parameters={"type": "object"}, strict=True, extra={"x": 1}
        ),
    ),
    (
        {"type": "web_search", "x": 1},
        OtherTool(type="web_search", raw={"type": "web_search", "x": 1}),
    ),
]


@pytest.mark.parametrize(("raw", "tool"), TOOLS)
def test_a_tool_is_read_and_written(raw: dict[str, Any], tool: Any) -> None:
    assert (tool,) == request_from_openai({**BASE, "tools": [raw]}).tools
    assert raw == tool_to_openai(tool)


@pytest.mark.parametrize(
    ("raw", "choice"),
    [
        (None, None),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "f"}}, NamedTool(name="f")),
        (
            {"type": "function", "function": {"name": 7}},
            OtherChoice(raw={"type": "function", "function": {"name": 7}}),
        ),
        ({"type": "allowed_tools"}, OtherChoice(raw={"type": "allowed_tools"})),
    ],
)
def test_a_tool_choice_is_read(raw: Any, choice: Any) -> None:
    assert choice == request_from_openai({**BASE, "tool_choice": raw}).tool_choice


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 7}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": [7]}, "messages[0]"),
        ({"stream": "yes"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_completion_tokens": "9"}, "max_completion_tokens"),
        ({"stop": 7}, "stop"),
        ({"stop": ["a", 7]}, "stop[1]"),
        ({"n": True}, "n"),
        ({"response_format": "json"}, "response_format"),
        ({"options": [1]}, "options"),
        ({"extra_body": [1]}, "extra_body"),
        ({"tools": "x"}, "tools"),
        ({"tools": 7}, "tools"),
        ({"tools": [7]}, "tools[0]"),
        ({"tools": [{"name": "f"}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": "f"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0]"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": "x"}}]},
            "tools[0].function.parameters",
        ),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"tool_choice": 7}, "tool_choice"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_by_name(
    fields: Mapping[str, Any], param: str
) -> None:
    with pytest.raises(RequestError) as caught:
        request_from_openai({**BASE, **fields})
    assert (400, param) == (caught.value.status, caught.value.param)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [*Params.__struct_fields__, "model", "messages", "tools", "tool_choice", "extra_body"]
        ),
        JSON,
        max_size=4,
    )
)
def test_no_body_raises_anything_else(fields: dict[str, Any]) -> None:
    with suppress(RequestError):
        request_from_openai({**BASE, **fields})
