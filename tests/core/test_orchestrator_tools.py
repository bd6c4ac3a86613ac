"""Core API, sections 4 and 5: arguments, the allow-list, dispatch, and what reaches the model."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import pytest

from tests.core.scripted import (
    HI,
    Scripted,
    Tools,
    call,
    calls,
    function,
    recipe,
    tool_messages,
)
from woollama.core import (
    Capabilities,
    FunctionTools,
    InferenceError,
    ToolProvider,
    ToolResult,
    ToolSpec,
    orchestrate,
    orchestrate_events,
)
from woollama.core.canonical import ToolFinished
from woollama.core.errors import ToolNotAllowed
from woollama.core.providers import Target
from woollama.core.runs import Run, plan_run
from woollama.core.runs.plan import Link
from woollama.core.testing.fake import say


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


async def told(
    tools: ToolProvider | FunctionTools | None,
    *names: str,
    arguments: str = "{}",
    allow: tuple[str, ...] | None = None,
    **more: Any,
) -> tuple[list[str], list[dict[str, Any]]]:
    """What the model is told of its calls, and the events about them."""
    script = [say(calls=[call(name, arguments) for name in names]), say("done")]
    up = Scripted(script)
    events: list[dict[str, Any]] = []
    with anyio.fail_after(5):
        given = orchestrate_events(
            recipe(*(names if allow is None else allow)), [HI], tools, **{**up.call, **more}
        )
        events.extend([event async for event in given])
    texts = [message["content"] for message in tool_messages(up.bodies()[1])]
    return texts, [event for event in events if event["type"] != "final"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a":1}', {"a": 1}),
        ("{}", {}),
        ("", {}),
        (" \n", {}),
        ('{"a":{"b":[null]}}', {"a": {"b": [None]}}),
    ],
)
async def test_an_object_is_what_the_tool_gets(arguments: str, expected: dict[str, Any]) -> None:
    tools = Tools("a")
    _, events = await told(tools, "a", arguments=arguments)
    assert [("a", expected)] == tools.dispatched
    assert expected == events[0]["args"]
    assert events[1]["ok"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"q": "a", ', '{"q": "a", '),
        ("q=a", "q=a"),
        ("[1]", "not a JSON object: [1]"),
        ("3", "not a JSON object: 3"),
        ("null", "not a JSON object: null"),
        ('"text"', 'not a JSON object: "text"'),
        ("[" * 5000, "(5000 characters)"),
    ],
)
async def test_arguments_that_are_no_object_are_answered_and_not_dispatched(
    arguments: str, said: str
) -> None:
    tools = Tools("a")
    (text,), events = await told(tools, "a", arguments=arguments)
    assert [] == tools.dispatched
    assert text.startswith("ERROR:")
    assert said in text
    assert [
        {"type": "tool_call", "turn": 1, "name": "a", "args": arguments},
        {"type": "tool_result", "turn": 1, "name": "a", "ok": False},
    ] == events


async def test_text_that_is_no_unicode_is_no_argument_either() -> None:
    tools = Tools("a")
    plan = plan_run(target_of(Scripted([])), [HI], allow=["a"], tools=tools, link=Link(api_key="k"))
    from woollama.core.runs.calls import CallUnderWay

    under_way = CallUnderWay(plan, 1, call("a", '{"q": "\ud800"}'))
    await under_way.run()
    assert not under_way.finished.ok
    assert [] == tools.dispatched


async def test_a_tool_off_the_list_is_answered_and_never_dispatched() -> None:
    tools = Tools("a", "wipe")
    texts, events = await told(tools, "a", "wipe", allow=("a",))
    assert [("a", {})] == tools.dispatched
    assert "a done" == texts[0]
    assert texts[1].startswith("ERROR:")
    assert all(word in texts[1] for word in ("not permitted", "'wipe'", "a"))
    assert [True, False] == [event["ok"] for event in events if event["type"] == "tool_result"]
    assert {"type": "tool_call", "turn": 1, "name": "wipe", "args": {}} == events[1]


async def test_with_no_tools_every_call_is_refused() -> None:
    (text,), events = await told(None, "a", allow=())
    assert "not permitted" in text
    assert not events[1]["ok"]


async def test_the_list_decides_and_not_what_the_provider_offers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A provider that offers more than was asked for widens nothing."""
    tools = Tools("a", "b")
    up = Scripted([calls("b"), say("x")])
    await orchestrate(recipe("a", "missing"), [HI], tools, **up.call)
    assert ["a"] == [tool["function"]["name"] for tool in up.bodies()[0]["tools"]]
    assert [] == tools.dispatched
    assert "'b' is offered and not in the recipe's list" in caplog.text
    assert "nobody offers: missing" in caplog.text


