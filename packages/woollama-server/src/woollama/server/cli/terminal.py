"""What a person sees: text as it comes, thinking apart from it, a spinner while something loads."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self

from rich.console import Console
from rich.status import Status

__all__ = ["Screen", "complain"]


def complain(message: str) -> None:
    """One or more lines on stderr, in red where a person looks."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(
        f"woollama: {message}", style="red"
    )


class Screen:
    """The terminal during one command: plain text in a pipe, no colour with ``NO_COLOR``."""

    def __init__(self, out: IO[str] | None = None) -> None:
        """Writes the answer to ``out``, everything else to stderr."""
        self._out = out if out is not None else sys.stdout
        self._aside = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self._status: Status | None = None
        self._thinking = False
        self._open_line = False

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leaves the cursor at the start of a line, without a spinner."""
        self.notice("")
        self._end_thinking()
        if self._open_line and kind is None:
            self._out.write("\n")
            self._out.flush()

    @property
    def notice(self) -> Callable[[str], None]:
        """Shows what is going on, only on a terminal; ``""`` when it is over."""
        return self._notice

    def _notice(self, line: str) -> None:
        if not self._aside.is_terminal:
            return
        if not line:
            if self._status is not None:
                self._status.stop()
                self._status = None
        elif self._status is None:
            self._status = self._aside.status(line)
            self._status.start()
        else:
            self._status.update(line)

    def text(self, text: str) -> None:
        """A piece of the answer."""
        self._notice("")
        self._end_thinking()
        self._out.write(text)
        self._out.flush()
        self._open_line = not text.endswith("\n")

    def thinking(self, text: str) -> None:
        """A piece of the thinking, dim and beside the answer; nothing where nobody looks."""
        self._notice("")
        if self._aside.is_terminal:
            self._thinking = True
            self._aside.print(text, style="dim", end="")

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            self._aside.print()

    def line(self, text: str) -> None:
        """One line beside the answer: a tool call, a remark."""
        self._notice("")
        self._aside.print(text, style="cyan")
