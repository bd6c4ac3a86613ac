"""What clients send to ``/v1/responses``, read as canonical requests."""

import json
from typing import Any

import pytest

from tests.core.wire.exchange import BASE_URL
from woollama.core.canonical import (
    AssistantMessage,
    AudioPart,
    ChatRequest,
    FilePart,
    FunctionCall,
    FunctionTool,
    ImagePart,
    Message,
    NamedTool,
    OtherChoice,
    OtherPart,
    OtherTool,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from woollama.core.errors import RequestError
from woollama.core.wire import WireSettings
from woollama.core.wire.responses import RESPONSES

HI = UserMessage(content="hi")


def decode(**fields: Any) -> ChatRequest:
    return RESPONSES.codec.decode_request({"model": "m", "input": "hi", **fields})


def messages(*items: Any) -> tuple[Message, ...]:
    return decode(input=list(items)).messages


def fault(**fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        decode(**fields)
    return caught.value


def tool_call(identity: str) -> ToolCall:
    return ToolCall(id=identity, function=FunctionCall(name="f", arguments="{}"))


def call(identity: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": identity,
        "name": "f",
        "arguments": "{}",
        **fields,
    }


def said(text: str, **fields: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **fields,
    }


def thought(*summary: str, **fields: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": parts, **fields}


def test_a_text_is_one_user_message() -> None:
    assert ChatRequest(model="m", messages=(HI,)) == decode()


def test_instructions_come_first_as_a_system_message() -> None:
    found = decode(instructions="Be brief.", input=[{"role": "user", "content": "hi"}])
    assert (SystemMessage(content="Be brief."), HI) == found.messages
    assert (HI,) == decode(instructions=None).messages
    assert (HI,) == decode(instructions="").messages


def test_messages_of_every_role_are_read_with_or_without_their_type() -> None:
    found = messages(
        {"role": "system", "content": "s"},
        {"type": "message", "role": "developer", "content": "d"},
        {"role": "user", "content": "hi", "name": "ann", "x": None},
        {"role": "assistant", "content": "ok"},
    )
    expected = (
        SystemMessage(content="s"),
        SystemMessage(content="d", role="developer"),
        UserMessage(content="hi", extra={"name": "ann"}),
        AssistantMessage(content="ok"),
    )
    assert expected == found


def test_parts_are_read_in_the_words_of_both_apis() -> None:
    image = "data:image/png;base64,iVBORw0KGgo="
    found = messages(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "x"}},
                {"type": "input_image", "image_url": image, "detail": "auto"},
                {"type": "input_image", "image_url": image, "detail": "low"},
                {"type": "input_image", "file_id": "f"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "d", "file_id": None},
                {"type": "input_file", "file_url": "https://x/a.pdf"},
                {"type": "text", "text": "b"},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                {"type": "new", "x": 1},
            ],
        }
    )
    expected = (
        TextPart(text="a", extra={"prompt_cache_breakpoint": {"mode": "x"}}),
        ImagePart(url=image),
        ImagePart(url=image, detail="low"),
        OtherPart(type="input_image", raw={"type": "input_image", "file_id": "f"}),
        FilePart(filename="a.pdf", file_data="d"),
        FilePart(extra={"file_url": "https://x/a.pdf"}),
        TextPart(text="b"),
        AudioPart(data="AA==", format="wav"),
        OtherPart(type="new", raw={"type": "new", "x": 1}),
    )
    assert (UserMessage(content=expected),) == found


def test_a_turn_is_its_thinking_its_text_and_its_calls() -> None:
    """R-2; what the server said of its own items is not kept."""
    found = messages(
        {"role": "user", "content": "hi"},
        thought("a", "", "b"),
        said("Looking."),
        call("1", id="fc_1", status="completed"),
        call("2"),
        {"type": "function_call_output", "call_id": "1", "output": "x", "id": "o"},
        {
            "type": "function_call_output",
            "call_id": "2",
            "output": [{"type": "input_text", "text": "y"}],
        },
        {"type": "function_call_output", "call_id": "3", "output": None},
        said("Done."),
    )
    expected = (
        HI,
        AssistantMessage(
            content="Looking.", reasoning="a\n\nb", tool_calls=(tool_call("1"), tool_call("2"))
        ),
        ToolMessage(tool_call_id="1", content="x"),
        ToolMessage(tool_call_id="2", content=(TextPart(text="y"),)),
        ToolMessage(tool_call_id="3", content=""),
        AssistantMessage(content="Done."),
    )
    assert expected == found


