"""Conversations to Anthropic: N-3, N-5 to N-10, N-13, AE-6, AE-16, AE-17, AE-22, AE-24, P-21."""

import base64
import json
from typing import Any

import pytest

from woollama.core.canonical import (
    AssistantMessage,
    ChatRequest,
    FunctionCall,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_from_openai,
)
from woollama.core.errors import CannotEncode
from woollama.core.wire import WireRequest, WireSettings
from woollama.core.wire.anthropic import ANTHROPIC
from woollama.core.wire.anthropic_history import CallIds

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
EPHEMERAL = {"type": "ephemeral"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "xx"}


def encode(*messages: dict[str, Any] | Message, **settings: Any) -> WireRequest:
    read = tuple(
        message_from_openai(message, f"messages[{i}]") if isinstance(message, dict) else message
        for i, message in enumerate(messages)
    )
    return ANTHROPIC.codec.encode(
        ChatRequest(model="claude-x", messages=read),
        base_url="http://peer.test/v1",
        stream=False,
        settings=WireSettings(**settings),
    )


def body(*messages: dict[str, Any] | Message, **settings: Any) -> dict[str, Any]:
    return json.loads(encode(*messages, **settings).body)


def turns(*messages: dict[str, Any] | Message, **settings: Any) -> list[tuple[str, Any]]:
    sent = body(*messages, **settings)["messages"]
    return [(turn["role"], turn["content"]) for turn in sent]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, *calls: tuple[str, str], **fields: Any) -> dict[str, Any]:
    written = [
        {"id": identity, "type": "function", "function": {"name": "f", "arguments": arguments}}
        for identity, arguments in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": written, **fields}


def result(identity: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content, **fields}


def text(said: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **extra}


def test_n_3_system_messages_are_the_top_level_system_joined_with_a_blank_line() -> None:
    sent = body(
        {"role": "system", "content": "A"},
        user("hi"),
        {"role": "developer", "content": "B"},
    )
    assert "A\n\nB" == sent["system"]
    assert ["user"] == [turn["role"] for turn in sent["messages"]]


def test_n_3_system_parts_are_text_blocks_and_keep_their_mark() -> None:
    sent = body(
        {"role": "system", "content": [text("A", cache_control=EPHEMERAL), text("")]},
        {"role": "system", "content": "B"},
        user("hi"),
    )
    assert [text("A", cache_control=EPHEMERAL), text("B")] == sent["system"]


@pytest.mark.parametrize("content", ["", " \n", [], [text("")]])
def test_n_3_n_8_a_system_message_that_says_nothing_is_left_out(content: Any) -> None:
    assert "system" not in body({"role": "system", "content": content}, user("hi"))


def test_n_3_only_text_can_be_an_instruction() -> None:
    image = {"type": "image_url", "image_url": {"url": PNG}}
    with pytest.raises(CannotEncode) as caught:
        encode({"role": "system", "content": [image]}, user("hi"))
    assert ("unsupported_content", "messages") == (caught.value.kind, caught.value.param)
    assert "messages[0].content" in caught.value.message


def test_n_5_an_assistant_turn_is_its_text_and_then_its_calls() -> None:
    sent = turns(
        user("x"),
        assistant("Checking.", ("c1", '{"a":1}'), ("c2", "{}")),
        result("c1", "1"),
        result("c2", "2"),
    )
    assert [
        text("Checking."),
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "f", "input": {}},
    ] == sent[1][1]


def test_n_6_ae_6_p_21_results_come_first_in_one_user_message() -> None:
    sent = turns(
        assistant(None, ("c1", "{}"), ("c2", "{}")),
        result("c1", "one"),
        user("and"),
        result("c2", "two"),
        user("more"),
    )
    assert ["assistant", "user"] == [role for role, _ in sent]
    assert [
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "two"},
        text("and"),
        text("more"),
    ] == sent[1][1]


def test_n_6_roles_alternate_and_no_text_is_lost() -> None:
    sent = turns(user("one"), user("two"), assistant("three"), assistant("four"), user("five"))
    assert [
        ("user", [text("one"), text("two")]),
        ("assistant", [text("three"), text("four")]),
        ("user", [text("five")]),
    ] == sent


def test_n_6_a_failed_result_says_so() -> None:
    sent = turns(assistant(None, ("c1", "{}")), result("c1", "no such city", is_error=True))
    failed = {"type": "tool_result", "tool_use_id": "c1", "content": "no such city"}
    assert [{**failed, "is_error": True}] == sent[1][1]


def test_n_7_ae_22_foreign_ids_change_alike_in_call_and_result() -> None:
    sent = turns(assistant(None, ("functions.w:0", "{}")), result("functions.w:0", "1"))
    assert "functions_w_0" == sent[0][1][0]["id"] == sent[1][1][0]["tool_use_id"]


