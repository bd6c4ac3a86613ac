"""The three standard streams, as every command needs them."""

import os
import sys
from contextlib import suppress

__all__ = ["forget_stdout", "prepare_streams"]


def prepare_streams() -> None:
    """Puts the null device where a stream is closed, and lets no character stop an answer.

    Without it the first file or socket that is opened would get the number of a closed stream, and
    whatever is said would go there. What the encoding of stdout has no character for is written as
    a question mark.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def forget_stdout() -> None:
    """Nobody reads stdout any more: what Python still holds for it shall not complain at exit."""
    # One that is no file of the system, in a test say, holds nothing back.
    with suppress(OSError, ValueError):
        stdout = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stdout)
        os.close(null)
