"""The address of a running fabric, left for other woollamas of the same user."""

import os
import stat
from pathlib import Path

__all__ = ["LeftAddress"]

_FILE = "woollama.fabric-addr"


class LeftAddress:
    """The file ``woollama.fabric-addr``, mode 0600; all of it blocks for a moment."""

    def __init__(self, folder: str | None) -> None:
        """In ``$XDG_RUNTIME_DIR``; None leaves and finds nothing.

        A folder that everybody can write will not do: anybody could leave an address there.
        """
        self._file = Path(folder) / _FILE if folder else None

    def read(self) -> str | None:
        """``127.0.0.1:PORT``, or None when nothing of that form is there."""
        try:
            text = self._file.read_text("utf-8").strip() if self._file is not None else ""
        except (OSError, UnicodeDecodeError):
            return None
        host, _, port = text.rpartition(":")
        return text if host == "127.0.0.1" and port.isascii() and port.isdigit() else None

    def write(self, address: str) -> None:
        """Leaves an address; where it cannot be written, others start a fabric of their own."""
        if self._file is None:
            return
        mode = stat.S_IRUSR | stat.S_IWUSR
        try:
            self._file.unlink(missing_ok=True)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(f"{address}\n")
        except OSError:
            return

    def remove(self, address: str) -> None:
        """Takes back what was left, unless somebody has left another address since."""
        if self._file is not None and self.read() == address:
            self._file.unlink(missing_ok=True)
