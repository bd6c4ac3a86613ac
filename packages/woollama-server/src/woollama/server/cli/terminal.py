"""What a person sees: text as it comes, thinking apart from it, a spinner while something loads.

What others wrote, an answer or a refusal, is never obeyed by the terminal: its control characters
are shown. In a pipe an answer is what it is, byte by byte, and nothing of ours is between.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from types import MappingProxyType, TracebackType
from typing import IO, Self

import click

from woollama.server.cli.spinner import Spinner

__all__ = ["Screen", "broken", "complain", "one_line", "say", "styled", "visible", "warn"]

_LONGEST_LINE = 600

_PICTURES = MappingProxyType(
    {
        **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)},
        0x0D: None,  # before a line feed it adds nothing, elsewhere it hides what stands there
        0x7F: 0x2421,
        **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    }
)


def visible(text: str) -> str:
    """Text in which nothing moves the cursor or changes a terminal; lines and tabs stay."""
    return text.translate(_PICTURES)


def one_line(text: str, limit: int = _LONGEST_LINE) -> str:
    """The text on one line, safe to show, and cut when it is long."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= limit else f"{line[:limit]} …"


def styled(text: str, **style: object) -> str:
    """The text in a style; ``click.echo`` takes it off where no terminal is. See ``NO_COLOR``."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in {"dumb", "unknown"}
    return text if plain else click.style(text, **style)  # pyright: ignore[reportArgumentType]


def complain(message: str) -> None:
    """What went wrong, on stderr, in red where a person looks."""
    say(f"woollama: {visible(message)}", fg="red")


def warn(message: str) -> None:
    """What is perhaps not meant, on stderr, on one line."""
    say(f"woollama: {one_line(message)}", fg="yellow")


def say(text: str, **style: object) -> None:
    """Lines on stderr; those that are too long for a terminal are broken between words."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(broken(line, width) for line in text.splitlines())
    # When stderr is gone, there is nobody to tell it to, and no place to say so.
    with suppress(OSError):
        click.echo(styled(text, **style), err=True)


def broken(line: str, width: int, *, indent: str = "") -> str:
    """A line broken between words; those behind the first stand two columns further in."""
    return textwrap.fill(
        line,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


class Screen:
    """The terminal during one command: plain text in a pipe, no colour with ``NO_COLOR``.

    Attributes:
        live: whether the answer is read by a person, as it comes.
    """

    def __init__(self, out: IO[str] | None = None) -> None:
        """Writes the answer to ``out``, everything else to stderr."""
        self._out = out if out is not None else sys.stdout
        self._watched = sys.stderr.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}
        self.live = self._out.isatty()
        self._together = _is_one_file(self._out, sys.stderr)
        self._spinner: Spinner | None = None
        self._waiting_for = ""
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
        self._turn("")
        self._end_thinking()
        # A pipe whose answer broke off gets no line feed that was not in it; an interrupt ends the
        # line of a terminal itself.
        interrupted = kind is KeyboardInterrupt and self._watched
        if kind is None or ((self.live or self._together) and not interrupted):
            self._end_line()

    @property
    def notice(self) -> Callable[[str], None]:
        """Shows what is going on, only on a terminal; ``""`` when it is over."""
        return self._notice

    def _notice(self, line: str) -> None:
        self._turn(line or self._waiting_for)

    def wait_for(self, line: str) -> None:
        """What is going on until something is shown, whenever ``notice`` has nothing to tell."""
        self._waiting_for = line
        self._turn(line)

    def _turn(self, line: str) -> None:
        """Shows the spinner with this line, or takes it away."""
        if not line or not self._watched or (self._open_line and self._together):
            if self._spinner is not None:
                self._spinner.stop()
                self._spinner = None
        elif self._spinner is None:
            self._spinner = Spinner(visible(line))
            self._spinner.start()
        else:
            self._spinner.update(visible(line))

    def text(self, text: str) -> None:
        """A piece of the answer."""
        self._waiting_for = ""
        self._turn("")
        self._end_thinking()
        self._out.write(visible(text) if self.live else text)
        self._out.flush()
        if text:
            self._open_line = not text.endswith("\n")

    def document(self, body: bytes) -> None:
        """A whole document in UTF-8, whatever the terminal speaks."""
        self._waiting_for = ""
        self._turn("")
        self._out.flush()
        click.echo(body, file=self._out)

    def thinking(self, text: str) -> None:
        """A piece of the thinking, dim and beside the answer; nothing where nobody looks."""
        if self._watched:
            self._aside()
            self._thinking = True
            click.echo(styled(visible(text), dim=True), err=True, nl=False)

    def line(self, text: str) -> None:
        """One line beside the answer, for a person who watches: a tool call, its result."""
        if self._watched:
            self._aside()
            self._end_thinking()
            click.echo(styled(one_line(text), fg="cyan"), err=True)
            self._turn(self._waiting_for)

    def note(self, text: str) -> None:
        """One line on stderr that is said wherever it goes: something is not as it was asked."""
        self._aside()
        self._end_thinking()
        warn(text)

    def _aside(self) -> None:
        self._turn("")
        if self._together:
            self._end_line()

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            click.echo(err=True)

    def _end_line(self) -> None:
        if self._open_line:
            self._open_line = False
            self._out.write("\n")
            self._out.flush()


def _is_one_file(out: IO[str], aside: IO[str]) -> bool:
    """Whether the answer and what is beside it come to one terminal, or into one file."""
    try:
        return os.path.sameopenfile(out.fileno(), aside.fileno())
    except (OSError, ValueError):  # no file of the system
        return False
