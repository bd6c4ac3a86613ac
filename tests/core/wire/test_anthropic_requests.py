"""What clients send as Messages requests, to canonical: nothing that was said is lost."""

import base64
import json
from typing import Any

import pytest

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FilePart,
    FunctionCall,
    FunctionTool,
    ImagePart,
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
from woollama.core.wire.anthropic import ANTHROPIC

HI = {"role": "user", "content": "hi"}
EPHEMERAL = {"type": "ephemeral"}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def decode(*messages: Any, **fields: Any) -> ChatRequest:
    body = {"model": "claude-x", "max_tokens": 100, "messages": messages or [HI], **fields}
    return ANTHROPIC.codec.decode_request(body)


def again(request: ChatRequest, **settings: Any) -> dict[str, Any]:
    wire = ANTHROPIC.codec.encode(
        request,
        base_url="http://peer.test",
        stream=request.stream,
        settings=WireSettings(**settings),
    )
    return json.loads(wire.body)


def refused(*messages: Any, **fields: Any) -> str | None:
    with pytest.raises(RequestError) as caught:
        decode(*messages, **fields)
    assert caught.value.param is not None
    assert caught.value.param in caught.value.message
    return caught.value.param


def text(said: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **extra}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def test_the_smallest_request() -> None:
    request = decode()
    assert ("claude-x", (UserMessage(content="hi"),)) == (request.model, request.messages)
    assert {"max_tokens": 100} == request.params.asked()
    assert not request.stream
    assert {} == dict(request.extra)


def test_the_request_of_a_coding_agent() -> None:
    request = decode(
        user(text("<reminder>", cache_control=None), text("fix it", cache_control=EPHEMERAL)),
        {"role": "system", "content": "The date changed."},
        system=[text("You are."), text("Rules.", cache_control={**EPHEMERAL, "ttl": "1h"})],
        stream=True,
        thinking={"type": "adaptive"},
        output_config={"effort": "high"},
        context_management={"edits": [{"type": "clear_thinking_20251015"}]},
        metadata={"user_id": "user_1"},
        tools=[
            {"name": "Bash", "description": "Runs", "input_schema": SCHEMA, "strict": None},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
    )
    rules = TextPart(text="Rules.", extra={"cache_control": {**EPHEMERAL, "ttl": "1h"}})
    assert (
        SystemMessage(content=(TextPart(text="You are."), rules)),
        UserMessage(
            content=(
                TextPart(text="<reminder>"),
                TextPart(text="fix it", extra={"cache_control": EPHEMERAL}),
            )
        ),
        SystemMessage(content="The date changed."),
    ) == request.messages
    assert request.stream
    assert {"max_tokens": 100, "reasoning_effort": "high", "user": "user_1"} == (
        request.params.asked()
    )
    assert {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}} == request.extra
    assert (
        FunctionTool(name="Bash", description="Runs", parameters=SCHEMA),
        OtherTool(
            type="web_search_20250305", raw={"type": "web_search_20250305", "name": "web_search"}
        ),
    ) == request.tools


def test_n_3_a_system_prompt_is_text_or_blocks() -> None:
    assert SystemMessage(content="A") == decode(system="A").messages[0]
    assert SystemMessage(content="A") == decode(system=[text("A")]).messages[0]
    assert [HI] == [{"role": "user", "content": m.content} for m in decode(system=None).messages]


def test_n_6_results_come_before_what_else_was_said() -> None:
    request = decode(
        user(
            text("first"),
            {"type": "tool_result", "tool_use_id": "a", "content": "1", "is_error": False},
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": [text("2")],
                "is_error": True,
                "cache_control": EPHEMERAL,
            },
            text("last"),
        ),
        user({"type": "tool_result", "tool_use_id": "c"}),
        user(),
    )
    assert (
        ToolMessage(tool_call_id="a", content="1"),
        ToolMessage(
            tool_call_id="b", content="2", is_error=True, extra={"cache_control": EPHEMERAL}
        ),
        UserMessage(content=(TextPart(text="first"), TextPart(text="last"))),
        ToolMessage(tool_call_id="c", content=""),
        UserMessage(content=()),
    ) == request.messages


