"""The façade for recipes: a model that calls tools until it has an answer, in plain dicts."""

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, cast

from woollama.core.canonical import (
    RunEvent,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    usage_to_openai,
)
from woollama.core.errors import NotBuilt, RequestError, UnknownModel
from woollama.core.providers import ModelRegistry, Target
from woollama.core.recipes import Recipe, inferencer_of
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.runs import BeforeTool, Run, RunLimits, RunPlan, plan_run
from woollama.core.runs.loop import supervised_run
from woollama.core.runs.plan import DEFAULT_MAX_TURNS, Link, resolve_inferencer
from woollama.core.runs.toolset import ToolSource
from woollama.core.tools import Renderer
from woollama.core.transport.base import Timeouts, Transport

__all__ = ["EventIter", "orchestrate", "orchestrate_events"]

Messages = Iterable[Mapping[str, Any]]
RecipeLike = Recipe | Mapping[str, Any]
"""A recipe, or any mapping with its keys."""


def orchestrate(
    recipe: RecipeLike,
    messages: Messages | None = None,
    tools: ToolSource | None = None,
    *,
    user_msgs: Messages | None = None,
    registry: ModelRegistry | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    transport: Transport | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
    tool_timeout_s: float | None = None,
    run_timeout_s: float | None = None,
    renderers: Iterable[Renderer] = (),
    before_tool: BeforeTool | None = None,
) -> Awaitable[dict[str, Any]]:
    """Runs a recipe until its model is done, and gives the last reply.

    Args:
        recipe: ``inferencer`` (or ``model``), ``system``, ``tools``, ``params``; see ``Recipe``.
            Other keys are not looked at.
        messages: the conversation, OpenAI-shaped; the system prompt is put before it, the rest goes
            as it is.
        tools: a ``ToolProvider``, or just functions. The recipe's list decides what may be called:
            everything else is neither offered nor dispatched.
        user_msgs: another name of ``messages``.
        registry: the providers; None is the built-in ones, and no file is read.
        base_url: instead of the provider's address.
        api_key: instead of the provider's variable; empty is none.
        transport: None is the running loop's own.
        timeouts: of each request; None is the default of ``Timeouts``.
        retries: of each request, before its first byte; None asks once.
        max_turns: requests in all.
        tool_timeout_s: for one tool call; passing it is a failed result. None is without end.
        run_timeout_s: for everything together. None is without end.
        renderers: tried before our own, for what the model is told of a result.
        before_tool: called with the tool and its arguments before each call, perhaps ``async``;
            None lets it run, a ``ToolResult`` or text is what the model is told instead (P-4).

    Returns:
        An awaitable for the last reply: a ``chat.completion`` as ``complete_response`` gives it,
        with ``message.tool_calls`` None, ``usage`` of the last turn and ``usage_total`` of all.

    Raises:
        InferenceError: by the call itself: a recipe, messages, tools or parameters that cannot be
            used (400), an unknown provider (501), a missing key (400), tools that could not be had
            (500). When awaited: what ``complete`` raises; ``TurnLimit`` (500); 504 when
            ``run_timeout_s`` passed.

    Source: core API, sections 3 to 5.
    """
    return _final(
        _plan(
            recipe,
            _one_of(messages, user_msgs),
            tools,
            stream=False,
            registry=registry,
            base_url=base_url,
            link=_link(transport, api_key, timeouts, retries),
            limits=RunLimits(
                max_turns=max_turns, tool_timeout_s=tool_timeout_s, run_timeout_s=run_timeout_s
            ),
            renderers=renderers,
            before_tool=before_tool,
        )
    )


def orchestrate_events(
    recipe: RecipeLike,
    messages: Messages | None = None,
    tools: ToolSource | None = None,
    *,
    user_msgs: Messages | None = None,
    stream: bool = False,
    registry: ModelRegistry | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    transport: Transport | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
    max_turns: int = DEFAULT_MAX_TURNS,
    tool_timeout_s: float | None = None,
    run_timeout_s: float | None = None,
    renderers: Iterable[Renderer] = (),
    before_tool: BeforeTool | None = None,
) -> "EventIter":
    """Runs a recipe and tells what happens, as it happens.

    Arguments are those of ``orchestrate``; ``stream`` asks for each reply as it comes.

    Returns:
        An async iterator, and async context manager, of dicts:

        - ``{"type": "delta", "content"}``: text, only with ``stream``; of every turn, narration
          before a tool call included.
        - ``{"type": "tool_call", "turn", "name", "args"}``: before the call, also before one that
          is refused; ``args`` is the model's text when that is no JSON object.
        - ``{"type": "tool_result", "turn", "name", "ok"}``: for each of them, in the same order.
        - ``{"type": "final", "response"}``: last and once; what ``orchestrate`` gives, the same
          with and without ``stream``.

    Raises:
        InferenceError: as ``orchestrate``; what that raises when awaited, the iteration raises.

    Source: core API, section 3; rulings RU-40, RU-41.
    """
    return EventIter(
        _plan(
            recipe,
            _one_of(messages, user_msgs),
            tools,
            stream=stream,
            registry=registry,
            base_url=base_url,
            link=_link(transport, api_key, timeouts, retries),
            limits=RunLimits(
                max_turns=max_turns, tool_timeout_s=tool_timeout_s, run_timeout_s=run_timeout_s
            ),
            renderers=renderers,
            before_tool=before_tool,
        )
    )


