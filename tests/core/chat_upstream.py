"""A Chat Completions server on loopback, scripted: what it says, and how it breaks off."""

import json
from collections.abc import Mapping
from typing import Any

from woollama.core.testing.upstream import Exchange, Script, chunked, head, whole

HI = [{"role": "user", "content": "hi"}]
STREAM = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}


def completion(content: Any = "Paris", **fields: Any) -> dict[str, Any]:
    """A whole reply; `fields` replace its top level."""
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        **fields,
    }


def event(payload: Any) -> bytes:
    """One event of a stream."""
    data = payload if isinstance(payload, str) else json.dumps(payload)
    return f"data: {data}\n\n".encode()


def delta(text: str | None = None, *, finish: str | None = None) -> bytes:
    """One chunk of a streamed reply."""
    said = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return event({"id": "c", "created": 1, "model": "m-2026", "choices": [choice]})


DONE = event("[DONE]")


def says(
    body: Any = None, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Script:
    """Answers every request with one JSON body, or with bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body or completion()).encode()

    async def script(exchange: Exchange) -> None:
        await exchange.send(whole(content, status=status, headers=headers or {}))

    return script


def streams(*events: bytes, end: bool = True) -> Script:
    """Answers every request with these events; without `end` the connection breaks off then."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers=STREAM))
        for one in events:
            await exchange.send(chunked([one], end=False))
        if end:
            await exchange.send(chunked([]))
        else:
            await exchange.close()

    return script


def body_of(exchange: Exchange) -> Any:
    """What a request asked for."""
    return json.loads(exchange.request.body)
