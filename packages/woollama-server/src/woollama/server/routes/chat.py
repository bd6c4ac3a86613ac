"""``POST /v1/chat/completions``: the hot path, a bare ASGI application.

Same dialect on both sides: bytes pass. Another dialect: deltas are written as chunks. Either way
an error before the first event is a JSON error with its status, and later a last event.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from starlette.types import Receive, Scope, Send

from woollama.core.canonical import Assembly, Delta, request_from_openai
from woollama.core.directory import FoundPattern
from woollama.core.errors import CannotEncode, InferenceError, ProviderError, RequestError
from woollama.core.exchange import name_provider, read_body, read_out
from woollama.core.patterns import PatternCall
from woollama.core.providers import Target
from woollama.core.relay import (
    RawBody,
    chat_fields,
    dropped_fields,
    open_relay,
    raw_body,
    whole_body,
)
from woollama.core.transport import WireResponse
from woollama.core.turn import decoded, open_turn
from woollama.core.wire.faults import kept_headers
from woollama.core.wire.passage import ChatPassage, check_completion
from woollama.core.wire.refusals import asks_for_nothing
from woollama.server.leaving import call_while_connected, while_connected
from woollama.server.logs import RequestLog, request_log
from woollama.server.services import Services
from woollama.server.surface.chat import DROPPED_HEADER, ChunkWriter, completion
from woollama.server.surface.client import EventStream, read_request, send_bytes
from woollama.server.surface.fields import flag_field, text_field
from woollama.server.surface.pattern_calls import answer_run
from woollama.server.surface.runs import options_of

__all__ = ["PATH", "ChatRoute"]

PATH = "/v1/chat/completions"
_BELOW_BASE = "/chat/completions"
_DIALECT = "compatible"
_LIMIT_REPLY_BYTES = 64 * 1024 * 1024
_OF_THE_CALL = frozenset({"model", "messages", "stream", "stream_options"})
_OF_THE_RECIPE = ("tools", "tool_choice", "functions", "function_call")


class ChatRoute:
    """The ASGI application of this route."""

    def __init__(self, services: Services) -> None:
        """Serves what ``services`` know."""
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request.

        Raises:
            WoollamaError: what went wrong before the reply began.
        """
        body = await read_request(receive, limit_bytes=self._services.body_limit_bytes)
        fields = raw_body(body)
        model, stream = text_field(fields, "model"), flag_field(fields, "stream")
        log = request_log(scope)
        log.model = model
        found = self._services.directory.find(model, known=self._services.offers.names())
        if isinstance(found, FoundPattern):
            with while_connected(scope, receive):
                await self._run(found, body, send, log)
            return
        log.provider = found.provider.name
        if found.provider.has_capability(found.model, "chat") is False:
            raise RequestError(
                f"{model} is declared for something else than chat (serves).", param="model"
            )
        with call_while_connected(scope, receive):
            call = _Call(self._services, found, send, log)
            if found.relays(_DIALECT):
                await call.relay(fields, stream=stream)
            else:
                await call.translate(body, stream=stream)

    async def _run(self, found: FoundPattern, body: bytes, send: Send, log: RequestLog) -> None:
        """A recipe or pattern as a model: its prompt, its tools, the client's conversation."""
        fields = whole_body(body)
        request = request_from_openai(fields)
        for name in _OF_THE_RECIPE:
            if not asks_for_nothing(name, fields.pop(name, None)):
                raise CannotEncode(
                    f"{request.model!r} brings its own tools; {name!r} cannot be given to it.",
                    param=name,
                    hint="Leave it out, or ask the model itself.",
                )
        call = PatternCall(
            name=found.pattern.name,
            messages=request.messages,
            options=options_of(fields, taken=_OF_THE_CALL),
            stream=request.stream,
        )
        options = request.params.stream_options or {}
        await answer_run(
            found.backend,
            call,
            send,
            log,
            shown_model=request.model,
            reasoning=self._services.reasoning,
            include_usage=options.get("include_usage") is True,
        )


