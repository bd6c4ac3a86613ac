"""What a server asks in the middle of a call (elicitation): forwarded, or answered clearly (RU-47).

Each of four pairs: a client of either era, and a server of either era.
"""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)

from tests.server.mcp_surface.rig import (
    ERAS,
    MODERN,
    Era,
    connected,
    daemon,
    fixtures,
    raw,
    scripted,
    servers,
    text_of,
)
from woollama.core.scopes import open_tasks
from woollama.server.mcp import surface_questions
from woollama.server.mcp.questions import Asker, CannotAsk, Direct, OpenCalls, without_deadline
from woollama.server.mcp.surface_questions import Conversations

MODES: tuple[Era, ...] = ("auto", "legacy")
ASK = "f__test_elicitation"


class Person:
    """Answers what is asked."""

    def __init__(self, answer: ElicitResult | ErrorData) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(
        self, _context: object, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        self.asked.append(params.message)
        return self.answer


def bo() -> Person:
    return Person(ElicitResult(action="accept", content={"name": "Bo"}))


def one(mode: Era) -> dict[str, Any]:
    return {"mcp.json": servers(f=fixtures("--tools-only", mode=mode))}


async def ask(client: Client, message: str = "Who?") -> CallToolResult:
    result = await client.call_tool(ASK, {"message": message})
    assert isinstance(result, CallToolResult)
    return result


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_ru_47_a_question_reaches_a_client_that_declared_it(
    tmp_path: Path, era: Era, mode: Era
) -> None:
    person = bo()
    async with (
        daemon(tmp_path, one(mode)) as running,
        connected(running.url, era, elicitation_callback=person) as client,
    ):
        result = await ask(client)
    assert 'User response: action=accept, content={"name": "Bo"}' == text_of(result)
    assert ["Who?"] == person.asked


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_ru_47_a_refusal_is_an_answer(tmp_path: Path, era: Era, mode: Era) -> None:
    async with (
        daemon(tmp_path, one(mode)) as running,
        connected(
            running.url, era, elicitation_callback=Person(ElicitResult(action="decline"))
        ) as client,
    ):
        assert "User response: action=decline, content=null" == text_of(await ask(client))


@pytest.mark.parametrize("mode", MODES)
async def test_ru_47_a_client_of_the_older_protocol_that_cannot_be_asked_is_told(
    tmp_path: Path, mode: Era
) -> None:
    async with (
        daemon(tmp_path, one(mode)) as running,
        connected(running.url, "legacy") as client,
    ):
        result = await ask(client)
    assert result.is_error
    # A server of the older protocol is told itself, and this one says what it was told.
    told = {"auto": "it has not declared elicitation", "legacy": "cannot be asked anything"}
    assert told[mode] in text_of(result)


@pytest.mark.parametrize("mode", MODES)
async def test_ru_47_a_client_of_the_newer_protocol_that_cannot_be_asked_is_told(
    tmp_path: Path, mode: Era
) -> None:
    async with daemon(tmp_path, one(mode)) as running, raw(running.url, MODERN) as client:
        answer = await client.request("tools/call", {"name": ASK, "arguments": {}})
    if mode == "auto":
        error = answer["error"]
        assert MISSING_REQUIRED_CLIENT_CAPABILITY == error["code"]
        assert {"requiredCapabilities": {"elicitation": {}}} == error["data"]
        assert "it has not declared elicitation" in error["message"]
    else:
        assert "cannot be asked anything" in str(answer)


@pytest.mark.parametrize("mode", MODES)
async def test_ru_47_a_recipe_asks_nobody(tmp_path: Path, mode: Era) -> None:
    async with daemon(tmp_path, one(mode)) as running:
        await running.connected("f")
        result = await running.services.tools.dispatch("f.test_elicitation", {})
    assert result.is_error
    assert "nobody is there" in str(result) or "cannot be asked" in str(result)


async def test_what_the_client_declared_is_what_a_server_of_the_newer_protocol_is_told(
    tmp_path: Path,
) -> None:
    async with daemon(tmp_path, one("auto")) as running, raw(running.url, MODERN) as client:
        listed = (await client.request("tools/list"))["result"]["tools"]
        (name,) = [
            tool["name"]
            for tool in listed
            if "test_input_required_result_capabilities" in tool["description"]
        ]
        params: dict[str, Any] = {"name": name, "arguments": {}}
        cases: list[tuple[dict[str, Any], set[str]]] = [
            ({"sampling": {}}, {"sample"}),
            ({"elicitation": {}}, {"name"}),
            ({"elicitation": {}, "sampling": {}}, {"name", "sample"}),
        ]
        for declared, expected in cases:
            answer = await client.request("tools/call", params, capabilities=declared)
            assert "input_required" == answer["result"]["resultType"]
            assert expected == set(answer["result"]["inputRequests"])


async def test_a_question_of_the_older_protocol_waits_for_the_client_to_come_back(
    tmp_path: Path,
) -> None:
    can: dict[str, Any] = {"elicitation": {}}
    params: dict[str, Any] = {"name": ASK, "arguments": {"message": "Who?"}}
    async with daemon(tmp_path, one("legacy")) as running, raw(running.url, MODERN) as client:
        first = (await client.request("tools/call", params, capabilities=can))["result"]
        assert "input_required" == first["resultType"]
        assert "content" not in first
        (question,) = first["inputRequests"].values()
        assert "elicitation/create" == question["method"]
        assert "Who?" == question["params"]["message"]
        state = {"requestState": first["requestState"]}
        answer = {"action": "accept", "content": {"name": "Al"}}
        back = {**params, **state, "inputResponses": {"question": answer}}
        second = (await client.request("tools/call", back, capabilities=can))["result"]
        assert "Al" in second["content"][0]["text"]
        assert "complete" == second["resultType"]
        # The answer is used up, and nobody else can have made one up.
        for wrong in (state["requestState"], "woollama:guessed"):
            given = {**back, "requestState": wrong}
            refused = await client.request("tools/call", given, capabilities=can)
            assert INVALID_PARAMS == refused["error"]["code"]


async def test_an_answer_without_the_question_ends_nothing_by_mistake(tmp_path: Path) -> None:
    can: dict[str, Any] = {"elicitation": {}}
    params: dict[str, Any] = {"name": ASK, "arguments": {}}
    async with daemon(tmp_path, one("legacy")) as running, raw(running.url, MODERN) as client:
        first = (await client.request("tools/call", params, capabilities=can))["result"]
        empty: dict[str, Any] = {
            **params,
            "requestState": first["requestState"],
            "inputResponses": {},
        }
        answer = await client.request("tools/call", empty, capabilities=can)
        assert INVALID_PARAMS == answer["error"]["code"]


async def test_a_server_of_the_newer_protocol_may_ask_again_and_again(tmp_path: Path) -> None:
    person = bo()
    async with (
        daemon(tmp_path, one("auto")) as running,
        connected(running.url, "legacy", elicitation_callback=person) as client,
    ):
        name = await the_tool(client, "test_input_required_result_multi_round")
        assert "both steps" == text_of(await client.call_tool(name, {}))
        state = await the_tool(client, "test_input_required_result_request_state")
        assert "state-ok" in text_of(await client.call_tool(state, {}))
    assert ["Step 1: What is your name?", "Step 2: What is your favorite color?"] == (
        person.asked[:2]
    )


async def test_but_not_for_ever(tmp_path: Path) -> None:
    person = bo()
    async with (
        daemon(tmp_path, one("auto")) as running,
        connected(running.url, "legacy", elicitation_callback=person) as client,
    ):
        await client.list_tools()
        # It asks whatever it is answered.
        result = await client.call_tool("f__test_streaming_elicitation", {})
    assert "The tool has asked 10 times" in text_of(result)
    assert 10 == len(person.asked)


async def test_a_client_of_the_older_protocol_is_not_asked_for_what_is_no_question(
    tmp_path: Path,
) -> None:
    async with (
        daemon(tmp_path, one("auto")) as running,
        connected(running.url, "legacy", elicitation_callback=bo()) as client,
    ):
        name = await the_tool(client, "test_input_required_result_list_roots")
        result = await client.call_tool(name, {})
    assert "it has not declared roots" in text_of(result)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_answers_with_an_error_is_understood(tmp_path: Path, mode: Era) -> None:
    refusal = ErrorData(code=-1, message="not now")
    async with (
        daemon(tmp_path, one(mode)) as running,
        connected(running.url, "legacy", elicitation_callback=Person(refusal)) as client,
    ):
        result = await ask(client)
    assert result.is_error
    assert "the client refused the question: not now" in text_of(result)


async def test_nobody_waits_for_an_answer_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surface_questions, "ASKS_LIMIT_S", 0.05)

    async def silent(_context: object, params: ElicitRequestParams) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        daemon(tmp_path, one("legacy")) as running,
        connected(running.url, "legacy", elicitation_callback=silent) as client,
    ):
        assert "nobody answered in time" in text_of(await ask(client))


