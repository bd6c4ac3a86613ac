"""The events of an answer, told on a screen as they happen."""

from types import MappingProxyType
from typing import Any, Literal

import msgspec

from woollama.core.canonical import (
    ReasoningDelta,
    RefusalDelta,
    Reply,
    RunEvent,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    text_of,
)
from woollama.core.tools import render_tool_result
from woollama.server.cli.terminal import Screen, one_line

__all__ = ["Show", "Telling"]

Show = Literal["stream", "whole", "json"]
"""The answer as it comes, when it is complete, or the whole reply as JSON."""

_SHOWN = 120
_ENDINGS = MappingProxyType(
    {
        "content_filter": "The provider's filter ended the answer.",
        "length": "The answer is cut: the model has reached its limit of output.",
    }
)


class Telling:
    """One answer on one screen.

    A terminal shows everything at once. In a pipe only the answer counts, and while tools are on
    offer nobody knows whether a text is the answer or talk before a call: it waits for the end of
    its turn, so that a pipe holds the same text as without streaming.
    """

    def __init__(self, screen: Screen, show: Show, *, alias: str, asked: str) -> None:
        """Nothing has been said yet.

        Args:
            screen: where it is told.
            show: how.
            alias: the key of the thinking in JSON.
            asked: the name of what was asked, for a person who waits.
        """
        self._screen = screen
        self._show = show
        self._alias = alias
        self._asked = asked
        self._holding = False
        self._held: list[str] = []
        self._said = False
        self._dropped: set[str] = set()

    def tell(self, event: RunEvent) -> None:
        """One event."""
        match event:
            case TextDelta(text=text) | RefusalDelta(text=text) if self._show == "stream":
                self._text(text)
            case ReasoningDelta(text=text) if self._show == "stream":
                self._screen.thinking(text)
            case TurnStarted():
                self._begin(event)
            case ToolStarted():
                self._held.clear()
                self._screen.wait_for(f"Running {event.name} …")
                self._screen.line(f"→ {event.name}({_short(event.args)})")
            case ToolFinished():
                self._screen.line(_result(event))
            case RunFinished():
                self._finish(event)
            case _:
                pass

    def _text(self, text: str) -> None:
        if self._holding:
            self._held.append(text)
            return
        self._said = self._said or bool(text)
        self._screen.text(text)

    def _begin(self, turn: TurnStarted) -> None:
        self._holding = turn.tools_offered > 0 and not self._screen.live
        self._held.clear()
        self._said = False
        # Tools that nobody has are told by the log.
        named = (name for name in turn.dropped if not name.startswith("tools."))
        new = [name for name in named if name not in self._dropped]
        if new:
            self._dropped.update(new)
            self._screen.note(f"Left out, as drop_params says: {', '.join(new)}.")
        self._screen.wait_for(f"Asking {self._asked} …")

    def _finish(self, finished: RunFinished) -> None:
        reply = msgspec.structs.replace(finished.reply, usage=finished.usage_total)
        if self._show == "json":
            body = msgspec.json.encode(reply.to_openai(reasoning=self._alias))
            self._screen.document(msgspec.json.format(body, indent=2))
            return
        self._holding = False
        for text in self._held:
            self._text(text)
        if self._show == "whole":
            self._text(text_of(reply.message.content) or reply.message.refusal or "")
        self._remark(reply)

    def _remark(self, reply: Reply) -> None:
        """What a person who sees only the text would not know."""
        calls = reply.message.tool_calls or ()
        for call in calls:
            said = f"{call.name}({_short(call.arguments)})"
            self._screen.note(f"The model calls a tool, which is not run here: {said}.")
        ending = _ENDINGS.get(reply.finish_reason)
        if ending is not None:
            self._screen.note(ending)
        elif not self._said and not calls:
            self._screen.note("The answer is empty.")


def _short(args: Any) -> str:
    text = args if isinstance(args, str) else msgspec.json.encode(args).decode()
    return one_line(text, _SHOWN)


def _result(finished: ToolFinished) -> str:
    rendered = render_tool_result(finished.result)
    text = rendered if isinstance(rendered, str) else msgspec.json.encode(rendered).decode()
    failed = "" if finished.ok else " failed"
    return f"← {finished.name}{failed}: {one_line(text, _SHOWN)}"
