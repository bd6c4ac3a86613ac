"""Core API, section 3 and the loop of section 4: events, the final response, what is sent."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.core.scripted import HI, MODEL, Scripted, Tools, call, calls, recipe, tool_messages
from woollama.core import (
    InferenceError,
    ToolResult,
    ToolSpec,
    orchestrate,
    orchestrate_events,
)
from woollama.core.canonical import Usage
from woollama.core.errors import TurnLimit
from woollama.core.orchestrator import EventIter
from woollama.core.testing.fake import FakeReply, json_reply, say

BOTH_MODES = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


async def events_of(given: EventIter) -> list[dict[str, Any]]:
    with anyio.fail_after(5):
        return [event async for event in given]


def usage(prompt: int, completion: int) -> Usage:
    return Usage(
        prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion
    )


async def test_the_events_of_a_run_with_a_tool_call() -> None:
    up = Scripted([say("Let me see. ", calls=[call("look", '{"q":"a"}')]), say("It is so.")])
    events = await events_of(
        orchestrate_events(recipe("look"), [HI], Tools("look"), stream=True, **up.call)
    )
    deltas = [event for event in events if event["type"] == "delta"]
    others = [event for event in events if event["type"] != "delta"]
    assert "Let me see. It is so." == "".join(event["content"] for event in deltas)
    assert [
        {"type": "tool_call", "turn": 1, "name": "look", "args": {"q": "a"}},
        {"type": "tool_result", "turn": 1, "name": "look", "ok": True},
    ] == others[:-1]
    assert "final" == events[-1]["type"]
    assert all(set(delta) == {"type", "content"} and delta["content"] for delta in deltas)


async def test_without_stream_there_are_no_deltas() -> None:
    up = Scripted([calls("look"), say("done")])
    events = await events_of(orchestrate_events(recipe("look"), [HI], Tools("look"), **up.call))
    assert ["tool_call", "tool_result", "final"] == [event["type"] for event in events]
    assert [False, False] == [body.get("stream", False) for body in up.bodies()]


async def test_ru_40_all_calls_of_a_turn_are_told_before_their_results_both_in_order() -> None:
    up = Scripted([calls("b", "a", "c"), say("done")])
    events = await events_of(
        orchestrate_events(recipe("a", "b", "c"), [HI], Tools("a", "b", "c"), **up.call)
    )
    assert [
        *[("tool_call", name) for name in "bac"],
        *[("tool_result", name) for name in "bac"],
    ] == [(event["type"], event["name"]) for event in events[:-1]]


@BOTH_MODES
async def test_ru_41_the_final_keeps_everything_and_sums_the_usage(stream: bool) -> None:
    up = Scripted(
        [
            say(calls=[call("look")], usage=usage(10, 2)),
            say("cut sho", finish="length", usage=usage(20, 3)),
        ]
    )
    events = await events_of(
        orchestrate_events(recipe("look"), [HI], Tools("look"), stream=stream, **up.call)
    )
    final = events[-1]["response"]
    assert ["reply-1", "chat.completion", 1_700_000_000, MODEL] == [
        final[key] for key in ("id", "object", "created", "model")
    ]
    (choice,) = final["choices"]
    assert {"role": "assistant", "content": "cut sho", "tool_calls": None} == choice["message"]
    assert ("length", 0) == (choice["finish_reason"], choice["index"])
    assert {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23} == final["usage"]
    assert {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35} == final["usage_total"]


async def test_the_final_is_the_same_in_both_modes_and_is_what_orchestrate_gives() -> None:
    def up() -> Scripted:
        return Scripted([calls("look"), say("done", reasoning="so", usage=usage(1, 1))])

    found: list[Any] = [await orchestrate(recipe("look"), [HI], Tools("look"), **up().call)]
    for stream in (False, True):
        events = await events_of(
            orchestrate_events(recipe("look"), [HI], Tools("look"), stream=stream, **up().call)
        )
        found.append(events[-1]["response"])
    assert found[0] == found[1] == found[2]
    assert "so" == found[0]["choices"][0]["message"]["reasoning"]


async def test_usage_that_nobody_reports_is_none() -> None:
    body = {
        "id": "x",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}],
    }
    up = Scripted([json_reply(200, body)])
    final = await orchestrate(recipe(), [HI], **up.call)
    assert (None, None) == (final["usage"], final["usage_total"])


async def test_the_system_prompt_is_sent_as_it_is_and_the_callers_messages_after_it() -> None:
    own: list[dict[str, Any]] = [
        {"role": "system", "content": "mine"},
        {"role": "user", "content": [{"type": "text", "text": "a"}], "name": "ada"},
    ]
    up = Scripted([say("x")])
    await orchestrate(recipe(system="  You are {{who}}. \n"), own, **up.call)
    assert [{"role": "system", "content": "  You are {{who}}. \n"}, *own] == up.bodies()[0][
        "messages"
    ]


@pytest.mark.parametrize("system", [None, "", "absent"])
def test_an_absent_system_prompt_is_not_sent(system: str | None) -> None:
    up = Scripted([say("x")])
    given = recipe() if system == "absent" else recipe(system=system)

    async def run() -> None:
        await orchestrate(given, [HI], **up.call)

    anyio.run(run)
    assert [HI] == up.bodies()[0]["messages"]


async def test_the_body_has_the_recipes_params_and_no_tools_when_there_are_none() -> None:
    up = Scripted([say("x")])
    await orchestrate(recipe(params={"temperature": 0.25, "seed": 7}), [HI], **up.call)
    assert {"model": MODEL, "messages": [HI], "temperature": 0.25, "seed": 7} == up.bodies()[0]


async def test_the_history_of_a_tool_turn() -> None:
    up = Scripted([say(calls=[call("a", '{"n":1}'), call("b")]), say("done")])
    await orchestrate(recipe("a", "b"), [HI], Tools("a", "b"), **up.call)
    assert [
        HI,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "a", "arguments": '{"n":1}'},
                },
                {"id": "call_b", "type": "function", "function": {"name": "b", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": "a done"},
        {"role": "tool", "tool_call_id": "call_b", "content": "b done"},
    ] == up.bodies()[1]["messages"]


async def test_reasoning_goes_back_where_it_came_from_and_nowhere_else() -> None:
    up = Scripted(
        [
            say(calls=[call("a")], reasoning="plan one"),
            say(calls=[call("a", identity="c2")]),
            say("done"),
        ]
    )
    await orchestrate(recipe("a"), [HI], Tools("a"), **up.call)
    messages = up.bodies()[2]["messages"]
    assert "plan one" == messages[1]["reasoning_content"]
    assert set() == {"reasoning_content", "reasoning"} & set(messages[3])


def raw(calls_given: Sequence[dict[str, Any]], **message: Any) -> FakeReply:
    said = {"role": "assistant", "content": None, "tool_calls": list(calls_given), **message}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    return json_reply(200, {"id": "r", "created": 1, "model": "m", "choices": [choice]})


async def test_opaque_parts_of_a_call_go_back_verbatim() -> None:
    """RU-12: thought signatures and reasoning details, on ``compatible``."""
    signature = {"google": {"thought_signature": "CiQB=="}}
    details = [{"type": "reasoning.encrypted", "data": "AAAA"}]
    one = {
        "id": "c1",
        "type": "function",
        "function": {"name": "a", "arguments": "{}"},
        "extra_content": signature,
    }
    up = Scripted([raw([one], reasoning_details=details), say("done")])
    await orchestrate(recipe("a"), [HI], Tools("a"), **up.call)
    message = up.bodies()[1]["messages"][1]
    assert signature == message["tool_calls"][0]["extra_content"]
    assert details == message["reasoning_details"]


@pytest.mark.parametrize("given", [{}, {"id": ""}, {"id": None}])
async def test_a_call_without_an_id_gets_one_for_both_sides(given: dict[str, Any]) -> None:
    one = {**given, "type": "function", "function": {"name": "a", "arguments": "{}"}}
    up = Scripted([raw([one]), say("done")])
    await orchestrate(recipe("a"), [HI], Tools("a"), **up.call)
    _, assistant, result = up.bodies()[1]["messages"]
    identity = assistant["tool_calls"][0]["id"]
    assert identity
    assert identity == result["tool_call_id"]


async def test_two_calls_with_one_id_are_told_apart() -> None:
    twice = say(calls=[call("a", identity="x"), call("b", identity="x")])
    up = Scripted([twice, say("done")], dialect="ollama")
    await orchestrate(recipe("a", "b"), [HI], Tools("a", "b"), **up.call)
    first, second = (message["tool_call_id"] for message in tool_messages(up.bodies()[1]))
    assert "x" == first
    assert first != second


@BOTH_MODES
async def test_the_turn_limit_is_an_error_after_the_last_turns_tools(stream: bool) -> None:
    up = Scripted([calls("a") for _ in range(9)])
    tools = Tools("a")
    with pytest.raises(TurnLimit, match="max turns") as caught:
        await events_of(orchestrate_events(recipe("a"), [HI], tools, stream=stream, **up.call))
    assert (500, "server_error") == (caught.value.status, caught.value.type)
    assert (8, 8) == (len(up.fake.requests), len(tools.dispatched))


async def test_max_turns_is_the_callers_to_set() -> None:
    up = Scripted([calls("a"), calls("a")])
    with pytest.raises(TurnLimit):
        await orchestrate(recipe("a"), [HI], Tools("a"), max_turns=2, **up.call)
    assert 2 == len(up.fake.requests)


@BOTH_MODES
async def test_a_refusal_by_the_provider_is_raised_with_its_status(stream: bool) -> None:
    error = {"error": {"message": "slow down", "type": "requests", "code": "rate"}}
    up = Scripted([calls("a"), json_reply(429, error, {"retry-after": "7"})])
    iterator = orchestrate_events(recipe("a"), [HI], Tools("a"), stream=stream, **up.call)
    with pytest.raises(InferenceError, match="slow down") as caught:
        await events_of(iterator)
    assert (429, "rate_limit", 7.0) == (
        caught.value.status,
        caught.value.kind,
        caught.value.retry_after,
    )
    assert error == caught.value.payload
    assert [] == await events_of(iterator), "nothing follows an error"
    assert 0 == up.transport.open_replies


BROKEN: list[tuple[str, FakeReply]] = [
    ("no choices", json_reply(200, {"id": "x", "object": "chat.completion"})),
    ("an error in a 200", json_reply(200, {"error": {"message": "boom"}})),
    (
        "an error frame",
        FakeReply(
            headers={"content-type": "text/event-stream"},
            chunks=(
                b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
                b'data: {"error":{"message":"boom"}}\n\n',
                b"data: [DONE]\n\n",
            ),
        ),
    ),
    (
        "a cut stream",
        FakeReply(
            headers={"content-type": "text/event-stream"},
            chunks=(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',),
        ),
    ),
    ("no event stream", FakeReply(headers={"content-type": "text/html"}, chunks=(b"<p>hi</p>",))),
]


@BOTH_MODES
@pytest.mark.parametrize(("what", "reply"), BROKEN, ids=[what for what, _ in BROKEN])
async def test_a_reply_that_is_none_is_an_error(what: str, reply: FakeReply, stream: bool) -> None:
    up = Scripted([reply])
    with pytest.raises(InferenceError) as caught:
        await events_of(orchestrate_events(recipe(), [HI], stream=stream, **up.call))
    assert 502 == caught.value.status, what


async def test_an_error_comes_after_the_text_there_was() -> None:
    up = Scripted([BROKEN[3][1]])
    seen: list[str] = []

    async def read() -> None:
        async for event in orchestrate_events(recipe(), [HI], stream=True, **up.call):
            seen.append(event["content"])  # noqa: PERF401 - what came before the error counts

    with pytest.raises(InferenceError):
        await read()
    assert ["a"] == seen


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@BOTH_MODES
async def test_the_real_finish_reason_is_kept(reason: str, stream: bool) -> None:
    up = Scripted([say("part", finish=reason)])
    events = await events_of(orchestrate_events(recipe(), [HI], stream=stream, **up.call))
    assert reason == events[-1]["response"]["choices"][0]["finish_reason"]


@pytest.mark.parametrize(
    "choice", ["required", "none", {"type": "function", "function": {"name": "a"}}]
)
async def test_ru_43_a_forced_choice_counts_for_the_first_turn_only(choice: Any) -> None:
    up = Scripted([calls("a"), calls("a"), say("done")])
    await orchestrate(recipe("a", params={"tool_choice": choice}), [HI], Tools("a"), **up.call)
    assert [choice, None, None] == [body.get("tool_choice") for body in up.bodies()]


async def test_ru_43_auto_is_sent_each_time() -> None:
    up = Scripted([calls("a"), say("done")])
    await orchestrate(recipe("a", params={"tool_choice": "auto"}), [HI], Tools("a"), **up.call)
    assert ["auto", "auto"] == [body["tool_choice"] for body in up.bodies()]


async def test_an_empty_list_of_calls_ends_the_loop() -> None:
    up = Scripted([raw([], content="done")])
    final = await orchestrate(recipe("a"), [HI], Tools("a"), **up.call)
    assert "done" == final["choices"][0]["message"]["content"]


async def test_a_final_without_text_has_none() -> None:
    up = Scripted([say(None)])
    final = await orchestrate(recipe(), [HI], **up.call)
    assert {"role": "assistant", "content": None, "tool_calls": None} == (
        final["choices"][0]["message"]
    )


async def test_the_iterator_works_as_a_context_manager_too() -> None:
    up = Scripted([calls("a"), say("done")])
    async with orchestrate_events(recipe("a"), [HI], Tools("a"), **up.call) as given:
        assert given is aiter(given)
        events = await events_of(given)
    assert ["tool_call", "tool_result", "final"] == [event["type"] for event in events]


@BOTH_MODES
async def test_leaving_early_closes_the_upstream_reply(stream: bool) -> None:
    up = Scripted([calls("a"), say("a b c d")])
    async with orchestrate_events(recipe("a"), [HI], Tools("a"), stream=stream, **up.call) as given:
        await anext(given)
    assert 0 == up.transport.open_replies
    given = orchestrate_events(recipe("a"), [HI], Tools("a"), stream=stream, **up.call)
    await given.aclose()
    up = Scripted([say("a b c d")])
    given = orchestrate_events(recipe(), [HI], stream=True, **up.call)
    await anext(given)
    assert 1 == up.transport.open_replies
    await given.aclose()
    assert 0 == up.transport.open_replies
    assert [] == await events_of(given)


async def test_nothing_is_sent_before_the_first_step() -> None:
    up = Scripted([say("x")])
    given = orchestrate_events(recipe(), [HI], **up.call)
    assert [] == up.fake.requests
    await given.aclose()


async def test_mapped_names_go_to_the_model_and_own_names_to_everyone_else() -> None:
    """Dotted names of a provider that maps nothing, and a provider's own mapping."""

    class Mixed(Tools):
        def tools_for(self, allow: list[str]) -> list[ToolSpec]:
            mapped = ToolSpec("web__get", {"function": {"name": "web__get"}}, "web.get")
            return [*super().tools_for(allow), mapped]

    up = Scripted([calls("files__read", "web__get"), say("done")])
    tools = Mixed("files.read")
    events = await events_of(
        orchestrate_events(recipe("files.read", "web.get"), [HI], tools, **up.call)
    )
    assert ["files__read", "web__get"] == [
        tool["function"]["name"] for tool in up.bodies()[0]["tools"]
    ]
    assert [("files.read", {}), ("web.get", {})] == sorted(tools.dispatched)
    assert ["files.read", "web.get"] * 2 == [event["name"] for event in events[:-1]]


