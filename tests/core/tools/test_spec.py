"""The values of the tool seam keep everything, and take what people naturally write."""

from collections.abc import Awaitable
from typing import Any, cast

import pytest

from woollama.core import ToolResult, ToolSpec
from woollama.core.tools import BlockingCall

SCHEMA: dict[str, Any] = {"type": "function", "function": {"name": "add", "parameters": {}}}


def test_a_tool_is_given_by_position_and_is_its_own_source() -> None:
    spec = ToolSpec("add", SCHEMA)
    assert ("add", SCHEMA, None) == (spec.name, spec.schema, spec.source_name)
    assert "add" == spec.own_name


def test_a_tool_with_a_source_is_called_by_it() -> None:
    assert "math.add" == ToolSpec("math__add", SCHEMA, "math.add").own_name


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("done", ({"type": "text", "text": "done"},)),
        ([{"type": "text", "text": "a"}, "b"], ({"type": "text", "text": "a"}, "b")),
        ((), ()),
        (None, ()),
    ],
)
def test_blocks_are_a_tuple_however_they_are_given(given: Any, expected: tuple[Any, ...]) -> None:
    assert expected == ToolResult(given).blocks


def test_p_44_a_result_keeps_blocks_nobody_knows() -> None:
    block = {"type": "hologram", "data": "AAAA", "future": {"a": None}}
    result = ToolResult([block], structured={"n": 1}, is_error=True, meta={"k": 2})
    assert (block,) == result.blocks
    assert ({"n": 1}, True, {"k": 2}) == (result.structured, result.is_error, result.meta)


async def test_a_blocking_call_that_is_awaited_by_hand_runs_in_place() -> None:
    assert 7 == await cast("Awaitable[int]", BlockingCall(lambda: 7))
