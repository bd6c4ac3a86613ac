"""Strict fakes: providers that refuse what the real ones refuse, without any I/O.

A fake turns a request into a reply. ``FakeTransport`` puts it in the place of the network;
``woollama.core.testing.upstream`` serves it on a loopback port.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from woollama.core.canonical import NOTHING, AssistantMessage, Reply, ToolCall, Usage, Value
from woollama.core.transport.base import Timeouts, WireResponse
from woollama.core.wire.codec import WireRequest

__all__ = [
    "Fake",
    "FakeReply",
    "FakeRequest",
    "FakeTransport",
    "count_tokens",
    "json_reply",
    "pieces",
    "say",
]


class FakeRequest(Value, frozen=True, kw_only=True):
    """What a fake got. Header names are in lower case, ``path`` is without the query."""

    method: str
    path: str
    headers: Mapping[str, str] = NOTHING
    body: bytes = b""

    def json(self) -> Any:
        """The body as JSON; None when it is not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return None


class FakeReply(Value, frozen=True, kw_only=True):
    """What a fake answers: ``chunks`` are its body in the pieces in which it leaves."""

    status: int = 200
    headers: Mapping[str, str] = NOTHING
    chunks: tuple[bytes, ...] = ()


def json_reply(status: int, body: Any, headers: Mapping[str, str] = NOTHING) -> FakeReply:
    """A reply that is one JSON document."""
    return FakeReply(
        status=status,
        headers={"content-type": "application/json", **headers},
        chunks=(msgspec.json.encode(body),),
    )


def count_tokens(text: str) -> int:
    """Tokens as the fakes count them: the words of a text."""
    return len(text.split())


def pieces(text: str) -> list[str]:
    """A text in the pieces in which the fakes stream it: its words, with the space before each."""
    return re.findall(r"\s*\S+|\s+", text)


def say(
    text: str | None = None,
    *,
    calls: Sequence[ToolCall] = (),
    reasoning: str | None = None,
    finish: str | None = None,
    usage: Usage | None = None,
    model: str | None = None,
) -> Reply:
    """A reply for a script; ``finish`` defaults to what the content implies."""
    return Reply(
        id="reply-1",
        created=1_700_000_000,
        model=model,
        message=AssistantMessage(content=text, tool_calls=tuple(calls), reasoning=reasoning),
        finish_reason=finish or ("tool_calls" if calls else "stop"),
        usage=usage,
    )


class Fake(ABC):
    """One provider with a script: each good request takes the next entry.

    Attributes:
        requests: everything that came, refused or not, in order.
    """

    def __init__(self, script: Iterable[Reply | FakeReply] = (), *, key: str | None = None) -> None:
        """A provider that has not been asked yet.

        Args:
            script: canonical replies, said in the fake's dialect, or raw ones, said as they are.
            key: the only key it takes; None takes any, in the right place.
        """
        self.requests: list[FakeRequest] = []
        self._script = list(script)
        self._key = key

    def answer(self, request: FakeRequest) -> FakeReply:
        """The reply to one request: a refusal, the model list, or the next of the script."""
        self.requests.append(request)
        refusal = self.refuse(request)
        if refusal is not None:
            return refusal
        if request.method == "GET":
            return self.models(request)
        if not self._script:
            return self.error(500, "The script of this fake is at its end.")
        entry = self._script.pop(0)
        if isinstance(entry, FakeReply):
            return entry
        body = cast("Mapping[str, Any]", request.json())
        return self.render(entry, body)

    @abstractmethod
    def refuse(self, request: FakeRequest) -> FakeReply | None:
        """The refusal that the real server would send; None when it would take the request."""

    @abstractmethod
    def models(self, request: FakeRequest) -> FakeReply:
        """The model list."""

    @abstractmethod
    def render(self, reply: Reply, body: Mapping[str, Any]) -> FakeReply:
        """``reply`` in the dialect's words, streamed when ``body`` asks for it."""

    @abstractmethod
    def error(self, status: int, message: str, **fields: Any) -> FakeReply:
        """An error in the dialect's shape."""


class _Response:
    def __init__(self, reply: FakeReply) -> None:
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers
        self.chunks = _each(reply.chunks)


async def _each(chunks: Iterable[bytes]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        if chunk:
            yield chunk


class FakeTransport:
    """A ``Transport`` whose network is one fake.

    Attributes:
        timeouts: those of the last request.
        open_replies: how many replies are open now; 0 when everything was closed.
    """

    def __init__(self, fake: Fake) -> None:
        """All requests, whatever their address, go to ``fake``."""
        self.fake = fake
        self.timeouts: Timeouts | None = None
        self.open_replies: int = 0

    @asynccontextmanager
    async def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AsyncGenerator[WireResponse]:
        """See ``Transport.open``."""
        self.timeouts = timeouts
        got = FakeRequest(
            method=request.method,
            path=urlsplit(request.url).path,
            headers=request.headers,
            body=request.body,
        )
        response = _Response(self.fake.answer(got))
        self.open_replies += 1
        try:
            yield response
        finally:
            self.open_replies -= 1
            await response.chunks.aclose()

    async def aclose(self) -> None:
        """Nothing to close."""
