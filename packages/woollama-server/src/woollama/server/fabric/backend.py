"""fabric's patterns as a pattern backend (RU-44, P-43)."""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from woollama.core.canonical import (
    Assembly,
    Finish,
    Reply,
    RunEvent,
    RunFinished,
    Start,
    TextDelta,
    TurnStarted,
)
from woollama.core.errors import (
    InferenceError,
    ProviderError,
    ReplyError,
    TransportError,
    UnknownPattern,
    WoollamaError,
)
from woollama.core.exchange import read_body
from woollama.core.patterns import Pattern, PatternCall
from woollama.core.transport import Timeouts, WireResponse
from woollama.core.turn import new_id
from woollama.core.wire.codec import WireRequest
from woollama.server.fabric.call import FabricCall, read_call, read_variables
from woollama.server.fabric.client import SLOW, FabricClient
from woollama.server.fabric.config import FabricConfig
from woollama.server.fabric.expansion import check_expansion, tokens_without_value
from woollama.server.fabric.faults import missing_variables, reply_fault
from woollama.server.fabric.images import read_image
from woollama.server.fabric.library import Library
from woollama.server.fabric.stream import ChatDecoder
from woollama.server.fabric.vendors import resolve_model
from woollama.server.fabric.vision import Program, check_settings, run_program
from woollama.server.fabric.wire import (
    FabricModels,
    apply_request,
    chat_request,
    decode_models,
    decode_text,
    models_request,
    pattern_request,
)

__all__ = ["FabricBackend"]

_log = logging.getLogger(__name__)

_LIMIT_ERROR_BYTES = 1024 * 1024