async def test_nobody_waits_for_a_client_to_come_back_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(surface_questions, "ASKS_LIMIT_S", 0.01)
    given_up = anyio.Event()

    async def work(someone: Asker, _progress: Any) -> dict[str, Any]:
        with pytest.raises(CannotAsk, match="nobody answered in time"):
            await someone.ask({"message": "Who?"})
        given_up.set()
        return {}

    async with open_tasks() as tasks:
        conversations = Conversations(tasks)
        first = await conversations.begin({}, work, on_progress=None)
        with anyio.fail_after(5):
            await given_up.wait()
        late = {
            "requestState": first["requestState"],
            "inputResponses": {"question": {"action": "accept"}},
        }
        with pytest.raises(MCPError, match="Nothing waits for this answer"):
            await conversations.resume(late, on_progress=None)
        tasks.cancel_scope.cancel()


async def test_a_client_of_the_newer_protocol_that_leaves_cancels_the_call(
    tmp_path: Path,
) -> None:
    files = {"mcp.json": servers(t=scripted())}
    async with (
        daemon(tmp_path, files) as running,
        connected(running.url, "auto", elicitation_callback=bo()) as client,
    ):

        async def heard(method: str) -> int:
            return text_of(await client.call_tool("t__heard", {})).count(f'"{method}"')

        async with open_tasks() as tasks:
            tasks.start_soon(client.call_tool, "t__hang")
            while await heard("tools/call") < 3:
                pass
            tasks.cancel_scope.cancel()
        while not await heard("notifications/cancelled"):
            pass