async def test_p_4_what_a_tool_says_beside_its_schema_never_goes_to_the_model() -> None:
    class Annotated(Tools):
        def tools_for(self, allow: list[str]) -> list[ToolSpec]:
            (spec,) = super().tools_for(allow)
            return [
                ToolSpec(
                    spec.name,
                    spec.schema,
                    output_schema={"title": "output-marker"},
                    annotations={"title": "annotation-marker"},
                    meta={"title": "meta-marker"},
                )
            ]

    seen: list[ToolSpec] = []

    def before(spec: ToolSpec, args: dict[str, Any]) -> None:
        seen.append(spec)

    up = Scripted([calls("a"), say("done")])
    await orchestrate(recipe("a"), [HI], Annotated("a"), before_tool=before, **up.call)
    assert all(b"marker" not in request.body for request in up.fake.requests)
    assert "annotation-marker" == seen[0].annotations["title"]
    assert {"title": "output-marker"} == seen[0].output_schema
    assert {"title": "meta-marker"} == seen[0].meta


async def test_tools_always_take_an_object() -> None:
    """What every provider demands, also of tools that do not say it."""
    up = Scripted([say("x")])
    await orchestrate(recipe("a"), [HI], Tools("a"), **up.call)
    assert {"type": "object", "properties": {}} == (
        up.bodies()[0]["tools"][0]["function"]["parameters"]
    )


async def test_results_reach_the_model_as_rendered() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result = ToolResult([{"type": "text", "text": "t"}, image], structured={"n": 1})
    up = Scripted([calls("a"), say("done")])
    await orchestrate(recipe("a"), [HI], Tools("a", results={"a": result}), **up.call)
    assert 't\n[image omitted: image/png]\n{"n":1}' == tool_messages(up.bodies()[1])[0]["content"]
