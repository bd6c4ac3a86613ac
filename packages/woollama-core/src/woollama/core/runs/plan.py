"""The plan of a run: everything that can be known to be wrong before anything is sent."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from woollama.core.canonical import (
    NOTHING,
    ChatRequest,
    Message,
    SystemMessage,
    Value,
    message_from_openai,
    request_from_openai,
)
from woollama.core.errors import CannotEncode, NotBuilt, RequestError
from woollama.core.providers import ModelRegistry, Target
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.runs.toolset import Toolset, ToolSource, offer_tools
from woollama.core.tools import Renderer, ToolSpec
from woollama.core.transport.base import Timeouts, Transport

__all__ = ["BeforeTool", "Link", "RunLimits", "RunPlan", "plan_run", "resolve_inferencer"]

BeforeTool = Callable[[ToolSpec, dict[str, Any]], Any | Awaitable[Any]]
"""Asked before each call (promise P-4): None lets it run, a ``ToolResult`` or text takes its place.

Text is a refusal. It may be ``async``; what it raises is a refusal too.
"""

DEFAULT_MAX_TURNS = 8

_RESERVED = frozenset({"model", "messages", "stream", "tools"})
_PLUGINS = frozenset({"claude-code", "claude-agent"})


class RunLimits(Value, frozen=True, kw_only=True):
    """How long a run may go on.

    Attributes:
        max_turns: requests in all.
        tool_timeout_s: for one tool call; passing it is a failed result. None is without end.
        run_timeout_s: for everything together; passing it ends the run. None is without end.
    """

    max_turns: int = DEFAULT_MAX_TURNS
    tool_timeout_s: float | None = None
    run_timeout_s: float | None = None


class Link(Value, frozen=True, kw_only=True):
    """How a run reaches its provider; the key never shows in a ``repr``."""

    transport: Transport | None = None
    api_key: str | None = None
    timeouts: Timeouts = Timeouts()
    retries: Retries = NO_RETRIES

    def __repr__(self) -> str:
        """Without the key."""
        return "Link(…)"


class RunPlan(Value, frozen=True, kw_only=True):
    """A run that is ready to be opened.

    Attributes:
        target: who is asked.
        request: the first request; its messages are where the history begins.
        toolset: what may be called.
        stream: whether the provider is asked to send each reply as it comes, and deltas are given.
        limits: when it is over at the latest.
        renderers: tried before our own, for every tool result.
        before_tool: may refuse a call.
        link: transport, key, time limits of a request, retries.
    """

    target: Target
    request: ChatRequest
    toolset: Toolset
    stream: bool = False
    limits: RunLimits = RunLimits()
    renderers: tuple[Renderer, ...] = ()
    before_tool: BeforeTool | None = None
    link: Link = Link()


def resolve_inferencer(registry: ModelRegistry, name: str) -> Target:
    """The target of a recipe's inferencer.

    Raises:
        NotBuilt: it belongs to a plugin that is not here (501, RU-48).
        UnknownModel: no provider has this name.
        RequestError: the name has no model.
    """
    provider = name.partition("/")[0]
    if provider in _PLUGINS and registry.get(provider) is None:
        raise NotBuilt(
            f"{name!r} is not built into this version: {provider!r} is the name of a plugin of "
            "woollama-server. Give the recipe the model of a provider.",
            param="inferencer",
        )
    return registry.resolve(name)


def plan_run(
    target: Target,
    messages: Iterable[Mapping[str, Any] | Message],
    *,
    system: str | None = None,
    allow: Sequence[str] | None = (),
    tools: ToolSource | None = None,
    params: Mapping[str, Any] | None = None,
    stream: bool = False,
    limits: RunLimits = RunLimits(),  # noqa: B008 - an immutable value
    renderers: Iterable[Renderer] = (),
    before_tool: BeforeTool | None = None,
    link: Link = Link(),  # noqa: B008 - an immutable value
) -> RunPlan:
    """Checks everything that can be checked now, and puts the first request together.

    Args:
        target: who is asked.
        messages: the conversation, canonical or in OpenAI's shape.
        system: sent before it, as it is; None and ``""`` send none.
        allow: the tools' own names that may be called.
        tools: who has them.
        params: fields of every request; ``num_ctx`` is Ollama's ``options.num_ctx``.
        stream: see ``RunPlan``.
        limits: see ``RunPlan``.
        renderers: see ``RunPlan``.
        before_tool: see ``RunPlan``.
        link: see ``RunPlan``.

    Raises:
        RequestError: what is wrong with the messages, the tools or the parameters.
        ConfigError: a key is needed and there is none.
        InferenceError: the tools could not be had (500).
    """
    # The key is looked for now, so that a missing one is named before anything else happens.
    target.provider.headers(link.api_key)
    if limits.max_turns < 1:
        raise RequestError("'max_turns' must be at least 1.", param="max_turns")
    fields = _fields(params, target)
    conversation = _conversation(system, messages)
    toolset = offer_tools(tools, _allowed(allow))
    body = {**fields, "model": target.model, "messages": (), "tools": toolset.schemas}
    request = msgspec.structs.replace(
        request_from_openai(body), messages=conversation, stream=stream
    )
    return RunPlan(
        target=target,
        request=request,
        toolset=toolset,
        stream=stream,
        limits=limits,
        renderers=tuple(renderers),
        before_tool=before_tool,
        link=link,
    )


def _conversation(system: object, messages: object) -> tuple[Message, ...]:
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | Mapping):
        kind = type(cast("object", messages)).__name__
        raise RequestError(f"'messages' must be a list of messages, not {kind}.", param="messages")
    if system is not None and not isinstance(system, str):
        raise RequestError(f"'system' must be text, not {type(system).__name__}.", param="system")
    own = (SystemMessage(content=system),) if system else ()
    said = (_message(each, i) for i, each in enumerate(cast("Iterable[Any]", messages)))
    return (*own, *said)


def _message(given: Any, place: int) -> Message:
    # A canonical message comes from a surface that has read it already.
    return given if isinstance(given, Message) else message_from_openai(given, f"messages[{place}]")


def _allowed(allow: object) -> tuple[str, ...]:
    if allow is None:
        return ()
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise RequestError("'tools' of a recipe must be a list of names.", param="tools")
    names = tuple(dict.fromkeys(cast("Iterable[Any]", allow)))
    if not all(isinstance(name, str) for name in names):
        raise RequestError("'tools' of a recipe must be a list of names.", param="tools")
    return names


def _fields(params: object, target: Target) -> dict[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise RequestError(
            f"'params' must be an object, not {type(params).__name__}.", param="params"
        )
    fields = dict(cast("Mapping[str, Any]", params))
    extra = fields.get("extra_body")
    inside = cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else NOTHING
    taken = sorted(_RESERVED & (fields.keys() | inside.keys()))
    if taken:
        raise RequestError(
            f"{', '.join(map(repr, taken))}: the run itself decides this, parameters cannot.",
            param=taken[0],
        )
    return _with_num_ctx(fields, target)


def _with_num_ctx(fields: dict[str, Any], target: Target) -> dict[str, Any]:
    """``num_ctx`` in its place among Ollama's options (promise P-3)."""
    size = fields.pop("num_ctx", None)
    if size is None:
        return fields
    if target.dialect.family != "ollama":
        raise CannotEncode(
            f"{target.name} is asked in the dialect {target.dialect.name!r}, which has no words "
            "for 'num_ctx'.",
            param="num_ctx",
            hint="Only a provider of kind 'ollama' takes it.",
        )
    options: object = fields.get("options") or NOTHING
    if not isinstance(options, Mapping):
        raise RequestError("'options' must be an object.", param="options")
    given = cast("Mapping[str, Any]", options)
    if given.get("num_ctx", size) != size:
        raise RequestError(
            f"'num_ctx' is {size} and 'options.num_ctx' is {given['num_ctx']}: keep one.",
            param="num_ctx",
        )
    return {**fields, "options": {**given, "num_ctx": size}}
