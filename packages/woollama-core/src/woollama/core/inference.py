"""The façade for one model call: text in full, text as it comes, or the whole reply."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, cast

from anyio.lowlevel import current_token

from woollama.core.canonical import ChatRequest, TextDelta, request_from_openai, text_of
from woollama.core.errors import RequestError, UnknownModel
from woollama.core.providers import ModelRegistry, Target
from woollama.core.providers.keys import check_key
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.transport.base import Timeouts, Transport
from woollama.core.transport.default import default_transport
from woollama.core.turn import fetch_reply, open_turn

__all__ = ["DeltaStream", "complete", "complete_response", "complete_stream", "complete_sync"]

Messages = Iterable[Mapping[str, Any]]
_DEFAULT_TIMEOUTS = Timeouts()


class _Call:
    """One call, checked: what can be known to be wrong is raised before anything is awaited."""

    def __init__(
        self,
        model: str,
        messages: Messages,
        *,
        options: Mapping[str, Any] | None,
        params: Mapping[str, Any] | None,
        api_key: str | None,
        base_url: str | None,
        registry: ModelRegistry | None,
        transport: Transport | None,
        timeouts: Timeouts | None,
        retries: Retries | None,
        stream: bool,
    ) -> None:
        registry = registry if registry is not None else ModelRegistry.builtin()
        target = _resolve(registry, model).at(base_url)
        self.request: ChatRequest = _request(target.model, messages, options, params, stream=stream)
        # ``params`` may replace any field, the model's name among them.
        renamed = self.request.model != target.model
        self.target: Target = Target(target.provider, self.request.model) if renamed else target
        self.api_key: str | None = api_key
        self._transport = transport
        self.timeouts: Timeouts = timeouts if timeouts is not None else _DEFAULT_TIMEOUTS
        self.retries: Retries = retries if retries is not None else NO_RETRIES
        # The key is looked for now, so that a missing one is named by the call itself.
        check_key(target.provider.find_key(api_key), owner=target.provider.name)

    async def transport(self) -> Transport:
        return self._transport if self._transport is not None else await default_transport()


def _resolve(registry: ModelRegistry, model: object) -> Target:
    if not isinstance(model, str):
        raise RequestError(
            f"'model' must be a string '<provider>/<model>', not {type(model).__name__}.",
            param="model",
        )
    try:
        return registry.resolve(model)
    except UnknownModel as error:
        # Callers of the library know this fault as a 400 (ruling RU-32).
        raise RequestError(error.message, param="model", code=error.code) from None


def _request(
    model: str, messages: object, options: object, params: object, *, stream: bool
) -> ChatRequest:
    single = isinstance(messages, str | bytes | Mapping)
    if not isinstance(messages, list) and (single or not isinstance(messages, Iterable)):
        raise RequestError("'messages' must be a list of messages.", param="messages")
    if params is not None and not isinstance(params, Mapping):
        raise RequestError("'params' must be a mapping of fields.", param="params")
    body: dict[str, Any] = {"model": model, "messages": list(cast("Iterable[Any]", messages))}
    if options is not None:
        body["options"] = options
    body.update(cast("Mapping[str, Any]", params or {}))
    if body.pop("stream", stream) not in (None, stream):
        raise RequestError(
            "'stream' is no parameter here: complete_stream streams, the others do not.",
            param="stream",
        )
    return request_from_openai(body)


def complete(
    model: str,
    messages: Messages,
    *,
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    registry: ModelRegistry | None = None,
    transport: Transport | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
) -> Awaitable[str]:
    """The text of a model's reply.

    Args:
        model: ``<provider>/<model>``, split at the first slash.
        messages: OpenAI-shaped dicts ``{"role", "content", …}``, sent as they are; no system
            prompt is added.
        options: Ollama's ``options`` (``num_ctx`` …); other dialects refuse them.
        params: further fields of the request (``temperature``, ``tools`` …), over the others.
        api_key: instead of the provider's variable; empty is none.
        base_url: instead of the provider's address; the caller answers for where the key goes.
        registry: the providers; None is the built-in ones, and no file is read.
        transport: None is the running loop's own.
        timeouts: how long to wait; None is the default of ``Timeouts``.
        retries: None asks once.

    Returns:
        An awaitable for the text; ``""`` when the reply has none (a tool call, a refusal).

    Raises:
        InferenceError: by the call itself: an unknown provider (400), a missing key (400, it names
            the variable), a malformed request (400). When awaited: the provider's refusal with its
            status and payload, 502 when it cannot be reached or understood, 504 on a time limit.

    Source: core API, section 2.
    """
    call = _Call(
        model,
        messages,
        options=options,
        params=params,
        api_key=api_key,
        base_url=base_url,
        registry=registry,
        transport=transport,
        timeouts=timeouts,
        retries=retries,
        stream=False,
    )
    return _text(call)


async def _text(call: _Call) -> str:
    reply = await _reply(call)
    return text_of(reply.message.content)


async def _reply(call: _Call) -> Any:
    return await fetch_reply(
        call.target,
        call.request,
        transport=await call.transport(),
        api_key=call.api_key,
        timeouts=call.timeouts,
        retries=call.retries,
    )


def complete_response(
    model: str,
    messages: Messages,
    *,
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    registry: ModelRegistry | None = None,
    transport: Transport | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
) -> Awaitable[dict[str, Any]]:
    """The whole reply as a ``chat.completion`` dict, whatever dialect it came in.

    Arguments and errors are those of ``complete``.

    Returns:
        An awaitable for ``{"id", "object": "chat.completion", "created", "model", "choices": [{
        "index": 0, "message": {"role", "content", "reasoning"?, "refusal"?, "tool_calls"?},
        "finish_reason", "native_finish_reason"}], "usage": {…} or None}``; ``model`` is the
        provider's own name of it.
    """
    call = _Call(
        model,
        messages,
        options=options,
        params=params,
        api_key=api_key,
        base_url=base_url,
        registry=registry,
        transport=transport,
        timeouts=timeouts,
        retries=retries,
        stream=False,
    )
    return _response(call)


async def _response(call: _Call) -> dict[str, Any]:
    return (await _reply(call)).to_openai()


class DeltaStream:
    """The text of a reply as it comes: an async iterator, and an async context manager.

    ``async for`` alone works; ``async with`` closes the upstream request the moment it is left. On
    trio, which warns of iterators that are dropped, a stream that is left early wants the latter.
    """

    def __init__(self, call: _Call) -> None:
        """Made by ``complete_stream``; nothing is sent before the first ``__anext__``."""
        self._texts = _texts(call)

    def __aiter__(self) -> AsyncIterator[str]:
        """Itself."""
        return self

    async def __anext__(self) -> str:
        """The next piece of text, never empty.

        Raises:
            InferenceError: the reply could not be had, or ended early.
        """
        return await anext(self._texts)

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the upstream request."""
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the upstream request, whether or not the reply was read to its end."""
        await self._texts.aclose()


async def _texts(call: _Call) -> AsyncGenerator[str]:
    # The one place where a generator owns an open reply: DeltaStream closes it.
    async with open_turn(
        call.target,
        call.request,
        transport=await call.transport(),
        stream=True,
        api_key=call.api_key,
        timeouts=call.timeouts,
        retries=call.retries,
    ) as turn:
        async for batch in turn.batches:
            for delta in batch:
                if isinstance(delta, TextDelta):
                    yield delta.text  # noqa: ASYNC119 - DeltaStream owns it and closes it


def complete_stream(
    model: str,
    messages: Messages,
    *,
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    registry: ModelRegistry | None = None,
    transport: Transport | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
) -> DeltaStream:
    """The text of a model's reply, as it comes.

    Arguments and errors are those of ``complete``; what ``complete`` raises when awaited is raised
    by the iteration. A reply that breaks off raises after the text it had.
    """
    return DeltaStream(
        _Call(
            model,
            messages,
            options=options,
            params=params,
            api_key=api_key,
            base_url=base_url,
            registry=registry,
            transport=transport,
            timeouts=timeouts,
            retries=retries,
            stream=True,
        )
    )


def complete_sync(
    model: str,
    messages: Messages,
    *,
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    registry: ModelRegistry | None = None,
    transport: Transport | None = None,
    timeouts: Timeouts | None = None,
    retries: Retries | None = None,
) -> str:
    """``complete`` for code without an event loop; arguments and errors are the same.

    Raises:
        RuntimeError: an event loop is running in this thread: await ``complete`` there.
        InferenceError: as ``complete``.
    """
    try:
        current_token()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(
            "complete_sync cannot be called inside a running event loop: await complete(…) instead."
        )
    waiting = complete(
        model,
        messages,
        options=options,
        params=params,
        api_key=api_key,
        base_url=base_url,
        registry=registry,
        transport=transport,
        timeouts=timeouts,
        retries=retries,
    )
    return asyncio.run(cast("Coroutine[Any, Any, str]", waiting))
