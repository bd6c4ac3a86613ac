"""Calls of one turn at once, results in order, and who hears of a cancellation or a deadline."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.core.scripted import HI, Scripted, Tools, calls, recipe
from woollama.core import ToolResult, orchestrate, orchestrate_events
from woollama.core.canonical import RunFinished, TurnStarted
from woollama.core.errors import ProviderError, TransportError
from woollama.core.providers import Target
from woollama.core.runs import RunLimits, RunPlan, open_run, plan_run
from woollama.core.runs.plan import Link
from woollama.core.testing.fake import json_reply, say
from woollama.core.transport import Timeouts, WireResponse
from woollama.core.wire import WireRequest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


class Barrier(Tools):
    """Lets its calls go on only when all of them are in flight."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.waiting = 0
        self.all_here = anyio.Event()

    async def dispatch(self, name: str, args: dict[str, Any]) -> Any:
        self.waiting += 1
        if self.waiting == len(self.names):
            self.all_here.set()
        await self.all_here.wait()
        return await super().dispatch(name, args)


@pytest.mark.parametrize("managed", [False, True], ids=["for", "with"])
async def test_ru_58_four_calls_of_a_turn_are_in_flight_at_once(managed: bool) -> None:
    names = ("a", "b", "c", "d")
    up = Scripted([calls(*names), say("done")])
    given = orchestrate_events(recipe(*names), [HI], Barrier(*names), **up.call)
    with anyio.fail_after(5):
        if managed:
            async with given:
                events = [event async for event in given]
        else:
            events = [event async for event in given]
    assert [*names] == [event["name"] for event in events if event["type"] == "tool_result"]


