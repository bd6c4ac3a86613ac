"""One request to a target and the deltas of its reply."""

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from woollama.core.canonical import Assembly, ChatRequest, Delta, Reply
from woollama.core.errors import InferenceError, TruncatedReply
from woollama.core.exchange import name_provider, open_reply, read_out
from woollama.core.providers import Target
from woollama.core.retries import NO_RETRIES, Retries, enter_with_retries
from woollama.core.transport.base import Timeouts, Transport, WireResponse
from woollama.core.wire.faults import kept_headers
from woollama.core.wire.think_tags import ThinkTagDecoder

__all__ = ["Turn", "decoded", "fetch_reply", "new_id", "open_turn"]


def new_id() -> str:
    """A fresh id of 24 letters and digits."""
    return os.urandom(12).hex()


class Turn:
    """A reply under way.

    Attributes:
        batches: its deltas as they come, those of one read together; iterate them once, inside the
            context.
        headers: the reply headers worth passing on.
        dropped: the parameters that were left out because the provider's ``drop_params`` says so.
    """

    def __init__(
        self,
        batches: AsyncIterator[tuple[Delta, ...]],
        headers: Mapping[str, str],
        dropped: tuple[str, ...],
    ) -> None:
        """Made by ``open_turn``."""
        self.batches = batches
        self.headers = headers
        self.dropped = dropped

    @property
    async def deltas(self) -> AsyncIterator[Delta]:
        """The deltas of the batches, one by one."""
        async for batch in self.batches:
            for delta in batch:
                yield delta


def open_turn(
    target: Target,
    request: ChatRequest,
    *,
    transport: Transport,
    stream: bool,
    api_key: str | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - an immutable value
    retries: Retries = NO_RETRIES,
) -> AbstractAsyncContextManager[Turn]:
    """Asks ``target``; leaving the context closes the upstream request.

    Args:
        target: who is asked.
        request: what; its ``model`` is replaced by the target's.
        transport: how the bytes travel.
        stream: whether the provider is asked to send the reply as it comes.
        api_key: the caller's own key.
        timeouts: how long to wait.
        retries: how often to ask again before the first byte.

    Raises:
        InferenceError: by the call itself, what cannot be asked; on entry, whatever went wrong
            before the reply began; while iterating, whatever ended it early.
    """
    wire = target.authorize(target.encode(request, stream=stream), api_key)
    return _Opening(
        target,
        wire.dropped,
        lambda: open_reply(target, wire, transport=transport, timeouts=timeouts),
        retries,
    )


class _Opening(AbstractAsyncContextManager[Turn]):
    def __init__(
        self,
        target: Target,
        dropped: tuple[str, ...],
        opener: Callable[[], AbstractAsyncContextManager[WireResponse]],
        retries: Retries,
    ) -> None:
        self._target = target
        self._dropped = dropped
        self._opener = opener
        self._retries = retries

    async def __aenter__(self) -> Turn:
        self._exchange, response = await enter_with_retries(self._opener, self._retries)
        self._batches = decoded(self._target, response)
        return Turn(self._batches, kept_headers(response.headers), self._dropped)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            await self._batches.aclose()
        finally:
            handled = await self._exchange.__aexit__(kind, error, trace)
        return handled


async def decoded(target: Target, response: WireResponse) -> AsyncGenerator[tuple[Delta, ...]]:
    """The deltas of a reply in the target's dialect, those of one read together.

    Raises:
        InferenceError: the reply holds an error, is not understood, or ended early.
    """
    decoder = target.dialect.codec.decoder(new_id=new_id, now=time.time)
    if target.provider.think_tags:
        decoder = ThinkTagDecoder(decoder)
    try:
        async for chunk in response.chunks:
            deltas = decoder.feed(chunk)
            if deltas:
                yield deltas
            if decoder.done:
                break
        yield decoder.finish()
    except InferenceError as error:
        _complete(error, target, response)
        raise
    if decoder.done:
        await read_out(response.chunks)


def _complete(error: InferenceError, target: Target, response: WireResponse) -> None:
    """What an error inside a reply cannot know: whose it is, and the reply's headers."""
    if isinstance(error, TruncatedReply):
        # with the content type it came under, without its body.
        kind = response.headers.get("content-type", "no content type")
        error.hint = f"Provider {target.provider.name!r} sent it as {kind}."
    name_provider(error, target)
    kept = kept_headers(response.headers)
    error.headers = {**kept, **error.headers}
    error.request_id = error.request_id or kept.get("x-request-id") or kept.get("request-id")


async def fetch_reply(
    target: Target,
    request: ChatRequest,
    *,
    transport: Transport,
    api_key: str | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - an immutable value
    retries: Retries = NO_RETRIES,
) -> Reply:
    """The whole reply, released only after a good end (A-16).

    Raises:
        InferenceError: whatever went wrong.
    """
    assembly = Assembly()
    async with open_turn(
        target,
        request,
        transport=transport,
        stream=False,
        api_key=api_key,
        timeouts=timeouts,
        retries=retries,
    ) as turn:
        async for batch in turn.batches:
            for delta in batch:
                assembly.add(delta)
    return assembly.reply()
