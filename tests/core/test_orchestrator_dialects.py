"""One recipe with function tools against the strict fake of every dialect: the same story."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import anyio
import pytest

from tests.core.scripted import FAKES, HI, Scripted, call, recipe
from woollama.core import FunctionTools, ToolResult, orchestrate, orchestrate_events, tool
from woollama.core.canonical import Usage
from woollama.core.testing.fake import FakeReply, say
from woollama.core.wire import DIALECTS

ALL = pytest.mark.parametrize("dialect", sorted(DIALECTS))
BOTH_MODES = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@tool(name="math.add")
def add(a: int, b: Annotated[int, "The other one."] = 1) -> int:
    """Adds two numbers."""
    return a + b


@tool
async def weather(city: str) -> dict[str, Any]:
    """Tells the weather of a city."""
    return {"city": city, "sky": "blue"}


def story() -> list[Any]:
    usage = Usage(prompt_tokens=10, completion_tokens=2, total_tokens=12)
    return [
        say(
            "Two things. ",
            calls=[
                call("math__add", '{"a":2,"b":3}', "call_1"),
                call("weather", '{"city":"Rome"}', "call_2"),
            ],
            reasoning="I need both.",
            usage=usage,
        ),
        say(calls=[call("math__add", '{"a":"x"}', "call_3")], usage=usage),
        say("Five, and a blue sky.", usage=usage),
    ]


def test_every_dialect_has_its_strict_fake() -> None:
    assert set(DIALECTS) == set(FAKES)


@ALL
@BOTH_MODES
async def test_a_recipe_with_function_tools_is_the_same_story_in_every_dialect(
    dialect: str, stream: bool
) -> None:
    up = Scripted(story(), dialect=dialect)
    given = orchestrate_events(
        recipe("math.add", "weather", system="Be exact."),
        [HI],
        FunctionTools(add, weather),
        stream=stream,
        **up.call,
    )
    with anyio.fail_after(5):
        async with given:
            events = [event async for event in given]
    told = [event for event in events if event["type"] not in {"delta", "final"}]
    assert [
        {"type": "tool_call", "turn": 1, "name": "math.add", "args": {"a": 2, "b": 3}},
        {"type": "tool_call", "turn": 1, "name": "weather", "args": {"city": "Rome"}},
        {"type": "tool_result", "turn": 1, "name": "math.add", "ok": True},
        {"type": "tool_result", "turn": 1, "name": "weather", "ok": True},
        {"type": "tool_call", "turn": 2, "name": "math.add", "args": {"a": "x"}},
        {"type": "tool_result", "turn": 2, "name": "math.add", "ok": False},
    ] == told
    text = "".join(event["content"] for event in events if event["type"] == "delta")
    assert ("Two things. Five, and a blue sky." if stream else "") == text
    final = events[-1]["response"]
    (choice,) = final["choices"]
    assert "Five, and a blue sky." == choice["message"]["content"]
    assert ("stop", None) == (choice["finish_reason"], choice["message"]["tool_calls"])
    assert (30, 6, 36) == tuple(
        final["usage_total"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    assert 3 == len(up.fake.requests)
    assert 0 == up.transport.open_replies


@ALL
async def test_results_reach_the_model_in_every_dialect(dialect: str) -> None:
    up = Scripted(story(), dialect=dialect)
    await orchestrate(recipe("math.add", "weather"), [HI], FunctionTools(add, weather), **up.call)
    last = up.fake.requests[-1].body
    for said in (b'\\"sky\\":\\"blue\\"', b"Expected `int`, got `str`", b"math__add", b"call_1"):
        assert said in last
    # Each dialect's own words for thinking in history; two of them have none (section 3).
    kept: Mapping[str, bytes | None] = {
        "anthropic": None,
        "cerebras": b'"reasoning":"I need both."',
        "compatible": b'"reasoning_content":"I need both."',
        "ollama": b'"thinking":"I need both."',
        "responses": None,
    }
    said = kept[dialect]
    assert (b"I need both." in last) == (said is not None)
    assert said is None or said in last


@ALL
async def test_an_image_of_a_result_is_taken_in_every_dialect(dialect: str) -> None:
    png = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
        "rkJggg=="
    )

    def photo() -> ToolResult:
        return ToolResult([{"type": "image", "data": png, "mimeType": "image/png"}])

    up = Scripted(
        [say(calls=[call("photo", "{}", "c1")]), say("A dot.")], dialect=dialect, sees=True
    )
    final = await orchestrate(recipe("photo"), [HI], [photo], **up.call)
    assert "A dot." == final["choices"][0]["message"]["content"]
    assert png.encode() in up.fake.requests[1].body


BROKEN = '{"a": 2, "b"'
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {}}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "math__add", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": BROKEN},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)


async def test_p_21_arguments_that_are_no_object_are_sent_as_none_and_told_to_the_model() -> None:
    broken = FakeReply(
        headers={"content-type": "text/event-stream"},
        chunks=tuple(b"data: %s\n\n" % json.dumps(event).encode() for event in EVENTS),
    )
    up = Scripted([broken, say("I see.")], dialect="anthropic")
    given = orchestrate_events(recipe("math.add"), [HI], FunctionTools(add), stream=True, **up.call)
    with anyio.fail_after(5):
        async with given:
            events = [event async for event in given]
    (called,) = [event for event in events if event["type"] == "tool_call"]
    assert BROKEN == called["args"]
    _, asked, results = up.bodies()[1]["messages"]
    assert [{}] == [block["input"] for block in asked["content"] if block["type"] == "tool_use"]
    (result,) = results["content"]
    assert True is result["is_error"]
    assert BROKEN in json.dumps(result["content"]).replace("\\", "")
