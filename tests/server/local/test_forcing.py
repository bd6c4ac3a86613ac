"""A demanded tool call is begun for the model: server/local/forcing.py."""

import json
from typing import Any

import pytest

from woollama.core.errors import RequestError
from woollama.server.local.forcing import force_call

HI = {"role": "user", "content": "hi"}
OPENED = {"role": "assistant", "content": "<tool_call>\n"}


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "strict": True}}


BODY = {"model": "m", "messages": [HI], "tools": [tool("a"), tool("b")], "x": 1.50}


def forced(**fields: Any) -> dict[str, Any]:
    return json.loads(force_call(json.dumps({**BODY, **fields}).encode()))


def test_a_demanded_call_is_begun_and_everything_else_stays() -> None:
    demand = {"tool_choice": "required"}
    assert {**BODY, **demand, "messages": [HI, OPENED]} == forced(**demand)


def test_a_named_function_is_the_only_one_on_offer() -> None:
    body = forced(tool_choice={"type": "function", "function": {"name": "b"}})
    assert ([tool("b")], "required") == (body["tools"], body["tool_choice"])
    assert OPENED == body["messages"][-1]


def test_a_named_function_that_is_not_there_is_refused() -> None:
    with pytest.raises(RequestError, match="'c'") as caught:
        forced(tool_choice={"type": "function", "function": {"name": "c"}})
    assert "tool_choice" == caught.value.param


@pytest.mark.parametrize(
    ("stop", "sent"),
    [(None, ["</tool_call>"]), ("x", ["x", "</tool_call>"]), (["x"], ["x", "</tool_call>"])],
)
def test_without_parallel_calls_the_reply_ends_with_its_first(stop: Any, sent: list[str]) -> None:
    body = forced(tool_choice="required", parallel_tool_calls=False, stop=stop)
    assert sent == body["stop"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tool_choice": "auto", "parallel_tool_calls": False},
        {"tool_choice": "none"},
        {"tool_choice": None},
        {"tool_choice": {"type": "function"}},
        {"tool_choice": {"type": "function", "function": {}}},
        {"tool_choice": {"type": "function", "function": {"name": 5}}},
        {"tool_choice": "required", "tools": None},
        {"tool_choice": "required", "tools": []},
        {"tool_choice": "required", "messages": []},
        {"tool_choice": "required", "messages": [HI, OPENED]},
        {"tool_choice": "required", "messages": "hi"},
        {"tool_choice": "required", "messages": [5]},
        {"tool_choice": {"function": {"name": "a"}}, "tools": [{"type": "function"}]},
    ],
)
def test_what_demands_no_call_or_has_begun_one_passes_to_the_byte(fields: dict[str, Any]) -> None:
    body = json.dumps({**BODY, **fields}, indent=1).encode()
    assert body == force_call(body)
