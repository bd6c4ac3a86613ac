"""One tool call: checked, asked about, dispatched, rendered. It always ends in a result."""

import inspect
from collections.abc import Mapping
from typing import Any, cast

import anyio
from anyio import to_thread

from woollama.core.canonical import (
    NOTHING,
    Content,
    Part,
    TextPart,
    ToolCall,
    ToolFinished,
    ToolMessage,
    ToolResult,
    ToolStarted,
    Value,
)
from woollama.core.runs.arguments import WrongArguments, read_arguments
from woollama.core.runs.plan import RunPlan
from woollama.core.tools import BlockingCall, ToolSpec, render_content

__all__ = ["CallUnderWay"]


class _Outcome(Value, frozen=True, kw_only=True):
    """What a call came to, and what the model is told of it."""

    result: ToolResult
    content: Content


class CallUnderWay:
    """One call of one turn.

    Attributes:
        started: the event that announces it.
        scope: cancel it to give the call up.
        done: set when ``finished`` and ``answer`` are there.
    """

    def __init__(self, plan: RunPlan, turn: int, call: ToolCall) -> None:
        """Reads the call; nothing is dispatched yet."""
        self._plan = plan
        self._turn = turn
        self._call = call
        self._spec = plan.toolset.find(call.name)
        self._wrong: WrongArguments | None = None
        args: Any = call.arguments
        try:
            args = read_arguments(call.arguments)
        except WrongArguments as error:
            self._wrong = error
        self.started: ToolStarted = ToolStarted(turn=turn, id=call.id, name=self._name, args=args)
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self.done: anyio.Event = anyio.Event()
        self._outcome: _Outcome | None = None

    @property
    def _name(self) -> str:
        return self._call.name if self._spec is None else self._spec.own_name

    async def run(self) -> None:
        """Brings the call to its result; never raises but for a cancellation."""
        with self.scope:
            self._outcome = await self._come_to_result()
        self.done.set()

    @property
    def finished(self) -> ToolFinished:
        """The event that tells the result."""
        result = self._ended.result
        return ToolFinished(
            turn=self._turn,
            id=self._call.id,
            name=self._name,
            ok=not result.is_error,
            result=result,
        )

    def answer(self) -> tuple[ToolMessage, tuple[Part, ...]]:
        """The tool message, and the parts that only a user's message can carry everywhere."""
        outcome = self._ended
        text, parts = _text_apart(outcome.content)
        message = ToolMessage(
            tool_call_id=self._call.id, content=text, is_error=outcome.result.is_error
        )
        label = TextPart(text=f"From the result of {self._call.name} ({self._call.id}):")
        return message, (label, *parts) if parts else ()

    @property
    def _ended(self) -> _Outcome:
        if self._outcome is None:
            raise AssertionError("the call has no result yet")
        return self._outcome

    async def _come_to_result(self) -> _Outcome:
        if self._spec is None:
            allowed = ", ".join(self._plan.toolset.wire_names) or "none"
            return _refused(
                f"tool {self._call.name!r} is not permitted; the tools there are: {allowed}"
            )
        if self._wrong is not None:
            return _refused(
                f"the arguments of {self._call.name!r} are {self._wrong}. The tool was not called: "
                "call it again with a JSON object."
            )
        try:
            return await self._dispatched(self._spec, read_arguments(self._call.arguments))
        except anyio.get_cancelled_exc_class() as error:
            if anyio.current_effective_deadline() == float("-inf"):
                raise
            # Nobody cancelled this call: the tool raised it by itself.
            return _raised(error)
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the model is told
            return _raised(error)

    async def _dispatched(self, spec: ToolSpec, args: dict[str, Any]) -> _Outcome:
        plan = self._plan
        if plan.before_tool is not None:
            verdict: Any = plan.before_tool(spec, args)
            if inspect.isawaitable(verdict):
                verdict = await verdict
            if verdict is not None:
                return self._rendered(_refusal(verdict))
        seconds = plan.limits.tool_timeout_s
        with anyio.move_on_after(seconds):
            return self._rendered(_as_result(await _called(plan, spec, args)))
        return _refused(f"{self._call.name!r} did not answer within {seconds:g} s")

    def _rendered(self, result: ToolResult) -> _Outcome:
        plan = self._plan
        caps = plan.target.capabilities
        content = render_content(result, caps=caps, renderers=plan.renderers)
        return _Outcome(result=result, content=content)


async def _called(plan: RunPlan, spec: ToolSpec, args: dict[str, Any]) -> Any:
    returned = plan.toolset.dispatch(spec, args)
    if isinstance(returned, BlockingCall):
        # A thread cannot be stopped: a call that is given up leaves it to end by itself.
        return await to_thread.run_sync(returned.run, abandon_on_cancel=True)
    return await returned if inspect.isawaitable(returned) else returned


def _as_result(returned: Any) -> ToolResult:
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, str):
        return ToolResult(returned)
    if isinstance(returned, Mapping):
        return ToolResult(structured=cast("Mapping[str, Any]", returned))
    blocks = getattr(returned, "blocks", None)
    if blocks is None:
        raise TypeError(
            f"dispatch returned {type(returned).__name__}: return a ToolResult, a str or a dict"
        )
    return ToolResult(
        tuple(blocks),
        structured=getattr(returned, "structured", None),
        # Only a real True: objects that answer every attribute would otherwise always fail.
        is_error=getattr(returned, "is_error", False) is True,
        meta=getattr(returned, "meta", None) or NOTHING,
    )


def _refusal(verdict: Any) -> ToolResult:
    if isinstance(verdict, ToolResult):
        return verdict
    if isinstance(verdict, str):
        return ToolResult(verdict, is_error=True)
    raise TypeError(
        f"before_tool returned {type(verdict).__name__}: return None to let the call run, or a "
        "ToolResult or text to refuse it"
    )


def _raised(error: BaseException) -> _Outcome:
    return _refused(f"{type(error).__name__}: {error}")


def _refused(reason: str) -> _Outcome:
    text = f"ERROR: {reason}"
    return _Outcome(result=ToolResult(text, is_error=True), content=text)


def _text_apart(content: Content) -> tuple[str, tuple[Part, ...]]:
    if isinstance(content, str):
        return content, ()
    lines: list[str] = []
    others: list[Part] = []
    for part in content:
        if isinstance(part, TextPart):
            lines.append(part.text)
        else:
            others.append(part)
            lines.append(f"[part {len(others)} of this result follows in the next message]")
    return "\n".join(lines), tuple(others)
