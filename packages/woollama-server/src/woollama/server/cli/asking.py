"""From a question to the events of its answer, whoever gives it: a model, a recipe, a daemon."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from woollama.core.canonical import (
    NOTHING,
    Assembly,
    ChatRequest,
    Delta,
    RunEvent,
    RunFinished,
    TurnStarted,
    Value,
    request_from_openai,
)
from woollama.core.directory import OWN_NAMESPACE, FoundPattern
from woollama.core.errors import RequestError
from woollama.core.patterns import PatternBackend, PatternCall
from woollama.core.providers import Target
from woollama.core.turn import open_turn
from woollama.server.lifespan import open_services
from woollama.server.services import Services
from woollama.server.settings import Settings

__all__ = ["Question", "events_of", "open_answer"]


class Question(Value, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        text: the question; empty is none, which only a pattern can do with.
        system: put before it; None is nothing.
        model: as ``woollama models`` lists it; None is the pattern's own.
        pattern: the name of a recipe or pattern to ask with.
        variables: of the pattern.
        options: fields of the request.
        stream: whether the answer is wanted as it comes.
    """

    text: str
    system: str | None = None
    model: str | None = None
    pattern: str | None = None
    variables: Mapping[str, Any] = NOTHING
    options: Mapping[str, Any] = NOTHING
    stream: bool = True

    @property
    def name(self) -> str:
        """Who is asked, for a person."""
        return self.model or f"{OWN_NAMESPACE}/{self.pattern}"

    def of(self, model: str) -> "Question":
        """The same, asked of a model."""
        return msgspec.structs.replace(self, model=model)

    @property
    def messages(self) -> list[dict[str, str]]:
        """As Chat Completions writes them."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, *([{"role": "user", "content": self.text}] if self.text else [])]

    def request(self, model: str) -> ChatRequest:
        """As a request to ``model``.

        Raises:
            RequestError: an option has the wrong type.
        """
        return request_from_openai({**self.options, "model": model, "messages": self.messages})


@asynccontextmanager
async def open_answer(
    settings: Settings, question: Question, *, notice: Callable[[str], None]
) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    """The events of the answer, given in this process; the last one is ``RunFinished``.

    Args:
        settings: of this command.
        question: what is asked.
        notice: tells a person what is going on.

    Raises:
        InferenceError: what went wrong before anything was said.
    """
    patterns = _is_pattern(question)
    async with open_services(
        settings, notice=notice, mcp_servers=patterns, patterns=patterns
    ) as services:
        found = _find(services, question)
        if isinstance(found, Target):
            async with _by_model(services, found, question) as events:
                yield events
        else:
            async with found[0].open_run(found[1]) as events:
                yield events


def _is_pattern(question: Question) -> bool:
    """Whether it may need tools, or a system of patterns: for a plain model none is started."""
    if question.pattern is not None:
        return True
    return (question.model or "").startswith(f"{OWN_NAMESPACE}/")


def _find(services: Services, question: Question) -> Target | tuple[PatternBackend, PatternCall]:
    directory = services.directory
    name = question.pattern
    if name is None:
        found = directory.find(question.model or "")
        if not isinstance(found, FoundPattern):
            return found
        backend, name, model = found.backend, found.pattern.name, None
    else:
        held = directory.catalog.find(name)
        if held is None:
            names = ", ".join(pattern.name for pattern in directory.catalog.list()) or "none"
            raise RequestError(f"There is no pattern {name!r}. There are: {names}.")
        backend, model = held[0], question.model
    request = question.request(model or f"{OWN_NAMESPACE}/{name}")
    call = PatternCall(
        name=name,
        messages=request.messages,
        variables=question.variables,
        model=model,
        options=question.options,
        stream=question.stream,
    )
    return backend, call


@asynccontextmanager
async def _by_model(
    services: Services, target: Target, question: Question
) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    async with open_turn(
        target,
        question.request(target.name),
        stream=question.stream,
        transport=services.transport_for(target.provider),
        timeouts=services.timeouts,
        retries=services.retries,
    ) as turn:
        yield events_of(turn.batches, dropped=turn.dropped)


async def events_of(
    batches: AsyncIterator[tuple[Delta, ...]], *, dropped: tuple[str, ...] = ()
) -> AsyncIterator[RunEvent]:
    """The deltas of one reply as a run of one turn."""
    yield TurnStarted(turn=1, dropped=dropped)
    assembly = Assembly()
    async for deltas in batches:
        for delta in deltas:
            assembly.add(delta)
            yield delta
    reply = assembly.reply()
    yield RunFinished(reply=reply, usage_total=reply.usage)
