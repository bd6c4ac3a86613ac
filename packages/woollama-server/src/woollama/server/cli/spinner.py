"""A spinner on stderr, which hides the cursor, and shows it again however the command ends."""

import os
import signal
import sys
import threading
from types import FrameType

__all__ = ["Spinner"]

_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"
"""On an empty line: the spinner's own stays otherwise."""


class Spinner:
    """Turns between ``start`` and ``stop``; only for a terminal."""

    def __init__(self, line: str) -> None:
        """Not turning yet; ``line`` is what stands beside it."""
        # Only where somebody watches: importing rich takes as long as a short answer.
        from rich.console import Console
        from rich.status import Status
        from rich.text import Text

        self._status = Status(Text(line), console=Console(stderr=True))
        self._guards = False

    def start(self) -> None:
        """Shows it."""
        # Who has a handler already ends in order, through ``stop``.
        default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if default and threading.current_thread() is threading.main_thread():
            self._guards = True
            signal.signal(signal.SIGTERM, _die)
        self._status.start()

    def stop(self) -> None:
        """Takes it away."""
        self._status.stop()
        if self._guards:
            self._guards = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def update(self, line: str) -> None:
        """Another line, as it is: a model's name may hold brackets."""
        from rich.text import Text

        self._status.update(Text(line))


def _die(number: int, _frame: FrameType | None) -> None:
    """Ends as without a handler, behind the one thing that has to be done."""
    signal.signal(number, signal.SIG_DFL)
    os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    signal.raise_signal(signal.Signals(number))
