"""Patterns: prompts addressed by name, and the door through which a system of them comes in."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from woollama.core.canonical import NOTHING, Message, RunEvent, Value

__all__ = ["Pattern", "PatternBackend", "PatternCall", "PatternVariable"]


class PatternVariable(Value, frozen=True, kw_only=True):
    """A ``{{token}}`` of a pattern; what is not declared is absent."""

    name: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    description: str | None = None


class Pattern(Value, frozen=True, kw_only=True):
    """A prompt by name.

    Attributes:
        name: addressable as ``woollama/<name>`` exactly when ``model`` is known.
        variables: its tokens in first-seen order.
        source: whose it is (``recipe``, ``directory``, a backend's id).
        model: ``<provider>/<model>`` it runs on unless a call names one.
        description: one line for people.
    """

    name: str
    variables: tuple[PatternVariable, ...] = ()
    source: str
    model: str | None = None
    description: str | None = None


class PatternCall(Value, frozen=True, kw_only=True):
    """One run of a pattern."""

    name: str
    messages: tuple[Message, ...] = ()
    variables: Mapping[str, Any] = NOTHING
    model: str | None = None
    options: Mapping[str, Any] = NOTHING
    stream: bool = False


class PatternBackend(Protocol):
    """A system of patterns. It yields canonical events and knows nothing of HTTP."""

    @property
    def id(self) -> str:
        """A stable word for this backend, ``fabric``."""
        ...

    def list(self) -> Sequence[Pattern]:
        """Its patterns as far as they are known now, without waiting for anything."""
        ...

    def find(self, name: str) -> Pattern | None:
        """The pattern of this name."""
        ...

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        """The whole prompt, the input placed where the backend places it.

        Raises:
            UnknownPattern: there is none of this name.
        """
        ...

    def open_run(self, call: PatternCall) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
        """Runs a pattern; leaving the context stops it.

        Deltas come only when ``call.stream`` asks for them. The last event is ``RunFinished``, with
        the whole reply, in both modes.

        Raises:
            InferenceError: what went wrong, on entry when nothing has been said yet.
        """
        ...
