"""Deltas to a reply and back, and its OpenAI shape."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.canonical.values import REPLIES
from woollama.core.canonical import (
    AssistantMessage,
    Delta,
    Finish,
    FunctionCall,
    OpaqueDelta,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Start,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    UsageDelta,
    assemble,
    deltas_of,
    usage_to_openai,
)
from woollama.core.canonical import assembly as assembly_module
from woollama.core.errors import ReplyError, TruncatedReply

START = Start("r", "m", 1)
STOP = Finish("stop", "end")


@given(REPLIES)
def test_a_reply_taken_apart_and_put_together_is_the_same(reply: Reply) -> None:
    assert reply == assemble(deltas_of(reply))


@given(REPLIES, st.data())
def test_text_may_come_in_any_pieces(reply: Reply, data: st.DataObject) -> None:
    cut: list[Delta] = []
    for delta in deltas_of(reply):
        if isinstance(delta, TextDelta | ReasoningDelta | RefusalDelta):
            at = data.draw(st.integers(0, len(delta.text)))
            kind = type(delta)
            cut += [kind(delta.text[:at]), kind(delta.text[at:])]
        else:
            cut.append(delta)
    assert reply == assemble(cut)


def test_everything_adds_up() -> None:
    reply = assemble(
        [
            START,
            ReasoningDelta("th"),
            TextDelta("Par"),
            ToolCallDelta(1, "b", "g", ""),
            ToolCallDelta(0, "a", "f", '{"x"'),
            ReasoningDelta("ink"),
            TextDelta("is"),
            ToolCallDelta(0, arguments=": 1}"),
            OpaqueDelta("compatible", "extra_content", {"sig": 1}, 0),
            OpaqueDelta("compatible", "reasoning_details", {"d": 1}),
            OpaqueDelta("responses", "item", {"i": 1}),
            RefusalDelta("no"),
            UsageDelta(Usage(prompt_tokens=1)),
            UsageDelta(Usage(prompt_tokens=2)),
            STOP,
        ]
    )
    assert (
        Reply(
            id="r",
            created=1,
            model="m",
            message=AssistantMessage(
                content="Paris",
                reasoning="think",
                refusal="no",
                tool_calls=(
                    ToolCall(
                        id="a",
                        function=FunctionCall(name="f", arguments='{"x": 1}'),
                        extra_content={"sig": 1},
                    ),
                    ToolCall(id="b", function=FunctionCall(name="g", arguments="{}")),
                ),
                reasoning_details=({"d": 1},),
                opaque={"responses": ({"i": 1},)},
            ),
            finish_reason="stop",
            native_finish_reason="end",
            usage=Usage(prompt_tokens=2),
        )
        == reply
    )


@pytest.mark.parametrize("deltas", [[], [START], [STOP], [TextDelta("a"), STOP]])
def test_c_15_a_reply_without_its_beginning_or_end_is_none(deltas: list[Delta]) -> None:
    with pytest.raises(TruncatedReply):
        assemble(deltas)


@pytest.mark.parametrize(
    "delta",
    [
        TextDelta("x" * 60),
        ReasoningDelta("x" * 60),
        RefusalDelta("x" * 60),
        ToolCallDelta(0, "a", "f", "x" * 60),
        OpaqueDelta("d", "k", "x" * 60),
    ],
    ids=lambda delta: type(delta).__name__,
)
def test_a_reply_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, delta: Delta) -> None:
    monkeypatch.setattr(assembly_module, "LIMIT_CHARACTERS", 1000)
    with pytest.raises(ReplyError, match="longer than 1000 characters"):
        assemble([START, *[delta] * 20, STOP])


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(), {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        (
            Usage(prompt_tokens=1, completion_tokens=2),
            {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        ),
        (
            Usage(
                prompt_tokens=1,
                completion_tokens=2,
                total_tokens=9,
                cached_tokens=0,
                cache_write_tokens=4,
                reasoning_tokens=5,
                cost=0.1,
            ),
            {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "total_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 5},
                "cost": 0.1,
            },
        ),
    ],
)
def test_usage_is_written_with_what_was_reported(usage: Usage, expected: dict[str, Any]) -> None:
    assert expected == usage_to_openai(usage)


def test_a_reply_is_a_chat_completion_with_one_choice() -> None:
    reply = assemble([START, ReasoningDelta("think"), TextDelta("a"), STOP])
    assert {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "shown",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a", "reasoning_content": "think"},
                "finish_reason": "stop",
                "native_finish_reason": "end",
            }
        ],
        "usage": None,
    } == reply.to_openai(model="shown", reasoning="reasoning_content")