def test_n_7_p_21_collisions_are_numbered_and_results_find_their_call() -> None:
    sent = turns(
        assistant(None, ("a.b", "{}"), ("a:b", "{}"), ("a_b", "{}")),
        result("a_b", "3"),
        result("a.b", "1"),
        result("a:b", "2"),
    )
    assert ["a_b", "a_b_2", "a_b_3"] == [block["id"] for block in sent[0][1]]
    given = {block["tool_use_id"]: block["content"] for block in sent[1][1]}
    assert {"a_b": "1", "a_b_2": "2", "a_b_3": "3"} == given


def test_n_7_empty_ids_are_calls_in_their_order() -> None:
    sent = turns(assistant(None, ("", "{}"), ("", "{}")), result("", "first"), result("", "second"))
    assert ["call", "call_2"] == [block["id"] for block in sent[0][1]]
    assert [("call", "first"), ("call_2", "second")] == [
        (block["tool_use_id"], block["content"]) for block in sent[1][1]
    ]


def test_n_7_an_id_that_comes_again_in_a_later_turn_is_another_call() -> None:
    sent = turns(
        assistant(None, ("call_0", "{}")),
        result("call_0", "old"),
        assistant(None, ("call_0", "{}")),
        result("call_0", "new"),
    )
    assert "call_0" == sent[0][1][0]["id"] == sent[1][1][0]["tool_use_id"]
    assert "call_0_2" == sent[2][1][0]["id"] == sent[3][1][0]["tool_use_id"]


def test_n_7_a_result_follows_the_latest_call_of_its_id() -> None:
    ids = CallIds()
    assert ("a_b", "a_b_2") == (ids.call("a.b"), ids.call("a_b"))
    ids.answered()
    assert "a_b_2" == ids.result("a_b") == ids.result("a_b")
    assert "never_called" == ids.result("never.called")


@pytest.mark.parametrize("nothing", ["", " ", "\n\t", [], [text(""), text(" ")]])
def test_n_8_ae_17_what_says_nothing_is_left_out(nothing: Any) -> None:
    sent = turns(user("a"), assistant(nothing), user(nothing), user("b"))
    assert [("user", [text("a"), text("b")])] == sent


def test_n_8_p_21_no_empty_text_stands_before_a_call() -> None:
    sent = turns(user([text(""), text("hi")]), assistant("", ("c1", "{}")), result("c1", "r"))
    assert [text("hi")] == sent[0][1]
    assert ["tool_use"] == [block["type"] for block in sent[1][1]]


@pytest.mark.parametrize("nothing", ["", " \n", [], [text("")]])
def test_ae_17_a_result_without_text_has_no_content(nothing: Any) -> None:
    sent = turns(assistant(None, ("c1", "{}")), result("c1", nothing))
    assert [{"type": "tool_result", "tool_use_id": "c1"}] == sent[1][1]


@pytest.mark.parametrize("arguments", ["", "[1]", "oops", '"x"', "null", "7", '{"a":'])
def test_n_9_c_8_p_21_what_is_no_object_is_sent_as_none(arguments: str) -> None:
    sent = turns(assistant(None, ("c1", arguments)), result("c1", "r"))
    assert {} == sent[0][1][0]["input"]


def test_n_9_an_object_goes_out_byte_for_byte() -> None:
    arguments = '{"n": 1.50, "big": 123456789012345678901234567890}'
    wire = encode(assistant(None, ("c1", arguments)), result("c1", "r"))
    assert f'"input":{arguments}'.encode() in wire.body


def test_n_10_an_inline_image_is_a_base64_block_and_a_remote_one_a_url() -> None:
    sent = turns(
        user(
            [
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/jpg;base64,/9j/", "detail": "auto"},
                    "cache_control": EPHEMERAL,
                },
            ]
        )
    )
    sources = [block["source"] for block in sent[0][1]]
    assert [
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
        {"type": "url", "url": "https://example.org/a.png"},
        {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"},
    ] == sources
    assert EPHEMERAL == sent[0][1][2]["cache_control"]


def test_n_10_a_wish_for_detail_is_not_sent_and_told() -> None:
    image = {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}
    wire = encode(user([text("see"), image]))
    assert ("messages[0].content[1].image_url.detail",) == wire.dropped
    assert b"detail" not in wire.body


def test_an_image_in_a_result_is_sent_there() -> None:
    shot = [text("shot"), {"type": "image_url", "image_url": {"url": PNG}}]
    sent = turns(assistant(None, ("c1", "{}")), result("c1", shot))
    assert ["text", "image"] == [block["type"] for block in sent[1][1][0]["content"]]


def test_a_file_is_a_document() -> None:
    plain = base64.b64encode("Grüße".encode()).decode()
    files = [
        {"file_data": PDF, "filename": "a.pdf"},
        {"file_data": f"data:text/plain;base64,{plain}"},
        {"file_data": "data:text/plain;base64,/w=="},
    ]
    sent = turns(user([{"type": "file", "file": file} for file in files]))
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert [
        {"type": "document", "source": pdf, "title": "a.pdf"},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"},
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "text/plain", "data": "/w=="},
        },
    ] == sent[0][1]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"file_data": "https://example.org/a.pdf"}},
        {"type": "file", "file": {"file_data": "data:;base64,QQ=="}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
        {"type": "input_video", "url": "https://example.org/a.mp4"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ],
    ids=lambda part: part["type"],
)
def test_c_3_content_without_a_block_is_refused_with_its_place(part: dict[str, Any]) -> None:
    with pytest.raises(CannotEncode) as caught:
        encode(user("hi"), user([text("x"), part]))
    assert ("unsupported_content", "messages") == (caught.value.kind, caught.value.param)
    assert "messages[1].content[1]" in caught.value.message
    assert caught.value.hint is None


