"""What a server asks a person in the middle of a call (elicitation), and who is there to answer.

A server of the older protocol sends a request of its own; nothing on the wire says to which call it
belongs. So it is passed on when exactly one call to that server is under way and whoever made it
can be asked, and answered with an error that says why in every other case (ruling RU-47). A recipe
never can be asked. Log messages go the same way.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import msgspec

from woollama.core.canonical.value import NOTHING, Value

__all__ = [
    "NOBODY",
    "Ask",
    "Asker",
    "CannotAsk",
    "Direct",
    "OnLog",
    "OpenCalls",
    "without_deadline",
]

Ask = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Takes the ``params`` of ``elicitation/create``, gives its result, both as on the wire."""

OnLog = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Gets the ``params`` of ``notifications/message`` as on the wire."""


class CannotAsk(Exception):
    """Nobody is asked; the message says why, to the server and whoever reads its answer."""


class Asker(Value, frozen=True, kw_only=True):
    """Somebody who can be asked.

    Attributes:
        capability: ``elicitation`` of their capabilities, as they declared it.
        ask: asks them; raises ``CannotAsk``.
    """

    capability: Mapping[str, Any]
    ask: Ask

    def takes(self, mode: str) -> bool:
        """Whether they declared this mode; one that names none has forms (2025-06-18)."""
        return mode in self.capability or (mode == "form" and "url" not in self.capability)


class Direct(Value, frozen=True, kw_only=True):
    """What goes with a call that a client has made itself, beside the call.

    Attributes:
        capabilities: what of its own a server of the newer protocol is told.
        answers: ``inputResponses`` and ``requestState``, when such a server has asked before.
        asker: whom a server of the older protocol may ask; None is nobody.
        on_log: gets what the server logs meanwhile.
    """

    capabilities: Mapping[str, Any] = NOTHING
    answers: Mapping[str, Any] = NOTHING
    asker: Asker | None = None
    on_log: OnLog | None = None


NOBODY = Direct()
"""A call that no client has made: a recipe's."""


class OpenCalls:
    """The calls to one server that are under way, and who has made each."""

    def __init__(self) -> None:
        """None is under way."""
        self._calls: list[_OpenCall] = []

    @contextmanager
    def call(self, direct: Direct) -> Generator[None]:
        """One call; a question that is still out when it ends is given up."""
        call = _OpenCall(direct)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            for scope in call.questions:
                scope.cancel()

    async def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Passes a question on to whoever made the call that is under way.

        Raises:
            CannotAsk: it is not known who that is, or they cannot be asked this.
        """
        if len(self._calls) != 1:
            several = "several calls are under way, and nothing says whose question this is"
            raise CannotAsk(several if self._calls else "no call is under way")
        call = self._calls[0]
        asker = call.direct.asker
        if asker is None:
            raise CannotAsk("whoever made this call cannot be asked anything")
        mode = str(question.get("mode", "form"))
        if not asker.takes(mode):
            raise CannotAsk(f"the client of this call takes no questions of mode {mode!r}")
        with anyio.CancelScope() as scope:
            call.questions.append(scope)
            try:
                return await asker.ask(question)
            finally:
                call.questions.remove(scope)
        raise CannotAsk("the call is over")

    async def log(self, params: Mapping[str, Any]) -> None:
        """Passes a log message on, if it is known whose call it belongs to."""
        if len(self._calls) == 1 and (on_log := self._calls[0].direct.on_log) is not None:
            await on_log(params)


class _OpenCall:
    def __init__(self, direct: Direct) -> None:
        self.direct = direct
        self.questions: list[anyio.CancelScope] = []


def without_deadline(direct: Direct, scope: anyio.CancelScope) -> Direct:
    """The same, with the deadline of ``scope`` stopped while a person thinks."""
    asker = direct.asker
    if asker is None:
        return direct
    left_s: list[float] = []

    async def ask(question: Mapping[str, Any]) -> Mapping[str, Any]:
        # Of several questions at once the first stops the clock, and the last starts it again.
        left_s.append(scope.deadline - anyio.current_time())
        scope.deadline = float("inf")
        try:
            return await asker.ask(question)
        finally:
            last_s = left_s.pop()
            if not left_s:
                scope.deadline = anyio.current_time() + last_s

    patient = Asker(capability=asker.capability, ask=ask)
    return msgspec.structs.replace(direct, asker=patient)