async def test_only_so_many_questions_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surface_questions, "_OPEN_LIMIT", 1)
    told: list[str] = []

    async def work(someone: Asker, _progress: Any) -> dict[str, Any]:
        try:
            return {"answer": await someone.ask({"message": "Who?"})}
        except CannotAsk as reason:
            told.append(str(reason))
            return {"answer": None}

    async with open_tasks() as tasks:
        conversations = Conversations(tasks)
        first = await conversations.begin({}, work, on_progress=None)
        assert {"answer": None} == await conversations.begin({}, work, on_progress=None)
        assert ["too many questions are open"] == told
        back = {
            "requestState": first["requestState"],
            "inputResponses": {"question": {"action": "accept"}},
        }
        assert {"answer": {"action": "accept"}} == (
            await conversations.resume(back, on_progress=None)
        )
        tasks.cancel_scope.cancel()


async def test_what_goes_wrong_behind_a_question_reaches_who_waits() -> None:
    async def work(someone: Asker, progress: Any) -> dict[str, Any]:
        await progress(1, 2, "asking")
        await someone.ask({"message": "Who?"})
        await progress(2, 2, "asked")
        raise MCPError(INVALID_PARAMS, "no such person")

    heard: list[tuple[str, str | None]] = []

    def ear(name: str) -> Any:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((name, message))

        return hear

    async with open_tasks() as tasks:
        conversations = Conversations(tasks)
        first = await conversations.begin({}, work, on_progress=ear("first"))
        back = {
            "requestState": first["requestState"],
            "inputResponses": {"question": {"action": "accept"}},
        }
        with pytest.raises(MCPError, match="no such person"):
            await conversations.resume(back, on_progress=ear("second"))
        tasks.cancel_scope.cancel()
    # Each of its requests hears what happens while it is open.
    assert [("first", "asking"), ("second", "asked")] == heard