@pytest.mark.parametrize(
    "block",
    [
        {"type": "search_result", "source": "s", "title": "t", "content": [text("x")]},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ],
    ids=lambda block: block["type"],
)
def test_blocks_of_the_api_itself_are_sent_as_they_are(block: dict[str, Any]) -> None:
    assert [("user", [block])] == turns(user([block]))


def test_keys_that_the_api_has_on_a_block_are_sent_and_others_refused() -> None:
    sent = turns(user([text("x", citations=[], cache_control=EPHEMERAL)]))
    assert [text("x", citations=[], cache_control=EPHEMERAL)] == sent[0][1]
    with pytest.raises(CannotEncode) as caught:
        encode(user([text("x", colour="red")]))
    assert "messages[0].content[0].colour" == caught.value.param


def test_a_key_of_a_part_that_the_operator_drops_is_told() -> None:
    wire = encode(
        user([text("x", colour="red", empty="")]),
        drop_params=frozenset({"messages.content.colour"}),
    )
    assert ("messages[0].content[0].colour",) == wire.dropped


def test_a_mark_on_a_result_is_sent_and_one_on_a_message_refused() -> None:
    sent = turns(assistant(None, ("c1", "{}")), result("c1", "r", cache_control=EPHEMERAL))
    assert EPHEMERAL == sent[1][1][0]["cache_control"]
    with pytest.raises(CannotEncode) as caught:
        encode({**user("hi"), "cache_control": EPHEMERAL})
    assert "messages[0].cache_control" == caught.value.param


def test_a_call_keeps_what_this_dialect_kept_of_it_and_nothing_of_another() -> None:
    call = ToolCall(
        id="c1",
        function=FunctionCall(name="f", arguments="{}"),
        extra_content={"anthropic": {"cache_control": EPHEMERAL, "odd": 1}, "google": {"s": "x"}},
    )
    other = ToolCall(
        id="c2",
        function=FunctionCall(name="f", arguments="{}"),
        extra_content={"anthropic": "odd"},
    )
    sent = turns(AssistantMessage(tool_calls=(call, other)), UserMessage(content="x"))
    plain: dict[str, Any] = {"type": "tool_use", "name": "f", "input": {}}
    assert [{**plain, "id": "c1", "cache_control": EPHEMERAL}, {**plain, "id": "c2"}] == sent[0][1]


def thoughtful(content: str | None = "So.") -> AssistantMessage:
    return AssistantMessage(
        content=content,
        reasoning="hm",
        opaque={"anthropic": (THOUGHT, HIDDEN, {"type": "later"}, "odd"), "responses": ({"x": 1},)},
    )


def test_n_13_ae_24_thinking_is_never_sent_back() -> None:
    assert [("assistant", [text("So.")])] == turns(thoughtful())
    assert [("assistant", [text("So.")])] == turns(assistant("So.", reasoning="hm"))


def test_ru_12_with_replay_the_dialects_own_thinking_goes_in_front() -> None:
    sent = turns(thoughtful(), replay_reasoning=True)
    assert [("assistant", [THOUGHT, HIDDEN, text("So.")])] == sent


def test_ru_12_thinking_alone_says_nothing() -> None:
    sent = turns(UserMessage(content="x"), thoughtful(None), replay_reasoning=True)
    assert [("user", [text("x")])] == sent


def test_ae_16_a_prefill_is_sent_as_it_is() -> None:
    assert ("assistant", [text("{")]) == turns(user("json"), assistant("{"))[-1]


def test_a_refusal_that_was_said_stays_in_the_history() -> None:
    sent = turns(user("x"), assistant("So", refusal="declined: bio"), user("y"))
    assert ("assistant", [text("So"), text("declined: bio")]) == sent[1]


def test_an_answer_to_nothing_is_sent_for_the_server_to_refuse() -> None:
    sent = turns(ToolMessage(tool_call_id="x.1", content="r"))
    assert [{"type": "tool_result", "tool_use_id": "x_1", "content": "r"}] == sent[0][1]
