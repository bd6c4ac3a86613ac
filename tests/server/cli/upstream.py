"""A provider that says what a test wants, piece by piece."""

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import anyio
from anyio import to_thread

from woollama.core.testing.upstream import Exchange, chunked, head, whole

NAMES = ("alpha", "beta")


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    """One event of a chat stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**body, 'choices': [choice]})}\n\n".encode()


def completion(message: Mapping[str, Any], finish: str = "stop") -> bytes:
    """A whole reply."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish,
    }
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return whole(json.dumps({**body, "choices": [choice]}).encode())


def refusal(status: int, message: str) -> bytes:
    """An error as OpenAI has it."""
    return whole(json.dumps({"error": {"message": message}}).encode(), status=status)


class Speaker:
    """Answers every question with the same pieces, streamed when a stream is asked for.

    Attributes:
        bodies: what was asked, decoded.
        keys: the ``Authorization`` of each request.
        release: the pieces behind the first one wait for it, when ``holds`` is set.
        gone: set when the client has left before the end.
    """

    def __init__(
        self,
        *pieces: Mapping[str, Any] | str,
        finish: str = "stop",
        holds: bool = False,
        cut: bool = False,
    ) -> None:
        self._deltas = [{"content": piece} if isinstance(piece, str) else piece for piece in pieces]
        self._finish = finish
        self._holds = holds
        self._cut = cut
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.release = threading.Event()
        self.gone = threading.Event()

    async def __call__(self, exchange: Exchange) -> None:
        self.keys.append(exchange.request.headers.get("authorization"))
        if exchange.request.method == "GET":
            data = [{"id": name, "object": "model"} for name in NAMES]
            await exchange.send(whole(json.dumps({"object": "list", "data": data}).encode()))
            return
        body = json.loads(exchange.request.body)
        self.bodies.append(body)
        if body.get("stream"):
            await self._stream(exchange)
        else:
            await exchange.send(completion(self._message(), self._finish))

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"content": None}
        for delta in self._deltas:
            for key, value in delta.items():
                before = message.get(key)
                message[key] = before + value if isinstance(before, str) else value
        return message

    async def _stream(self, exchange: Exchange) -> None:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await exchange.send(head(200, headers))
        first, *others = self._deltas
        await self._say(exchange, [chunk(first)])
        if self._holds and not await self._held(exchange):
            return
        await self._say(exchange, [chunk(delta) for delta in others])
        if self._cut:
            await exchange.close()
            return
        await self._say(exchange, [chunk({}, self._finish), b"data: [DONE]\n\n"])
        await exchange.send(chunked([]))

    async def _say(self, exchange: Exchange, events: Iterable[bytes]) -> None:
        for event in events:
            await exchange.send(chunked([event], end=False))

    async def _held(self, exchange: Exchange) -> bool:
        """Waits for the test, or for the client to leave."""
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await exchange.gone.wait()
                self.gone.set()
                self.release.set()

            tasks.start_soon(watch)
            await to_thread.run_sync(self.release.wait, abandon_on_cancel=True)
            tasks.cancel_scope.cancel()
        return not self.gone.is_set()
