"""How a command ends that did not do what it was asked: an exit status and a line on stderr."""

import os
import sys
import traceback
from pathlib import Path
from typing import cast

import click

from woollama.core.errors import ConfigError, WoollamaError
from woollama.server.cli.streams import forget_stdout
from woollama.server.cli.terminal import complain, one_line

__all__ = ["Failure", "report"]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_FAULT = 70  # EX_SOFTWARE
EXIT_CONFIG = 78  # EX_CONFIG
EXIT_INTERRUPTED = 130

TRACEBACK = "WOOLLAMA_TRACEBACK"
"""The variable that shows where an unexpected error comes from."""


class Failure(Exception):
    """A command has failed; the message is for a person, and is all that is shown."""


def report(error: BaseException) -> int:
    """Tells a person why, and gives the exit status."""
    match _alone(error):
        case click.exceptions.NoArgsIsHelpError() as caught:
            caught.show()
            return EXIT_USAGE
        case click.ClickException() as caught:
            caught.show()
            return caught.exit_code
        case click.exceptions.Exit() as caught:
            return caught.exit_code
        case click.Abort() | KeyboardInterrupt():
            if sys.stderr.isatty():
                click.echo(err=True)  # behind the ^C that the terminal has written
            return EXIT_INTERRUPTED
        case BrokenPipeError():
            forget_stdout()
            return EXIT_FAILED
        case ConfigError() as caught:
            complain(_listed(str(caught)))
            return EXIT_CONFIG
        case WoollamaError() | Failure() as caught:
            complain(one_line(str(caught)))
            return EXIT_FAILED
        case OSError(filename=None) as caught:
            # What has no name of a file is the output: on a full disk, say.
            forget_stdout()
            complain(f"the output cannot be written: {caught.strerror or caught}")
            return EXIT_FAILED
        case OSError() as caught:
            complain(f"{caught.filename}: {caught.strerror}")
            return EXIT_FAILED
        case caught:
            return _unexpected(caught)


def _listed(message: str) -> str:
    """What is wrong with a configuration: a line, or a list of them."""
    if "\n" not in message:
        return message
    return f"the configuration is refused:\n{message}\n`woollama check-config` checks every file."


def _alone(error: BaseException) -> BaseException:
    """What a group of one holds."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _alone(group.exceptions[0]) if len(group.exceptions) == 1 else group


def _unexpected(error: BaseException) -> int:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
        return EXIT_FAULT
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    complain(
        f"an unexpected {type(error).__name__}{place}: a fault of woollama itself. "
        f"{TRACEBACK}=1 shows where it comes from."
    )
    return EXIT_FAULT