class Gated(Tools):
    """Each call waits for its own gate."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.gates = {name: anyio.Event() for name in names}
        self.ended: list[str] = []
        self.started = anyio.Event()
        self.cancelled: list[str] = []

    async def dispatch(self, name: str, args: dict[str, Any]) -> Any:
        self.started.set()
        try:
            await self.gates[name].wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(name)
            raise
        self.ended.append(name)
        return await super().dispatch(name, args)


async def test_ru_40_a_result_comes_as_soon_as_those_before_it_are_there() -> None:
    tools = Gated("a", "b", "c")
    up = Scripted([calls("a", "b", "c"), say("done")])
    with anyio.fail_after(5):
        async with orchestrate_events(recipe("a", "b", "c"), [HI], tools, **up.call) as events:
            assert [*"abc"] == [(await anext(events))["name"] for _ in "abc"]
            tools.gates["a"].set()
            first = await anext(events)
            assert ("tool_result", "a", ["a"]) == (first["type"], first["name"], tools.ended)
            tools.gates["c"].set()
            tools.gates["b"].set()
            rest = [event async for event in events]
    assert ["b", "c"] == [event["name"] for event in rest[:-1]]
    assert "final" == rest[-1]["type"]


@pytest.mark.parametrize("how", ["orchestrate", "for", "with"])
async def test_cancelling_the_caller_reaches_the_tools(how: str) -> None:
    tools = Gated("a", "b")
    up = Scripted([calls("a", "b"), say("done")])

    async def work() -> None:
        if how == "orchestrate":
            await orchestrate(recipe("a", "b"), [HI], tools, **up.call)
            return
        given = orchestrate_events(recipe("a", "b"), [HI], tools, **up.call)
        if how == "for":
            async for _ in given:
                pass
            return
        async with given:
            async for _ in given:
                pass

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await tools.started.wait()
            tasks.cancel_scope.cancel()
    assert ["a", "b"] == sorted(tools.cancelled) or ["a"] == tools.cancelled
    assert 1 == len(up.fake.requests), "no further turn"


async def test_leaving_the_context_cancels_the_tools() -> None:
    tools = Gated("a")
    up = Scripted([calls("a"), say("done")])
    with anyio.fail_after(5):
        async with (
            orchestrate_events(recipe("a"), [HI], tools, **up.call) as events,
            anyio.create_task_group() as tasks,
        ):
            await anext(events)

            async def read_on() -> None:
                await anext(events)

            tasks.start_soon(read_on)
            await tools.started.wait()
            tasks.cancel_scope.cancel()
    assert ["a"] == tools.cancelled


class Stalling:
    """A network whose replies never say anything."""

    def __init__(self) -> None:
        self.opened = anyio.Event()
        self.closed = 0

    @asynccontextmanager
    async def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AsyncGenerator[WireResponse]:
        try:
            yield _Silence(self.opened)
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        """Nothing to close."""


class _Silence:
    status = 200
    headers = {"content-type": "text/event-stream"}  # noqa: RUF012

    def __init__(self, opened: anyio.Event) -> None:
        self.chunks = self._wait(opened)

    async def _wait(self, opened: anyio.Event) -> AsyncGenerator[bytes]:
        opened.set()
        await anyio.sleep_forever()
        yield b""


async def test_cancelling_the_caller_reaches_the_upstream_request() -> None:
    up, network = Scripted([]), Stalling()

    async def work() -> None:
        await orchestrate(recipe(), [HI], **up.over(network))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await network.opened.wait()
            tasks.cancel_scope.cancel()
    assert 1 == network.closed


@pytest.mark.parametrize("managed", [False, True], ids=["for", "with"])
@pytest.mark.parametrize("stalls", ["upstream", "tool"])
async def test_the_deadline_of_the_whole_run_ends_it(managed: bool, stalls: str) -> None:
    network, tools = Stalling(), Gated("a")
    up = Scripted([calls("a")])
    given = orchestrate_events(
        recipe("a"),
        [HI],
        tools,
        run_timeout_s=0.01,
        **(up.over(network) if stalls == "upstream" else up.call),
    )

    async def drain() -> None:
        async for _ in given:
            pass

    async def drain_managed() -> None:
        async with given:
            await drain()

    with anyio.fail_after(5), pytest.raises(TransportError, match=r"within 0\.01 s") as caught:
        await (drain_managed() if managed else drain())
    assert (504, "timeout") == (caught.value.status, caught.value.kind)
    assert (1 if stalls == "upstream" else 0) == network.closed
    assert ([] if stalls == "upstream" else ["a"]) == tools.cancelled
    assert 0 == up.transport.open_replies


async def test_a_run_within_its_deadline_is_not_disturbed() -> None:
    up = Scripted([calls("a"), say("done")])
    final = await orchestrate(recipe("a"), [HI], Tools("a"), run_timeout_s=60, **up.call)
    assert "done" == final["choices"][0]["message"]["content"]


def target_of(up: Scripted) -> Target:
    return up.registry.resolve("up/gpt-oss-120b")


def plan_of(up: Scripted, tools: Tools | None = None, **more: Any) -> RunPlan:
    return plan_run(
        target_of(up),
        [HI],
        allow=() if tools is None else tools.names,
        tools=tools,
        link=Link(transport=up.transport, api_key="k"),
        **more,
    )


async def test_a_refusal_is_raised_when_a_run_is_opened() -> None:
    up = Scripted([json_reply(401, {"error": {"message": "who are you"}})])
    with pytest.raises(ProviderError, match="who are you"):
        async with open_run(plan_of(up)):
            raise AssertionError("not reached")


async def test_an_opened_run_gives_every_event_once() -> None:
    up = Scripted([calls("a"), say("it is so")])
    async with open_run(plan_of(up, Tools("a"), stream=True)) as events:
        seen = [event async for event in events]
    kinds = [type(event).__name__ for event in seen]
    assert [(1, 1), (2, 1)] == [
        (event.turn, event.tools_offered) for event in seen if isinstance(event, TurnStarted)
    ]
    assert ["TurnStarted", "Start"] == kinds[:2]
    assert ["Finish", "ToolStarted", "ToolFinished", "TurnStarted"] == (
        kinds[kinds.index("ToolStarted") - 1 : kinds.index("ToolFinished") + 2]
    )
    assert isinstance(seen[-1], RunFinished)
    assert 2 == len(seen[-1].replies)
    assert seen[-1].reply is seen[-1].replies[-1]


async def test_an_opened_run_that_is_not_streamed_gives_no_deltas() -> None:
    up = Scripted([calls("a"), say("it is so")])
    async with open_run(plan_of(up, Tools("a"))) as events:
        kinds = [type(event).__name__ async for event in events]
    assert ["TurnStarted", "ToolStarted", "ToolFinished", "TurnStarted", "RunFinished"] == kinds


async def test_an_error_in_the_body_of_an_opened_run_is_raised_as_it_is() -> None:
    up = Scripted([calls("a"), say("x")])
    with pytest.raises(LookupError, match="mine"):
        async with open_run(plan_of(up, Gated("a"))):
            raise LookupError("mine")


async def test_what_was_left_out_for_the_provider_is_told() -> None:
    from woollama.core.wire import WireSettings

    up = Scripted([say("x")], settings=WireSettings(drop_params=frozenset({"seed"})))
    async with open_run(plan_of(up, params={"seed": 1})) as events:
        first = await anext(aiter(events))
    assert TurnStarted(turn=1, dropped=("seed",)) == first


async def test_tools_of_the_recipe_that_nobody_has_are_told_as_left_out() -> None:
    tools = Tools("a")
    up = Scripted([say("x")])
    target, link = target_of(up), Link(transport=up.transport, api_key="k")
    plan = plan_run(target, [HI], allow=["t.gone", "a"], tools=tools, link=link)
    async with open_run(plan) as events:
        first = await anext(aiter(events))
    assert TurnStarted(turn=1, dropped=("tools.t.gone",), tools_offered=1) == first


def test_neither_a_plan_nor_its_link_shows_the_key() -> None:
    up = Scripted([])
    plan = plan_run(target_of(up), [HI], link=Link(api_key="sk-secret-1234"))
    assert "sk-secret" not in repr(plan)
    assert RunLimits() == plan.limits


async def test_images_of_a_result_reach_a_model_that_sees_in_the_next_message() -> None:
    """Chat Completions takes images of a user only; the tool's message says where they are."""
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    tools = Tools("a", "b", results={"a": ToolResult([{"type": "text", "text": "t"}, image])})
    up = Scripted([calls("a", "b"), say("done")], sees=True)
    await orchestrate(recipe("a", "b"), [HI], tools, **up.call)
    *_, first, second, shown = up.bodies()[1]["messages"]
    assert "t\n[part 1 of this result follows in the next message]" == first["content"]
    assert "b done" == second["content"]
    assert {
        "role": "user",
        "content": [
            {"type": "text", "text": "From the result of a (call_a):"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    } == shown
