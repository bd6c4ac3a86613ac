"""The loop: ask, run what the model calls, ask again, until it is done or out of turns."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Self, cast

import anyio
import msgspec
from anyio.abc import TaskGroup

from woollama.core.canonical import (
    Assembly,
    AssistantMessage,
    ChatRequest,
    Delta,
    Message,
    Part,
    Reply,
    RunEvent,
    RunFinished,
    ToolCall,
    TurnStarted,
    UserMessage,
)
from woollama.core.errors import TransportError, TurnLimit
from woollama.core.runs.calls import CallUnderWay
from woollama.core.runs.plan import RunPlan
from woollama.core.runs.usage import sum_usage
from woollama.core.scopes import open_tasks
from woollama.core.transport.default import default_transport
from woollama.core.turn import new_id, open_turn

__all__ = ["Run", "open_run", "supervised_run"]


class Run:
    """A run under way: an async iterator of its events (see ``canonical.events``).

    Reading it is what makes it go on: there is no work ahead of the reader but for the tool calls
    of one turn, which run at once. When it was opened with a task group, their results come as they
    are ready, in the order of the calls; without one, together when all are.
    """

    def __init__(self, plan: RunPlan, tasks: TaskGroup | None = None) -> None:
        """Nothing is sent before the first ``__anext__``."""
        self._plan = plan
        self._tasks = tasks
        self._events = self._go()
        self._ahead: list[RunEvent] = []
        self._deadline: float | None = None

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> RunEvent:
        """The next event.

        Raises:
            InferenceError: what ended the run early.
        """
        if self._ahead:
            return self._ahead.pop()
        seconds = self._plan.limits.run_timeout_s
        if seconds is None:
            return await anext(self._events)
        if self._deadline is None:
            self._deadline = anyio.current_time() + seconds
        # A scope for each step, so that none is open while the reader has the control.
        with anyio.CancelScope(deadline=self._deadline):
            return await anext(self._events)
        await self.aclose()
        raise TransportError(
            f"The run did not finish within {seconds:g} s.", kind="timeout", status=504
        )

    async def begin(self) -> None:
        """Brings the first event, so that a refusal by the provider is raised here."""
        self._ahead.append(await anext(self))

    async def aclose(self) -> None:
        """Ends the run: the upstream request is closed, calls under way are cancelled."""
        await self._events.aclose()

    async def _go(self) -> AsyncGenerator[RunEvent]:
        plan = self._plan
        history = list(plan.request.messages)
        replies: list[Reply] = []
        for turn in range(1, plan.limits.max_turns + 1):
            request = _request(plan, history, turn)
            async with aclosing(self._turn(request, turn)) as events:
                async for event in events:
                    if isinstance(event, Reply):
                        replies.append(event)
                    else:
                        yield event  # noqa: ASYNC119 - Run owns this generator and closes it
            message = _kept(replies[-1].message)
            if not message.tool_calls:
                yield RunFinished(
                    reply=replies[-1], usage_total=sum_usage(replies), replies=tuple(replies)
                )
                return
            history.append(message)
            calls = [CallUnderWay(plan, turn, call) for call in message.tool_calls]
            for call in calls:
                yield call.started
            async with aclosing(self._results(calls)) as results:
                async for call in results:
                    yield call.finished  # noqa: ASYNC119 - as above
            history.extend(_answers(calls))
        raise TurnLimit(
            f"{plan.target.name} still calls tools after max turns = {plan.limits.max_turns}."
        )

    async def _turn(self, request: ChatRequest, turn: int) -> AsyncGenerator[RunEvent | Reply]:
        plan, link = self._plan, self._plan.link
        transport = link.transport if link.transport is not None else await default_transport()
        assembly = Assembly()
        async with open_turn(
            plan.target,
            request,
            transport=transport,
            stream=plan.stream,
            api_key=link.api_key,
            timeouts=link.timeouts,
            retries=link.retries,
        ) as opened:
            missing = tuple(f"tools.{name}" for name in plan.toolset.missing)
            yield TurnStarted(  # noqa: ASYNC119 - closed by _go
                turn=turn,
                dropped=(*opened.dropped, *missing),
                tools_offered=len(request.tools),
            )
            batches = cast("AsyncGenerator[tuple[Delta, ...]]", opened.batches)
            async with aclosing(batches):
                async for batch in batches:
                    for delta in batch:
                        assembly.add(delta)
                        if plan.stream:
                            yield delta  # noqa: ASYNC119 - closed by _go
        yield assembly.reply()

    async def _results(self, calls: list[CallUnderWay]) -> AsyncGenerator[CallUnderWay]:
        """The calls, each when it has its result, in their order."""
        if self._tasks is None:
            async with open_tasks() as tasks:
                for call in calls:
                    tasks.start_soon(call.run)
            for call in calls:
                yield call
            return
        try:
            for call in calls:
                self._tasks.start_soon(call.run)
            for call in calls:
                await call.done.wait()
                yield call
        finally:
            for call in calls:
                call.scope.cancel()


def _request(plan: RunPlan, history: list[Message], turn: int) -> ChatRequest:
    request = msgspec.structs.replace(plan.request, messages=tuple(history))
    if turn > 1 and request.tool_choice != "auto":
        # A forced choice would be forced for ever (RU-43).
        request = msgspec.structs.replace(request, tool_choice=None)
    return request


def _kept(message: AssistantMessage) -> AssistantMessage:
    """What the model said, for the history: with content, and one id a call (C-7)."""
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for call in message.tool_calls:
        identity = call.id
        if not identity or identity in taken:
            identity = f"call_{new_id()}"
        taken.add(identity)
        calls.append(msgspec.structs.replace(call, id=identity))
    return msgspec.structs.replace(message, content=message.content or "", tool_calls=tuple(calls))


def _answers(calls: list[CallUnderWay]) -> list[Message]:
    """The results in the order of the calls, and what of them only a user's message can carry."""
    messages: list[Message] = []
    shown: list[Part] = []
    for call in calls:
        message, parts = call.answer()
        messages.append(message)
        shown.extend(parts)
    if shown:
        messages.append(UserMessage(content=tuple(shown)))
    return messages


@asynccontextmanager
async def supervised_run(plan: RunPlan) -> AsyncGenerator[Run]:
    """A run whose tool calls live in a task group; leaving the context ends it."""
    async with open_tasks() as tasks:
        run = Run(plan, tasks)
        try:
            yield run
        finally:
            with anyio.move_on_after(5, shield=True):
                await run.aclose()


@asynccontextmanager
async def open_run(plan: RunPlan) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    """Opens a run; its events are read inside the context, and leaving it ends the run.

    Raises:
        InferenceError: on entry, when nothing was said yet: the provider's refusal, a connection
            that could not be made. While reading: whatever ended the run early.
    """
    async with supervised_run(plan) as run:
        await run.begin()
        yield run
