"""The tool ``chat``: any model, recipe or pattern asked by an MCP client."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from woollama.core.canonical import (
    NOTHING,
    Message,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    RunEvent,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    UserMessage,
    Value,
    message_from_openai,
    text_of,
    usage_to_openai,
)
from woollama.core.directory import OWN_NAMESPACE, FoundPattern, near_names
from woollama.core.errors import InferenceError, ReplyError, RequestError
from woollama.core.patterns import PatternBackend, PatternCall
from woollama.core.providers import Target
from woollama.core.runs import open_run, plan_run
from woollama.server.instance import INSTANCE_META
from woollama.server.mcp.chat_schemas import chat_input, chat_output
from woollama.server.mcp.surface_sources import Sources
from woollama.server.mcp.surface_voice import Voice

__all__ = ["CHAT", "ChatTool", "failed"]

CHAT = "chat"
"""The tool's name."""

_LISTED = 40
"""How many names of models a refusal lists."""


class _Asked(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments."""

    messages: tuple[dict[str, Any], ...] | None = None
    prompt: str | None = None
    model: str | None = None
    recipe: str | None = None
    pattern: str | None = None
    variables: Mapping[str, Any] = NOTHING
    options: Mapping[str, Any] = NOTHING


class ChatTool:
    """Runs what it is asked for, tells how it goes, and gives the answer."""

    def __init__(self, sources: Sources) -> None:
        """Asks nobody yet."""
        self._sources = sources
        self._only_recipes = sources.exports.recipes_only

    def described(self) -> dict[str, Any]:
        """The tool as ``tools/list`` has it."""
        return {
            "name": CHAT,
            "title": "Ask a model, a recipe or a pattern",
            "description": _DESCRIPTION_OF_RECIPES if self._only_recipes else _DESCRIPTION,
            "inputSchema": chat_input(only_recipes=self._only_recipes),
            "outputSchema": chat_output(),
            "annotations": {"openWorldHint": True},
            "_meta": {INSTANCE_META: [self._sources.instance_id]},
        }

    async def call(self, arguments: Mapping[str, Any], voice: Voice) -> dict[str, Any]:
        """One call.

        Args:
            arguments: as the client gave them; what is wrong with them is told in the result, where
                a model reads it and can do better.
            voice: hears how it goes. When the client wants progress the answer comes in pieces.
        """
        try:
            asked = msgspec.convert(arguments, _Asked)
        except msgspec.ValidationError as error:
            return failed(f"The arguments are wrong: {error}.")
        try:
            async with self._open(asked, stream=voice.wants_progress) as events:
                return _answered(await _hear(events, voice))
        except InferenceError as error:
            return failed(str(error))

    @asynccontextmanager
    async def _open(
        self, asked: _Asked, *, stream: bool
    ) -> AsyncGenerator[AsyncIterator[RunEvent]]:
        messages = _messages(asked)
        if asked.model is asked.recipe is asked.pattern is None:
            raise RequestError(f"Say what to ask. {await self._offer()}", param="model")
        found = self._find(asked)
        if isinstance(found, Target):
            if not messages:
                raise RequestError("A model needs 'messages' or a 'prompt'.", param="messages")
            plan = plan_run(
                found,
                messages,
                params=asked.options,
                stream=stream,
                link=self._sources.link(found),
            )
            async with open_run(plan) as events:
                yield events
            return
        backend, name, model = found
        call = PatternCall(
            name=name,
            messages=messages,
            variables=asked.variables,
            model=model,
            options=asked.options,
            stream=stream,
        )
        async with backend.open_run(call) as events:
            yield events

    def _find(self, asked: _Asked) -> Target | tuple[PatternBackend, str, str | None]:
        """What answers: a model, or a pattern and the model that it is to run on."""
        if asked.recipe is not None and asked.pattern is not None:
            raise RequestError("Give a 'recipe' or a 'pattern', not both.", param="pattern")
        named = asked.recipe if asked.recipe is not None else asked.pattern
        if asked.model is not None and self._only_recipes:
            own = asked.model.startswith(f"{OWN_NAMESPACE}/")
            if named is not None or not own:
                raise RequestError(
                    "Only recipes and patterns are offered here, on their own models.",
                    param="model",
                )
        if named is not None:
            return self._find_pattern(named, asked)
        found = self._sources.directory.find(asked.model or "", known=self._sources.known())
        if isinstance(found, FoundPattern):
            return found.backend, found.pattern.name, None
        if found.provider.has_capability(found.model, "chat") is False:
            raise RequestError(
                f"{asked.model} is declared for something else than chat (serves).", param="model"
            )
        if asked.variables:
            raise RequestError(
                "'variables' belong to a recipe or pattern; a model has none.", param="variables"
            )
        return found

    def _find_pattern(self, name: str, asked: _Asked) -> tuple[PatternBackend, str, str | None]:
        catalog = self._sources.directory.catalog
        held = catalog.find(name)
        if held is None:
            near = near_names(name, [pattern.name for pattern in catalog.list()])
            raise RequestError(f"There is no recipe or pattern {name!r}.{near}", param="pattern")
        backend, pattern = held
        if asked.recipe is not None and pattern.source != "recipe":
            raise RequestError(
                f"{name!r} is no recipe but a pattern ({pattern.source}): give it as 'pattern'.",
                param="recipe",
            )
        return backend, pattern.name, asked.model

    async def _offer(self) -> str:
        """What there is, for somebody who has named nothing."""
        if not self._only_recipes:
            await self._sources.discover()
        patterns = [pattern.name for pattern in self._sources.directory.catalog.list()]
        told = [f"Recipes and patterns: {_some(patterns)}."]
        if not self._only_recipes:
            told.append(f"Models: {_some(list(self._sources.known()))}.")
        return " ".join(told)


def failed(message: str) -> dict[str, Any]:
    """The result of a call that came to nothing."""
    return {"content": [{"type": "text", "text": message}], "isError": True}


def _some(names: list[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _messages(asked: _Asked) -> tuple[Message, ...]:
    if asked.prompt is not None and asked.messages is not None:
        raise RequestError("Give 'messages' or a 'prompt', not both.", param="prompt")
    if asked.prompt is not None:
        return (UserMessage(content=asked.prompt),)
    given = asked.messages or ()
    return tuple(message_from_openai(each, f"messages[{i}]") for i, each in enumerate(given))


async def _hear(events: AsyncIterator[RunEvent], voice: Voice) -> tuple[Reply, tuple[str, ...]]:
    """The answer with the usage of the whole run, and the parameters that were left out."""
    dropped: dict[str, None] = {}
    thinking = False
    async for event in events:
        match event:
            case TurnStarted():
                thinking = False
                new = [name for name in event.dropped if name not in dropped]
                dropped.update(dict.fromkeys(new))
                if event.turn > 1:
                    await voice.step(f"turn {event.turn}")
                if new:
                    await voice.log("warning", {"event": "dropped", "parameters": new})
            case TextDelta(text=text) | RefusalDelta(text=text):
                await voice.text(text)
            case ReasoningDelta() if not thinking:
                thinking = True
                await voice.step("thinking")
            case ToolStarted():
                await voice.step(f"calling {event.name}")
                await voice.log("info", {"event": "tool_started", "tool": event.name})
            case ToolFinished():
                how = "done" if event.ok else "failed"
                await voice.step(f"{event.name}: {how}")
                level = "info" if event.ok else "warning"
                said = {"event": "tool_finished", "tool": event.name, "ok": event.ok}
                await voice.log(level, said)
            case RunFinished():
                await voice.flush()
                total = event.usage_total or event.reply.usage
                return msgspec.structs.replace(event.reply, usage=total), tuple(dropped)
            case _:
                continue
    raise ReplyError("The run ended without an answer.")


def _answered(answer: tuple[Reply, tuple[str, ...]]) -> dict[str, Any]:
    reply, dropped = answer
    text = text_of(reply.message.content) or reply.message.refusal or ""
    known: dict[str, Any] = {
        "text": text,
        "model": reply.model,
        "finish_reason": reply.finish_reason,
        "usage": usage_to_openai(reply.usage) if reply.usage is not None else None,
        "reasoning": reply.message.reasoning,
        "refusal": reply.message.refusal,
        "dropped": list(dropped) or None,
    }
    structured = {key: value for key, value in known.items() if value is not None}
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


_DESCRIPTION = (
    "Asks a model and gives its answer. Say which with 'model' (provider/model, such as "
    "ollama/qwen3), or run a 'recipe' or 'pattern' of this server by its name; the prompts of this "
    "server are these. Called with neither, it tells what there is. The question is 'prompt' or "
    "'messages'."
)
_DESCRIPTION_OF_RECIPES = (
    "Runs a 'recipe' or 'pattern' of this server by its name and gives its answer; the prompts of "
    "this server are these. Called without one, it tells what there is. The question is 'prompt' "
    "or 'messages'."
)