class FabricBackend:
    """See ``PatternBackend``."""

    def __init__(
        self, config: FabricConfig, client: FabricClient, library: Library, program: Program
    ) -> None:
        """Asks nobody yet.

        Args:
            config: the section.
            client: speaks to fabric's server.
            library: knows the names.
            program: runs what has an image.
        """
        self._config = config
        self._client = client
        self._library = library
        self._program = program
        self._models = FabricModels()
        self._timeouts = Timeouts(
            connect=5.0, first_byte=config.timeout_s, between=config.timeout_s, whole=None
        )

    @property
    def id(self) -> str:
        """``fabric``."""
        return "fabric"

    def list(self) -> Sequence[Pattern]:
        """The names that are known now; their variables are not, fabric lists none."""
        return tuple(self._pattern(name) for name in self._library.names())

    def find(self, name: str) -> Pattern | None:
        """The pattern of this name, if it is known now."""
        return self._pattern(name) if self._library.has(name) else None

    def _pattern(self, name: str) -> Pattern:
        return Pattern(name=name, source=self.id, model=self._config.default_model)

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        """The pattern as fabric fills it in, the input where fabric places it.

        Raises:
            UnknownPattern: there is none of this name.
            RequestError: a variable is missing, or would be expanded once more.
            InferenceError: fabric says no, or nothing.
        """
        self._need(name)
        return await self._fill(name, read_variables(variables), input or "")

    async def _fill(self, name: str, variables: Mapping[str, str], input: str) -> str:
        await self._check(name, variables)

        def ask(base_url: str) -> WireRequest:
            return apply_request(base_url, name, input=input, variables=variables)

        try:
            return decode_text(await self._client.fetch(ask, pattern=name))
        except ProviderError as error:
            raise await self._explained(error, name, variables) from error

    @asynccontextmanager
    async def open_run(self, call: PatternCall) -> AsyncGenerator[AsyncIterator[RunEvent]]:
        """See ``PatternBackend.open_run``.

        Raises:
            UnknownPattern: there is none of this name.
            RequestError: the call cannot be done as asked.
            InferenceError: fabric says no, or nothing.
        """
        self._need(call.name)
        asked = read_call(
            call,
            default_model=self._config.default_model,
            drop_params=self._config.drop_params,
        )
        if asked.image is not None:
            # Everything is known before the first event: the program gives its answer in one.
            reply = await self._see(asked, asked.image)
            yield _replay(reply, asked.dropped, stream=call.stream)
            return
        await self._check(asked.pattern, asked.variables)
        vendor, model = await self._resolve(asked.model)

        def ask(base_url: str) -> WireRequest:
            return chat_request(
                base_url,
                pattern=asked.pattern,
                input=asked.text,
                variables=asked.variables,
                vendor=vendor,
                model=model,
                settings=asked.settings,
            )

        async with self._client.open(ask, timeouts=self._timeouts) as response:
            if response.status != 200:
                body = await read_body(response, limit_bytes=_LIMIT_ERROR_BYTES)
                fault = reply_fault(asked.pattern, response.status, body)
                raise await self._explained(fault, asked.pattern, asked.variables)
            events = self._events(asked, response, stream=call.stream)
            try:
                yield events
            finally:
                await events.aclose()

    async def _events(
        self, asked: FabricCall, response: WireResponse, *, stream: bool
    ) -> AsyncGenerator[RunEvent]:
        """The events of one answer; deltas only when they are asked for."""
        yield TurnStarted(1, asked.dropped)
        decoder = ChatDecoder(asked.pattern, new_id=new_id, now=time.time)
        assembly = Assembly()
        try:
            async for chunk in response.chunks:
                for delta in decoder.feed(chunk):
                    assembly.add(delta)
                    if stream:
                        yield delta
                if decoder.done:
                    break
            for delta in decoder.finish():
                assembly.add(delta)
                if stream:
                    yield delta
        except ProviderError as error:
            raise await self._explained(error, asked.pattern, asked.variables) from error
        except TransportError as error:
            raise await self._client.broken(error) from error.__cause__
        yield _finished(assembly.reply())

    async def _see(self, asked: FabricCall, url: str) -> Reply:
        """The reply to a call with an image, by fabric's program."""
        image = read_image(url)
        check_settings(asked.settings)
        prompt = await self._fill(asked.pattern, asked.variables, asked.text)
        vendor, model = await self._resolve(asked.model)
        text = await run_program(
            self._program,
            prompt,
            image,
            vendor=vendor,
            model=model,
            settings=asked.settings,
        )
        assembly = Assembly()
        for delta in (Start(new_id(), None, int(time.time())), TextDelta(text), Finish("stop")):
            assembly.add(delta)
        return assembly.reply()

    def _need(self, name: str) -> None:
        if not self._library.has(name):
            raise UnknownPattern(f"There is no pattern {name!r}.", param="name")

    async def _check(self, name: str, variables: Mapping[str, str]) -> None:
        """Refuses values that fabric would read again in this pattern."""
        if variables:
            check_expansion(name, await self._text(name), variables)

    async def _text(self, name: str) -> str:
        body = await self._client.fetch(
            lambda base_url: pattern_request(base_url, name), pattern=name
        )
        return decode_text(body)

    async def _explained(
        self, error: WoollamaError, name: str, variables: Mapping[str, str]
    ) -> WoollamaError:
        """A failure as the missing variable that it comes from, whatever fabric's language."""
        if not isinstance(error, ProviderError) or error.peer_status in {400, 401}:
            return error
        try:
            missing = tokens_without_value(await self._text(name), variables)
        except InferenceError:
            return error
        return missing_variables(name, *missing) if missing else error

    async def _resolve(self, model: str) -> tuple[str, str]:
        """Vendor and model; asks fabric for its vendors until it has the one that is meant."""
        if "/" not in model and "|" not in model:
            return "", model
        vendor, name = resolve_model(model, self._models.vendors)
        if vendor not in self._models.vendors:
            try:
                body = await self._client.fetch(models_request, timeouts=SLOW)
                self._models = decode_models(body)
            except (ProviderError, ReplyError) as error:
                _log.warning("fabric's models cannot be listed: %s", error)
            vendor, name = resolve_model(model, self._models.vendors)
        return vendor, name


def _finished(reply: Reply) -> RunFinished:
    return RunFinished(reply=reply, usage_total=reply.usage, replies=(reply,))


async def _replay(
    reply: Reply, dropped: tuple[str, ...], *, stream: bool
) -> AsyncGenerator[RunEvent]:
    yield TurnStarted(1, dropped)
    if stream:
        text = reply.message.content if isinstance(reply.message.content, str) else ""
        yield Start(reply.id, None, reply.created)
        yield TextDelta(text)
        yield Finish("stop")
    yield _finished(reply)
