"""What a client got: a reply over HTTP as it came over the socket, and its events."""

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any, cast

from tests.cases.comparison import MISSING

__all__ = ["DONE", "Event", "Reply", "assemble_calls", "deltas"]

DONE = "[DONE]"
_NO_FUNCTION: dict[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Event:
    """A server-sent event. ``value`` is its data read as JSON, or ``MISSING``."""

    data: str
    value: Any

    @property
    def chunk(self) -> dict[str, Any]:
        """Its value if that is an object, else an empty one."""
        return cast("dict[str, Any]", self.value) if isinstance(self.value, dict) else {}


@dataclass(kw_only=True)
class Reply:
    """A reply, filled in while it is read. Times are of the monotonic clock, in seconds.

    Attributes:
        error: why it did not end as HTTP says, None if it did.
        left_at: when the client went away on purpose.
    """

    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""
    error: str | None = None
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float = 0.0
    left_at: float | None = None

    def header(self, name: str) -> Any:
        """The header's values, joined; ``MISSING`` without one."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else MISSING

    @property
    def text(self) -> str:
        """The body as UTF-8, what is not UTF-8 replaced."""
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body as JSON, or ``MISSING``."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return MISSING

    @property
    def events(self) -> list[Event]:
        """The events of the body, as the standard for them says: lines end in CR, LF or both."""
        events: list[Event] = []
        data: list[str] = []
        for line in re.split(r"\r\n|\n|\r", self.text):
            name, _, value = line.partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
            elif not line and data:
                events.append(_event("\n".join(data)))
                data = []
        return events

    @property
    def junk(self) -> list[str]:
        """Lines of the body that no event stream has."""
        known = {"", "data", "event", "id", "retry"}
        lines = re.split(r"\r\n|\n|\r", self.text)
        return [line for line in lines if line.partition(":")[0] not in known]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The events that are objects."""
        return [event.chunk for event in self.events if isinstance(event.value, dict)]


def _event(data: str) -> Event:
    if data == DONE:
        return Event(data=data, value=DONE)
    try:
        return Event(data=data, value=json.loads(data))
    except ValueError:
        return Event(data=data, value=MISSING)


def deltas(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The deltas of all choices."""
    choices: list[dict[str, Any]] = [
        choice for chunk in chunks for choice in chunk.get("choices") or ()
    ]
    return [choice["delta"] for choice in choices if choice.get("delta")]


def assemble_calls(chunks: list[dict[str, Any]]) -> tuple[list[dict[str, str]], list[str]]:
    """The tool calls as OpenAI's package puts them together, and what it would fall over.

    By their ``index``; id, name and arguments are appended.
    """
    calls: dict[int, dict[str, str]] = {}
    problems: list[str] = []
    fragments: list[dict[str, Any]] = [
        fragment for delta in deltas(chunks) for fragment in delta.get("tool_calls") or ()
    ]
    for fragment in fragments:
        index = fragment.get("index")
        if not isinstance(index, int):
            problems.append("a fragment of a tool call has no integer index")
            index = 0
        call = calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function: dict[str, Any] = fragment.get("function") or _NO_FUNCTION
        call["id"] += fragment.get("id") or ""
        call["name"] += function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, str | None):
            call["arguments"] += arguments or ""
        else:
            problems.append("a fragment's arguments are not text")
    return list(calls.values()), problems