def test_two_answers_in_a_row_are_two_messages() -> None:
    found = messages(said("Hm."), thought("t"), said("Yes."), said("Yes!"))
    expected = (
        AssistantMessage(content="Hm."),
        AssistantMessage(content="Yes.", reasoning="t"),
        AssistantMessage(content="Yes!"),
    )
    assert expected == found


def test_text_and_thinking_between_two_calls_stay_in_their_turn() -> None:
    """RE-20: results may follow only the turn that holds all calls."""
    found = messages(said("a"), call("1"), thought("t"), said("b"), call("2"), thought("u"))
    expected = AssistantMessage(
        content="ab", reasoning="t\n\nu", tool_calls=(tool_call("1"), tool_call("2"))
    )
    assert (expected,) == found


def test_parts_of_an_answer_that_are_more_than_text_stay_parts() -> None:
    marked = {"type": "output_text", "text": "b", "annotations": [{"type": "url_citation"}]}
    part = TextPart(text="b", extra={"annotations": [{"type": "url_citation"}]})
    assert (AssistantMessage(content=(part,)),) == messages(said("", content=[marked]))
    both = messages(said("a"), call("1"), said("", content=[marked]))
    assert (TextPart(text="a"), part) == both[0].content
    other = messages(said("", content=[marked]), call("1"), said("c"))
    assert (part, TextPart(text="c")) == other[0].content


def test_a_refusal_is_read_apart_from_the_text() -> None:
    no = {"type": "refusal", "refusal": "No."}
    assert (AssistantMessage(refusal="No."),) == messages(said("", content=[no]))
    text = {"type": "output_text", "text": "Well."}
    found = messages(call("1"), said("", content=[text, no]), said("", content=[no]))
    expected = AssistantMessage(content="Well.", refusal="No.No.", tool_calls=(tool_call("1"),))
    assert (expected,) == found


def test_encrypted_thinking_is_kept_for_its_own_dialect() -> None:
    """RU-12: and goes back to it, as it came, when the provider says so."""
    items = [thought("t", encrypted_content="gA"), thought(encrypted_content="gB"), call("1")]
    request = decode(input=items)
    (turn,) = request.messages
    assert isinstance(turn, AssistantMessage)
    assert ("t", {"responses": tuple(items[:2])}) == (turn.reasoning, turn.opaque)
    settings = WireSettings(replay_reasoning=True)
    wire = RESPONSES.codec.encode(request, base_url=BASE_URL, stream=True, settings=settings)
    again = RESPONSES.codec.decode_request(json.loads(wire.body))
    assert request.messages == again.messages


def test_raw_thinking_is_read_when_there_is_no_summary() -> None:
    raw = thought(content=[{"type": "reasoning_text", "text": "hm"}])
    assert (AssistantMessage(reasoning="hm"),) == messages(raw)


def test_parameters_are_read_under_their_canonical_names() -> None:
    found = decode(
        max_output_tokens=9,
        temperature=0.5,
        top_p=1,
        top_logprobs=2,
        parallel_tool_calls=False,
        prompt_cache_key="k",
        metadata={"a": "b"},
        user="u",
        reasoning={"effort": "high", "summary": "auto", "mode": None},
        text={"verbosity": "low", "format": {"type": "json_object"}, "x": 1},
        stream=True,
        stream_options={"include_obfuscation": False},
        stop="X",
        extra_body={"e": 1},
    )
    params = found.params
    assert (9, 0.5, 1, 2) == (
        params.max_tokens,
        params.temperature,
        params.top_p,
        params.top_logprobs,
    )
    assert (False, "k", {"a": "b"}, "u") == (
        params.parallel_tool_calls,
        params.prompt_cache_key,
        params.metadata,
        params.user,
    )
    assert ("high", {"type": "json_object"}, ("X",)) == (
        params.reasoning_effort,
        params.response_format,
        params.stop,
    )
    assert ({"include_obfuscation": False}, True, {"e": 1}) == (
        params.stream_options,
        found.stream,
        found.extra_body,
    )
    expected = {"reasoning": {"summary": "auto"}, "verbosity": "low", "text": {"x": 1}}
    assert expected == found.extra