@pytest.mark.parametrize("allow", [("srv.add",), ("srv__add",)])
async def test_a_tool_is_allowed_by_either_of_its_names(allow: tuple[str, ...]) -> None:
    class Mapping_(Tools):  # noqa: N801
        def tools_for(self, allow: list[str]) -> list[ToolSpec]:
            return [
                ToolSpec("srv__add", function("srv__add"), "srv.add"),
                ToolSpec("srv__sub", function("srv__sub"), "srv.sub"),
            ]

    tools = Mapping_()
    up = Scripted([calls("srv__add", "srv__sub"), say("x")])
    await orchestrate(recipe(*allow), [HI], tools, **up.call)
    assert [("srv.add", {})] == tools.dispatched
    assert 1 == len(up.bodies()[0]["tools"])


class Block:
    def __init__(self, text: str) -> None:
        self.text = text


class Duck:
    """A result as an embedder's own class may be."""

    def __init__(self, is_error: object = False) -> None:
        self.is_error = is_error

    @property
    def blocks(self) -> Iterator[Block]:
        yield from (Block("one"), Block("two"))


@pytest.mark.parametrize(
    ("result", "text", "ok"),
    [
        (ToolResult("fine"), "fine", True),
        (ToolResult("bad", is_error=True), "[tool error] bad", False),
        (ToolResult(is_error=True), "[tool error]", False),
        (ToolResult(), "", True),
        ("just text", "just text", True),
        ({"n": 1}, '{"n":1}', True),
        (Duck(), "one\ntwo", True),
        (Duck(is_error=True), "[tool error] one\ntwo", False),
        (Duck(is_error=1), "one\ntwo", True),
        (ToolResult([{"type": "text", "text": "dict block"}]), "dict block", True),
    ],
)
async def test_what_a_tool_may_return(result: Any, text: str, ok: bool) -> None:
    texts, events = await told(Tools("a", results={"a": result}), "a")
    assert [text] == texts
    assert ok == events[1]["ok"]


@pytest.mark.parametrize("result", [None, [1, 2], 3])
async def test_what_is_no_result_is_an_error_that_says_so(result: Any) -> None:
    class Returning(Tools):
        async def dispatch(self, name: str, args: dict[str, Any]) -> Any:
            return result

    (text,), events = await told(Returning("a"), "a")
    assert text.startswith(f"ERROR: TypeError: dispatch returned {type(result).__name__}")
    assert not events[1]["ok"]


