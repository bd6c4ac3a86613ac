"""What is logged while a command runs that is no daemon: our own warnings, a line each.

Libraries stay silent: what they log is for who writes programs, and may hold what somebody asked
(promise P-60).
"""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager

from woollama.server.cli.failures import TRACEBACK
from woollama.server.cli.terminal import warn

__all__ = ["open_remarks"]


@contextmanager
def open_remarks() -> Generator[None]:
    """Shows warnings on stderr until it is left; a daemon's own log takes their place."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers[:] = [_Remarks(logging.WARNING)]
    try:
        yield
    finally:
        root.handlers[:] = before


class _Remarks(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] == "woollama":
            warn(f"warning: {record.getMessage()}")
        elif os.environ.get(TRACEBACK):
            warn(f"{record.name}: {record.getMessage()}")