@pytest.mark.parametrize("empty", [None, {}, {"effort": None}, {"format": None}])
def test_empty_groups_of_parameters_ask_for_nothing(empty: Any) -> None:
    assert ChatRequest(model="m", messages=(HI,)) == decode(reasoning=empty, text=empty)


def test_a_schema_is_nested_as_on_chat_completions() -> None:
    schema = {"name": "out", "schema": {"type": "object"}, "strict": True}
    found = decode(text={"format": {"type": "json_schema", **schema}})
    assert {"type": "json_schema", "json_schema": schema} == found.params.response_format


def test_what_canonical_requests_have_no_field_for_is_kept() -> None:
    given = {
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "previous_response_id": "resp_1",
        "conversation": "conv_1",
        "client_metadata": {"a": 1},
        "truncation": "auto",
    }
    assert given == decode(**given, background=None).extra


def test_functions_are_read_and_other_tools_are_kept_as_they_came() -> None:
    namespace: dict[str, Any] = {"type": "namespace", "name": "n", "tools": []}
    found = decode(
        tools=[
            {"type": "function", "name": "f", "parameters": None, "strict": None},
            {
                "type": "function",
                "name": "g",
                "description": "d",
                "parameters": {"type": "object"},
                "strict": True,
                "defer_loading": True,
            },
            {"type": "web_search"},
            namespace,
        ]
    )
    expected = (
        FunctionTool(name="f"),
        FunctionTool(
            name="g",
            description="d",
            parameters={"type": "object"},
            strict=True,
            extra={"defer_loading": True},
        ),
        OtherTool(type="web_search", raw={"type": "web_search"}),
        OtherTool(type="namespace", raw=namespace),
    )
    assert expected == found.tools
    assert () == decode(tools=None).tools


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("required", "required"),
        ({"type": "function", "name": "f"}, NamedTool(name="f")),
        ({"type": "web_search"}, OtherChoice(raw={"type": "web_search"})),
        ({"type": "function", "name": 1}, OtherChoice(raw={"type": "function", "name": 1})),
    ],
)
def test_the_choice_of_a_tool(given: Any, expected: Any) -> None:
    assert expected == decode(tool_choice=given).tool_choice


@pytest.mark.parametrize("key", ["previous_response_id", "conversation", "prompt"])
def test_input_may_be_missing_where_something_stands_in_for_it(key: str) -> None:
    found = decode(input=None, instructions="s", **{key: "x"})
    assert (SystemMessage(content="s"),) == found.messages


CALL = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model"),
    ({"input": None}, "input"),
    ({"input": 1}, "input"),
    ({"input": ["hi"]}, "input[0]"),
    ({"input": [{}]}, "input[0]"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
    ({"input": [{"type": "web_search_call"}]}, "input[0]"),
    ({"input": [{"type": "message", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": ["x"]}]}, "input[0].content[0]"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "input[0].content[0].text",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": 1}]}]},
        "input[0].content[0].file_id",
    ),
    ({"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0].type"),
    ({"input": [{**CALL, "call_id": None}]}, "input[0].call_id"),
    ({"input": [{**CALL, "name": 1}]}, "input[0].name"),
    ({"input": [{**CALL, "arguments": {}}]}, "input[0].arguments"),
    ({"input": [{**CALL, "namespace": "n"}]}, "input[0].namespace"),
    ({"input": [{"type": "function_call_output", "output": ""}]}, "input[0].call_id"),
    (
        {"input": [{"type": "function_call_output", "call_id": "1", "output": 1}]},
        "input[0].output",
    ),
    ({"instructions": ["s"]}, "instructions"),
    ({"messages": [{"role": "user", "content": "hi"}]}, "messages"),
    ({"max_output_tokens": "9"}, "max_output_tokens"),
    ({"max_output_tokens": True}, "max_output_tokens"),
    ({"reasoning": "high"}, "reasoning"),
    ({"reasoning": {"effort": 1}}, "reasoning.effort"),
    ({"text": "x"}, "text"),
    ({"text": {"format": "json"}}, "text.format"),
    ({"tools": {}}, "tools"),
    ({"tools": ["f"]}, "tools[0]"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{"name": "f"}]}, "tools[0]"),
    ({"tool_choice": 1}, "tool_choice"),
    ({"temperature": "hot"}, "temperature"),
    ({"stream": "yes"}, "stream"),
]


@pytest.mark.parametrize(("fields", "param"), WRONG)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    assert param == fault(**fields).param