class _FullDiskError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (_FullDiskError("sda1"), "ERROR: _FullDiskError: sda1"),
        (InferenceError("upstream"), "ERROR: InferenceError: upstream"),
        (TimeoutError(), "ERROR: TimeoutError: "),
        (ExceptionGroup("two", [ValueError("x")]), "ERROR: ExceptionGroup: two (1 sub-exception)"),
    ],
)
async def test_a_tool_that_raises_is_a_result_and_the_loop_goes_on(
    raised: Exception, text: str
) -> None:
    texts, events = await told(Tools("a", "b", results={"a": raised}), "a", "b")
    assert [text, "b done"] == texts
    assert [False, True] == [event["ok"] for event in events if event["type"] == "tool_result"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_the_tool_raises_by_itself_is_a_result_too() -> None:
    tools = Tools("a", results={"a": asyncio.CancelledError("by itself")})
    (text,), events = await told(tools, "a")
    assert "ERROR: CancelledError: by itself" == text
    assert not events[1]["ok"]


@pytest.mark.parametrize("how", ["plain", "coroutine", "future"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_ru_42_dispatch_is_called_on_the_loop_and_may_return_anything(how: str) -> None:
    loop_thread = threading.get_ident()
    seen: list[int] = []

    async def later() -> ToolResult:
        await anyio.lowlevel.checkpoint()
        return ToolResult("later")

    class Dispatching(Tools):
        def dispatch(self, name: str, args: dict[str, Any]) -> Any:
            seen.append(threading.get_ident())
            if how == "plain":
                return ToolResult("later")
            if how == "coroutine":
                return later()
            future: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
            future.set_result(ToolResult("later"))
            return future

    texts, _ = await told(Dispatching("a"), "a")
    assert ["later"] == texts
    assert [loop_thread] == seen


async def test_ru_42_a_plain_function_runs_in_a_worker_thread_and_an_async_one_on_the_loop() -> (
    None
):
    def blocking() -> int:
        return threading.get_ident()

    async def quick() -> int:
        return threading.get_ident()

    texts, _ = await told(FunctionTools(blocking, quick), "blocking", "quick")
    here = str(threading.get_ident())
    assert here != texts[0]
    assert here == texts[1]


async def test_wrong_arguments_of_a_function_are_answered() -> None:
    def add(a: int) -> int:
        return a

    (text,), events = await told(FunctionTools(add), "add", arguments='{"a":"x"}')
    assert "[tool error] wrong arguments: Expected `int`, got `str` - at `$.a`" == text
    assert not events[1]["ok"]


async def test_p_4_before_tool_may_refuse_a_call() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def before(spec: ToolSpec, args: dict[str, Any]) -> Any:
        asked.append((spec.own_name, args))
        match spec.own_name:
            case "text":
                return "not today"
            case "result":
                return ToolResult("ask Ada", is_error=True)
            case "raise":
                raise ToolNotAllowed("no")
            case "yes":
                return True
            case _:
                return None

    names = ("text", "result", "raise", "yes", "fine")
    tools = Tools(*names)
    texts, events = await told(tools, *names, before_tool=before)
    assert ["[tool error] not today", "[tool error] ask Ada", "ERROR: ToolNotAllowed: no"] == (
        texts[:3]
    )
    assert texts[3].startswith("ERROR: TypeError: before_tool returned bool")
    assert [("fine", {})] == tools.dispatched
    assert sorted(names) == sorted(name for name, _ in asked)
    assert [False, False, False, False, True] == [
        event["ok"] for event in events if event["type"] == "tool_result"
    ]


async def test_p_4_before_tool_may_be_a_plain_function_and_is_not_asked_about_refused_calls() -> (
    None
):
    asked: list[str] = []

    def before(spec: ToolSpec, args: dict[str, Any]) -> ToolResult | None:
        asked.append(spec.name)
        return None

    await told(Tools("a"), "a", "off", allow=("a",), before_tool=before)
    assert ["a"] == asked


async def test_a_tool_that_does_not_answer_is_a_failed_result() -> None:
    class Hanging(Tools):
        async def dispatch(self, name: str, args: dict[str, Any]) -> Any:
            if name == "hang":
                await anyio.sleep_forever()
            return await super().dispatch(name, args)

    texts, events = await told(Hanging("hang", "b"), "hang", "b", tool_timeout_s=0.01)
    assert ["ERROR: 'hang' did not answer within 0.01 s", "b done"] == texts
    assert [False, True] == [event["ok"] for event in events if event["type"] == "tool_result"]


async def test_a_blocking_function_that_does_not_answer_is_left_behind() -> None:
    free = threading.Event()

    def hang() -> str:
        free.wait(5)
        return "too late"

    try:
        texts, _ = await told(FunctionTools(hang), "hang", tool_timeout_s=0.01)
    finally:
        free.set()
    assert ["ERROR: 'hang' did not answer within 0.01 s"] == texts


async def test_a_renderer_that_raises_is_a_failed_result() -> None:
    class Broken:
        def render(self, block: Mapping[str, Any], caps: Capabilities, /) -> str:
            raise LookupError("no words")

    (text,), events = await told(Tools("a"), "a", renderers=[Broken()])
    assert "ERROR: LookupError: no words" == text
    assert not events[1]["ok"]


def target_of(up: Scripted) -> Target:
    return up.registry.resolve("up/gpt-oss-120b")


async def test_p_44_a_result_survives_the_orchestrator_whole() -> None:
    block = {"type": "hologram", "data": "AAAA", "future": [None]}
    result = ToolResult([block], structured={"n": 1}, is_error=True, meta={"k": 2})
    up = Scripted([calls("a"), say("done")])
    plan = plan_run(
        target_of(up),
        [HI],
        allow=["a"],
        tools=Tools("a", results={"a": result}),
        link=Link(transport=up.transport, api_key="k"),
    )
    finished = [event async for event in Run(plan) if isinstance(event, ToolFinished)]
    assert result == finished[0].result
    assert ("a", "call_a", 1, False) == (
        finished[0].name,
        finished[0].id,
        finished[0].turn,
        finished[0].ok,
    )
    message = tool_messages(up.bodies()[1])[0]
    assert '[tool error] [hologram omitted]\n{"n":1}' == message["content"]


async def test_p_44_a_failed_result_is_one_on_a_wire_that_has_the_word() -> None:
    up = Scripted([calls("a"), say("done")], dialect="anthropic")
    tools = Tools("a", results={"a": ToolResult("bad", is_error=True)})
    await orchestrate(recipe("a"), [HI], tools, **up.call)
    (block,) = up.bodies()[1]["messages"][-1]["content"]
    assert ("tool_result", True) == (block["type"], block["is_error"])