def test_an_assistant_turn_is_taken_apart() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    hidden = {"type": "redacted_thinking", "data": "xx"}
    search: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    request = decode(
        assistant(
            thought,
            hidden,
            text("Ok.", citations=None),
            search,
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "f",
                "input": {"ø": 1},
                "cache_control": EPHEMERAL,
            },
            {"type": "tool_use", "id": "toolu_2", "name": "g"},
            {**thought, "thinking": "more"},
        ),
        assistant(text("plain")),
        assistant(),
        {"role": "assistant", "content": "prefill"},
    )
    first = FunctionCall(name="f", arguments='{"ø":1}')
    assert (
        AssistantMessage(
            content=(TextPart(text="Ok."), OtherPart(type="server_tool_use", raw=search)),
            tool_calls=(
                ToolCall(
                    id="toolu_1",
                    function=first,
                    extra_content={"anthropic": {"cache_control": EPHEMERAL}},
                ),
                ToolCall(id="toolu_2", function=FunctionCall(name="g", arguments="{}")),
            ),
            reasoning="hm\n\nmore",
            opaque={"anthropic": (thought, hidden, {**thought, "thinking": "more"})},
        ),
        AssistantMessage(content="plain"),
        AssistantMessage(),
        AssistantMessage(content="prefill"),
    ) == request.messages


def test_ru_12_thinking_goes_back_only_where_an_operator_says_so() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    request = decode(HI, assistant(thought, text("Ok.")), HI)
    assert isinstance(request.messages[1], AssistantMessage)
    assert request.messages[1].reasoning is None
    assert [text("Ok.")] == again(request)["messages"][1]["content"]
    assert [thought, text("Ok.")] == again(request, replay_reasoning=True)["messages"][1]["content"]


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
PLAIN = {"type": "text", "media_type": "text/plain", "data": "Grüße"}


def test_n_10_images_and_documents_become_parts() -> None:
    request = decode(
        user(
            {"type": "image", "source": PNG, "cache_control": EPHEMERAL},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": PDF, "title": "a.pdf", "context": "c"},
            {"type": "document", "source": PLAIN},
        )
    )
    plain = base64.b64encode("Grüße".encode()).decode()
    assert (
        ImagePart(url="data:image/png;base64,iVBORw0KGgo=", extra={"cache_control": EPHEMERAL}),
        ImagePart(url="https://example.org/a.png"),
        FilePart(
            filename="a.pdf",
            file_data="data:application/pdf;base64,JVBERi0=",
            extra={"context": "c"},
        ),
        FilePart(file_data=f"data:text/plain;base64,{plain}"),
    ) == request.messages[0].content


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        {"type": "document", "source": {"type": "content", "content": "x"}, "title": 7},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
        {"type": "container_upload", "file_id": "file_1"},
    ],
    ids=lambda block: block["type"],
)
def test_other_blocks_are_kept_as_they_came(block: dict[str, Any]) -> None:
    request = decode(user(block))
    assert (OtherPart(type=block["type"], raw=block),) == request.messages[0].content
    assert [block] == again(request)["messages"][0]["content"]


@pytest.mark.parametrize(
    ("written", "choice"),
    [
        (None, None),
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, NamedTool(name="f")),
        ({"type": "later", "x": 1}, OtherChoice(raw={"type": "later", "x": 1})),
        ({"type": ["auto"]}, OtherChoice(raw={"type": ["auto"]})),
    ],
)
def test_a_choice_is_read_in_canonical_words(written: Any, choice: Any) -> None:
    request = decode(tool_choice=written)
    assert (choice, None) == (request.tool_choice, request.params.parallel_tool_calls)