class _Call:
    """One chat request to one target, by either way."""

    def __init__(self, services: Services, target: Target, send: Send, log: RequestLog) -> None:
        self._services = services
        self._target = target
        self._send = send
        self._log = log
        self._how: dict[str, Any] = {
            "transport": services.transport_for(target.provider),
            "timeouts": services.timeouts,
            "retries": services.retries,
        }

    async def relay(self, fields: RawBody, *, stream: bool) -> None:
        """Bytes pass (RU-15)."""
        sent = chat_fields(self._target, fields)
        wants_usage = stream and _wants_usage(fields)
        try:
            async with open_relay(self._target, sent, _BELOW_BASE, **self._how) as response:
                kept = kept_headers(response.headers)
                headers = _with_dropped(kept, dropped_fields(self._target, fields))
                if stream:
                    await self._relay_stream(response, headers, include_usage=wants_usage)
                else:
                    await self._relay_whole(response, headers)
        except ProviderError as error:
            await self._refused(error)

    async def _refused(self, error: ProviderError) -> None:
        # The peer's own words, when they are what clients of this API read.
        payload = error.payload
        if not isinstance(payload, dict) or error.peer_status is None:
            raise error
        inner = cast("dict[str, Any]", payload).get("error")
        if not isinstance(inner, dict) or not cast("dict[str, Any]", inner).get("message"):
            raise error
        headers = dict(error.headers)
        if error.hint:
            headers["x-woollama-hint"] = error.hint
        body = msgspec.json.encode(payload)
        await send_bytes(self._send, body, headers=headers, status=error.status)

    async def _relay_whole(self, response: WireResponse, headers: Mapping[str, str]) -> None:
        body = await read_body(response, limit_bytes=_LIMIT_REPLY_BYTES)
        if body.lstrip()[:5] == b"data:":
            batches = decoded(self._target, _Read(response, _once(body)))
            await self._answer(batches, headers)
            return
        head = check_completion(body)
        if isinstance(head.usage, dict):
            usage = cast("dict[str, Any]", head.usage)
            self._log.count(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        await send_bytes(self._send, body, headers=headers)

    async def _relay_stream(
        self, response: WireResponse, headers: Mapping[str, str], *, include_usage: bool
    ) -> None:
        with EventStream(self._send, headers) as stream:
            try:
                chunks = response.chunks
                head = await _first(chunks)
                if head.lstrip()[:1] in {b"{", b"["}:
                    # A server that does not stream: its one object becomes events (C-14).
                    batches = decoded(self._target, _Read(response, _again(head, chunks)))
                    await self._write(stream, batches, include_usage=include_usage)
                else:
                    await self._pass(stream, head, chunks)
            except InferenceError as error:
                name_provider(error, self._target)
                if not stream.begun:
                    raise
                self._log.fail(error)
                await stream.fail(error)

    async def _pass(self, stream: EventStream, head: bytes, chunks: AsyncIterator[bytes]) -> None:
        passage = ChatPassage()
        chunk = head
        while True:
            out = passage.feed(chunk)
            if out:
                await stream.write(out)
            if passage.fault is not None:
                raise passage.fault
            if passage.ended:
                break
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                break
        rest = passage.finish()
        if passage.fault is not None:
            raise passage.fault
        await stream.end(rest)
        if passage.ended:
            # Behind its end: then the connection serves the next request.
            await read_out(chunks)

    async def translate(self, body: bytes, *, stream: bool) -> None:
        """The request in the target's dialect, its deltas in ours."""
        request = request_from_openai(whole_body(body))
        options = request.params.stream_options or {}
        async with open_turn(self._target, request, stream=stream, **self._how) as turn:
            headers = _with_dropped(turn.headers, turn.dropped)
            if not stream:
                await self._answer(turn.batches, headers)
                return
            with EventStream(self._send, headers) as events:
                try:
                    wants = options.get("include_usage") is True
                    await self._write(events, turn.batches, include_usage=wants)
                except InferenceError as error:
                    if not events.begun:
                        raise
                    self._log.fail(error)
                    await events.fail(error)

    async def _write(
        self,
        stream: EventStream,
        batches: AsyncIterator[tuple[Delta, ...]],
        *,
        include_usage: bool,
    ) -> None:
        writer = ChunkWriter(
            model=self._target.model,
            reasoning=self._services.reasoning,
            include_usage=include_usage,
        )
        async for deltas in batches:
            data = writer.encode(deltas)
            if data:
                await stream.write(data)
        if writer.usage is not None:
            self._log.count(writer.usage.prompt_tokens, writer.usage.completion_tokens)
        await stream.end()

    async def _answer(
        self, batches: AsyncIterator[tuple[Delta, ...]], headers: Mapping[str, str]
    ) -> None:
        assembly = Assembly()
        async for deltas in batches:
            for delta in deltas:
                assembly.add(delta)
        reply = assembly.reply()
        if reply.usage is not None:
            self._log.count(reply.usage.prompt_tokens, reply.usage.completion_tokens)
        body = completion(reply, reasoning=self._services.reasoning)
        await send_bytes(self._send, body, headers=headers)


def _with_dropped(headers: Mapping[str, str], dropped: Sequence[str]) -> Mapping[str, str]:
    return {**headers, DROPPED_HEADER: ", ".join(dropped)} if dropped else headers


def _wants_usage(fields: RawBody) -> bool:
    raw = fields.get("stream_options")
    try:
        options: Any = msgspec.json.decode(raw) if raw is not None else None
    except (msgspec.DecodeError, RecursionError):
        return False
    return (
        isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True
    )


class _Read:
    """A reply of which something has been read already."""

    def __init__(self, response: WireResponse, chunks: AsyncIterator[bytes]) -> None:
        self.status = response.status
        self.headers = response.headers
        self.chunks = chunks


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _first(chunks: AsyncIterator[bytes]) -> bytes:
    """Everything up to the first chunk that is not only white space."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if head.strip():
            break
    return head


async def _again(head: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """``head``, which was read, and what follows."""
    if head:
        yield head
    async for chunk in chunks:
        yield chunk