class EventIter:
    """The events of a run as dicts: an async iterator, and an async context manager.

    Inside ``async with``, tool results come as they are ready, and leaving it ends the run at once:
    the upstream request is closed and tool calls are cancelled. ``async for`` alone works too; the
    results of one turn then come together, when all its calls are done.
    """

    def __init__(self, plan: RunPlan) -> None:
        """Made by ``orchestrate_events``; nothing is sent before the first ``__anext__``."""
        self._plan = plan
        self._stack = AsyncExitStack()
        self._run: Run | None = None

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Itself."""
        return self

    async def __anext__(self) -> dict[str, Any]:
        """The next event.

        Raises:
            InferenceError: what ended the run early.
        """
        if self._run is None:
            self._run = Run(self._plan)
        while True:
            told = _told(await anext(self._run), stream=self._plan.stream)
            if told is not None:
                return told

    async def __aenter__(self) -> Self:
        """Itself."""
        self._run = await self._stack.enter_async_context(supervised_run(self._plan))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Ends the run."""
        return await self._stack.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Ends the run, whether or not it was read to its end."""
        if self._run is not None:
            await self._run.aclose()


async def _final(plan: RunPlan) -> dict[str, Any]:
    async with supervised_run(plan) as run:
        async for event in run:
            if isinstance(event, RunFinished):
                return _response(event)
    raise AssertionError("a run ended without its last event")


def _told(event: RunEvent, *, stream: bool) -> dict[str, Any] | None:
    match event:
        case TextDelta() if stream:
            return {"type": "delta", "content": event.text}
        case ToolStarted():
            return {
                "type": "tool_call",
                "turn": event.turn,
                "name": event.name,
                "args": event.args,
            }
        case ToolFinished():
            return {
                "type": "tool_result",
                "turn": event.turn,
                "name": event.name,
                "ok": event.ok,
            }
        case RunFinished():
            return {"type": "final", "response": _response(event)}
        case _:
            return None


def _response(finished: RunFinished) -> dict[str, Any]:
    body = finished.reply.to_openai()
    # Embedders look whether it is None (core API, section 3).
    body["choices"][0]["message"]["tool_calls"] = None
    total = finished.usage_total
    body["usage_total"] = usage_to_openai(total) if total is not None else None
    return body


def _one_of(messages: Messages | None, user_msgs: Messages | None) -> Messages:
    if messages is not None and user_msgs is not None:
        raise RequestError(
            "'messages' and 'user_msgs' are two names of one argument: give one.", param="messages"
        )
    given = user_msgs if messages is None else messages
    if given is None:
        raise RequestError("'messages' must be a list of messages, not None.", param="messages")
    return given


def _link(
    transport: Transport | None,
    api_key: str | None,
    timeouts: Timeouts | None,
    retries: Retries | None,
) -> Link:
    return Link(
        transport=transport,
        api_key=api_key,
        timeouts=timeouts if timeouts is not None else Timeouts(),
        retries=retries if retries is not None else NO_RETRIES,
    )


def _plan(
    recipe: RecipeLike,
    messages: Messages,
    tools: ToolSource | None,
    *,
    stream: bool,
    registry: ModelRegistry | None,
    base_url: str | None,
    link: Link,
    limits: RunLimits,
    renderers: Iterable[Renderer],
    before_tool: BeforeTool | None,
) -> RunPlan:
    read = _mapping(recipe)
    registry = registry if registry is not None else ModelRegistry.builtin()
    return plan_run(
        _target(registry, inferencer_of(read)).at(base_url),
        messages,
        system=read.get("system"),
        allow=read.get("tools"),
        tools=tools,
        params=read.get("params"),
        stream=stream,
        limits=limits,
        renderers=renderers,
        before_tool=before_tool,
        link=link,
    )


def _mapping(recipe: object) -> Mapping[str, Any]:
    if isinstance(recipe, Mapping):
        return cast("Mapping[str, Any]", recipe)
    raise RequestError(f"A recipe must be a mapping, not {type(recipe).__name__}.", param="recipe")


def _target(registry: ModelRegistry, name: str) -> Target:
    try:
        return resolve_inferencer(registry, name)
    except UnknownModel as error:
        # Callers of the library know this fault of a recipe as a 501 (ruling RU-32).
        raise NotBuilt(f"{error.message} claude-code is a plugin's.", param="model") from None