async def the_tool(client: Client, name: str) -> str:
    """The exported name of a fixture, by its description."""
    listed = (await client.list_tools()).tools
    return next(tool.name for tool in listed if f"{name} of" in (tool.description or ""))


# OpenCalls, the rule of exactly one call


def asker(answer: str = "yes", **capability: Any) -> Asker:
    async def answering(question: Any) -> dict[str, Any]:
        return {"action": answer, "asked": question["message"]}

    return Asker(capability=capability, ask=answering)


async def test_nobody_is_asked_while_it_is_not_clear_whose_question_it_is() -> None:
    calls = OpenCalls()
    question = {"message": "Who?"}
    with pytest.raises(CannotAsk, match="no call is under way"):
        await calls.ask(question)
    with calls.call(Direct(asker=asker())):
        assert {"action": "yes", "asked": "Who?"} == await calls.ask(question)
        with calls.call(Direct(asker=asker())), pytest.raises(CannotAsk, match="several calls"):
            await calls.ask(question)
        assert "yes" == (await calls.ask(question))["action"]
    with calls.call(Direct()), pytest.raises(CannotAsk, match="cannot be asked anything"):
        await calls.ask(question)


@pytest.mark.parametrize(
    ("capability", "form", "url"),
    [
        ({}, True, False),
        ({"form": {}}, True, False),
        ({"url": {}}, False, True),
        ({"form": {}, "url": {}}, True, True),
    ],
)
async def test_only_declared_modes_are_asked(
    capability: dict[str, Any], form: bool, url: bool
) -> None:
    able = asker(**capability)
    assert (form, url) == (able.takes("form"), able.takes("url"))
    calls = OpenCalls()
    with calls.call(Direct(asker=able)):
        if not url:
            with pytest.raises(CannotAsk, match="no questions of mode 'url'"):
                await calls.ask({"message": "Go there", "mode": "url"})


async def test_a_question_ends_with_its_call() -> None:
    calls, asked, ended = OpenCalls(), anyio.Event(), anyio.Event()

    async def waiting(_question: Any) -> dict[str, Any]:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def server() -> None:
        with pytest.raises(CannotAsk, match="the call is over"):
            await calls.ask({"message": "Who?"})
        ended.set()

    async with open_tasks() as tasks:
        with calls.call(Direct(asker=Asker(capability={}, ask=waiting))):
            tasks.start_soon(server)
            with anyio.fail_after(5):
                await asked.wait()
        with anyio.fail_after(5):
            await ended.wait()


async def test_a_persons_time_is_not_the_calls_time() -> None:
    deadlines: list[float] = []
    with anyio.CancelScope(deadline=anyio.current_time() + 100) as scope:

        async def thinking(question: Any) -> dict[str, Any]:
            deadlines.append(scope.deadline)
            if question["message"] == "first":
                await patient.asker.ask({"message": "second"})  # pyright: ignore[reportOptionalMemberAccess]
                deadlines.append(scope.deadline)
            return {}

        patient = without_deadline(Direct(asker=Asker(capability={}, ask=thinking)), scope)
        assert patient.asker is not None
        await patient.asker.ask({"message": "first"})
        assert [float("inf")] * 3 == deadlines
        assert 90 < scope.deadline - anyio.current_time() <= 100
    nobody = Direct()
    assert nobody is without_deadline(nobody, scope)
