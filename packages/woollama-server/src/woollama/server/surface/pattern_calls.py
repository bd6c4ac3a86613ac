"""A run of a pattern, answered to a client: whole or as events, by whatever route it came."""

from collections.abc import Mapping

from starlette.types import Send

from woollama.core.canonical import Reply
from woollama.core.errors import InferenceError
from woollama.core.patterns import PatternBackend, PatternCall
from woollama.server.logs import RequestLog
from woollama.server.surface.chat import DROPPED_HEADER, completion
from woollama.server.surface.client import EventStream, send_bytes
from woollama.server.surface.runs import RunWriter, finished_reply

__all__ = ["answer_run"]


async def answer_run(
    backend: PatternBackend,
    call: PatternCall,
    send: Send,
    log: RequestLog,
    *,
    shown_model: str,
    reasoning: str,
    include_usage: bool,
) -> None:
    """Runs ``call`` and sends its answer as Chat Completions has it.

    Args:
        backend: whose pattern it is.
        call: what to run; its ``stream`` says how to answer.
        send: to the client.
        log: takes the token counts and a late failure.
        shown_model: the model's name where the provider gives none.
        reasoning: the key of the thinking.
        include_usage: whether a usage chunk was asked for.

    Raises:
        InferenceError: what went wrong before the first event left.
    """
    async with backend.open_run(call) as events:
        if not call.stream:
            reply, dropped = await finished_reply(events)
            _count(log, reply)
            body = completion(reply, reasoning=reasoning, model=shown_model)
            await send_bytes(send, body, headers=_headers(dropped))
            return
        writer = RunWriter(model=shown_model, reasoning=reasoning, include_usage=include_usage)
        headers: dict[str, str] = {}
        with EventStream(send, headers) as stream:
            try:
                async for event in events:
                    data = writer.encode(event)
                    if not stream.begun:
                        headers.update(_headers(writer.dropped))
                    if data:
                        await stream.write(data)
                _count(log, writer.reply)
                await stream.end()
            except InferenceError as error:
                if not stream.begun:
                    raise
                log.fail(error)
                await stream.fail(error)


def _headers(dropped: tuple[str, ...]) -> Mapping[str, str]:
    return {DROPPED_HEADER: ", ".join(dropped)} if dropped else {}


def _count(log: RequestLog, reply: Reply | None) -> None:
    if reply is not None and reply.usage is not None:
        log.count(reply.usage.prompt_tokens, reply.usage.completion_tokens)
