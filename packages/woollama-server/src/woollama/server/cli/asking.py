"""From a question to the events of its answer, whoever gives it: a model, a recipe, a daemon."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from woollama.core.canonical import (
    NOTHING,
    Assembly,
    ChatRequest,
    RunEvent,
    RunFinished,
    Value,
    request_from_openai,
)
from woollama.core.directory import OWN_NAMESPACE, FoundPattern
from woollama.core.errors import RequestError
from woollama.core.patterns import PatternBackend, PatternCall
from woollama.core.providers import ModelRegistry, Provider, Target
from woollama.core.transport.default import make_transport
from woollama.core.turn import Turn, open_turn
from woollama.server.lifespan import open_services
from woollama.server.services import Services
from woollama.server.settings import Settings

__all__ = ["Question", "open_answer"]


class Question(Value, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        text: the question.
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

    def request(self, model: str) -> ChatRequest:
        """As a request to ``model``.

        Raises:
            RequestError: an option has the wrong type.
        """
        before = [{"role": "system", "content": self.system}] if self.system else []
        messages = [*before, {"role": "user", "content": self.text}]
        return request_from_openai({"model": model, "messages": messages, **self.options})


@asynccontextmanager
async def open_answer(
    settings: Settings, question: Question, *, url: str | None, notice: Callable[[str], None]
) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    """The events of the answer; the last one is ``RunFinished``.

    Args:
        settings: of this command.
        question: what is asked.
        url: a running daemon's address; None answers in this process.
        notice: tells a person what is going on.

    Raises:
        InferenceError: what went wrong before anything was said.
    """
    if url is not None:
        async with _by_daemon(url, question) as events:
            yield events
        return
    async with open_services(
        settings, notice=notice, mcp_servers=_is_pattern(question)
    ) as services:
        found = _find(services, question)
        if isinstance(found, Target):
            how = {
                "transport": services.transport_for(found.provider),
                "timeouts": services.timeouts,
                "retries": services.retries,
            }
            async with _by_model(found, question, how) as events:
                yield events
        else:
            async with found[0].open_run(found[1]) as events:
                yield events


def _is_pattern(question: Question) -> bool:
    """Whether it may need tools: for a plain model no MCP server is started."""
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
    target: Target, question: Question, how: Mapping[str, Any]
) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    request = question.request(target.name)
    async with open_turn(target, request, stream=question.stream, **how) as turn:
        yield _events(turn)


async def _events(turn: Turn) -> AsyncIterator[RunEvent]:
    assembly = Assembly()
    async for deltas in turn.batches:
        for delta in deltas:
            assembly.add(delta)
            yield delta
    reply = assembly.reply()
    yield RunFinished(reply=reply, usage_total=reply.usage)


@asynccontextmanager
async def _by_daemon(url: str, question: Question) -> AsyncGenerator[AsyncIterator[RunEvent]]:
    """A running daemon's answer; its token comes from ``WOOLLAMA_TOKEN``."""
    base = url.rstrip("/").removesuffix("/v1")
    if "://" not in base:
        base = f"http://{base}"
    if not base.startswith(("http://", "https://")):
        raise RequestError(f"--url wants an http address, not {url!r}.")
    if question.variables:
        raise RequestError("A daemon takes no variables here: leave --url out, or use /w1.")
    model = question.model
    if question.pattern is not None:
        model = f"{OWN_NAMESPACE}/{question.pattern}"
    token = "WOOLLAMA_TOKEN" if os.environ.get("WOOLLAMA_TOKEN") else None
    target = ModelRegistry([Provider("daemon", f"{base}/v1", token)]).resolve(f"daemon/{model}")
    transport = make_transport()
    try:
        async with _by_model(target, question, {"transport": transport}) as events:
            yield events
    finally:
        await transport.aclose()