def test_one_call_at_a_time_is_a_parameter() -> None:
    one = decode(tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert ("required", False) == (one.tool_choice, one.params.parallel_tool_calls)
    many = decode(tool_choice={"type": "any", "disable_parallel_tool_use": False})
    assert many.params.parallel_tool_calls is None


def test_a_tool_keeps_what_the_api_has_beside_its_schema() -> None:
    tool: dict[str, Any] = {
        "type": "custom",
        "name": "f",
        "input_schema": SCHEMA,
        "strict": True,
        "cache_control": EPHEMERAL,
        "defer_loading": True,
    }
    request = decode(tools=[tool])
    assert (
        FunctionTool(
            name="f",
            parameters=SCHEMA,
            strict=True,
            extra={"cache_control": EPHEMERAL, "defer_loading": True},
        ),
    ) == request.tools
    assert [{key: value for key, value in tool.items() if key != "type"}] == again(request)["tools"]


def test_what_steers_the_reply_has_its_canonical_name() -> None:
    request = decode(
        temperature=0.5,
        top_p=1,
        top_k=40,
        stop_sequences=["A", "B"],
        metadata={"user_id": None, "team": "x"},
        service_tier="standard_only",
        cache_control=EPHEMERAL,
        container=None,
    )
    assert {
        "temperature": 0.5,
        "top_p": 1,
        "max_tokens": 100,
        "stop": ("A", "B"),
        "metadata": {"team": "x"},
    } == request.params.asked()
    assert {
        "top_k": 40,
        "service_tier": "standard_only",
        "cache_control": EPHEMERAL,
    } == request.extra


def test_c_2_an_output_format_is_a_response_format() -> None:
    written: dict[str, Any] = {"format": {"type": "json_schema", "schema": SCHEMA}, "later": 1}
    request = decode(output_config=written)
    wanted: dict[str, Any] = {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": SCHEMA},
    }
    assert wanted == request.params.response_format
    assert {"output_config": {"later": 1}} == request.extra
    assert written == again(request)["output_config"]


@pytest.mark.parametrize(
    ("thinking", "effort", "kept"),
    [
        ({"type": "adaptive", "display": "summarized"}, "low", False),
        ({"type": "adaptive"}, "low", False),
        ({"type": "adaptive", "display": "omitted"}, "low", True),
        ({"type": "adaptive"}, None, True),
        ({"type": "enabled", "budget_tokens": 1024}, "low", True),
        ({"type": "disabled"}, None, True),
        ("odd", None, True),
        (None, "low", False),
    ],
)
def test_n_11_thinking_is_kept_where_it_is_not_what_an_effort_means(
    thinking: Any, effort: str | None, kept: bool
) -> None:
    request = decode(thinking=thinking, output_config={"effort": effort})
    assert effort == request.params.reasoning_effort
    assert ({"thinking": thinking} if kept else {}) == dict(request.extra)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model"),
    ({"model": ""}, "model"),
    ({"messages": None}, "messages"),
    ({"messages": "hi"}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"stream": "yes"}, "stream"),
    ({"max_tokens": "7"}, "max_tokens"),
    ({"temperature": "hot"}, "temperature"),
    ({"stop_sequences": "A"}, "stop_sequences"),
    ({"stop_sequences": [1]}, "stop_sequences[0]"),
    ({"metadata": "u"}, "metadata"),
    ({"metadata": {"user_id": 7}}, "metadata.user_id"),
    ({"output_config": []}, "output_config"),
    ({"output_config": {"effort": 1}}, "output_config.effort"),
    ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
    ({"output_config": {"format": "json"}}, "output_config.format"),
    ({"system": 7}, "system"),
    ({"system": ["A"]}, "system[0]"),
    ({"system": [{"type": "text"}]}, "system[0].text"),
    ({"tools": {}}, "tools"),
    ({"tools": ["f"]}, "tools[0]"),
    ({"tools": [{"name": "f"}]}, "tools[0]"),
    ({"tools": [{"type": "custom", "name": 7, "input_schema": {}}]}, "tools[0]"),
    ({"tool_choice": "auto"}, "tool_choice"),
]


@pytest.mark.parametrize(("fields", "param"), WRONG, ids=str)
def test_a_field_of_the_wrong_type_is_named(fields: dict[str, Any], param: str) -> None:
    assert param == refused(**fields)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "tool", "content": "x"}, "messages[0].role"),
        ({"content": "x"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": 7}, "messages[0].content"),
        ({"role": "assistant", "content": None}, "messages[0].content"),
        (user("x"), "messages[0].content[0]"),
        (user({"text": "x"}), "messages[0].content[0].type"),
        (user({"type": "image"}), "messages[0].content[0].source"),
        (user({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (
            user({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}),
            "messages[0].content[0].content[0].text",
        ),
        (assistant({"type": "tool_use", "id": "a"}), "messages[0].content[0]"),
    ],
    ids=str,
)
def test_a_message_of_the_wrong_shape_is_named(message: dict[str, Any], param: str) -> None:
    assert param == refused(message)
