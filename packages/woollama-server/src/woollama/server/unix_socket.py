"""The Unix socket and the address file beside it: made without stealing, removed when ours.

A socket file says nothing about who made it: the one that answers belongs to a living daemon, the
one that refuses is what a dead one left behind. Looking and replacing happen under a lock on the
directory, so that of two daemons that start at the same time one gets it and one is told.
"""

import os
import socket
import stat
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from woollama.core.canonical.value import Value
from woollama.server.address import Address

__all__ = [
    "AlreadyServed",
    "NoSocket",
    "SocketFile",
    "default_place",
    "open_socket",
    "write_address",
]

NAME = "woollama.sock"
_PATH_LIMIT_BYTES = 107 if sys.platform == "linux" else 103
"""What ``sun_path`` holds beside its terminating zero."""

_LOCK_WAIT_S = 2.0
_ANSWER_WAIT_S = 1.0


class NoSocket(Exception):
    """There can be no socket at this place; says why. TCP works all the same."""


class AlreadyServed(Exception):
    """A living program listens on the socket."""


class SocketFile(Value, frozen=True, kw_only=True):
    """A file that we made, and how to know it again.

    Attributes:
        path: where it is.
        identity: its device, inode and time; an inode alone can be another file's by now.
    """

    path: Path
    identity: tuple[int, int, int]

    def remove(self) -> None:
        """Remove it, unless another has put a file of its own in its place."""
        with suppress(OSError):
            if _identity(self.path) == self.identity:
                self.path.unlink()


def default_place(environ: Mapping[str, str]) -> Path:
    """``$XDG_RUNTIME_DIR/woollama.sock``.

    Raises:
        NoSocket: the variable is unset or no absolute path (RU-55); nothing stands in for it.
    """
    folder = environ.get("XDG_RUNTIME_DIR", "")
    if not folder:
        raise NoSocket("XDG_RUNTIME_DIR is not set")
    if not Path(folder).is_absolute():
        raise NoSocket(f"XDG_RUNTIME_DIR is no absolute path ({folder!r})")
    return Path(folder) / NAME


def open_socket(path: Path, *, backlog: int) -> tuple[socket.socket, SocketFile]:
    """A listening socket that only its owner can reach, mode 0600.

    A socket file whose daemon is dead is replaced.

    Raises:
        AlreadyServed: a living program listens there.
        NoSocket: it cannot be made there, with the reason.
    """
    if sys.platform == "win32":
        raise NoSocket("this system has none")
    if len(os.fsencode(path)) > _PATH_LIMIT_BYTES:
        raise NoSocket(f"the path is longer than the {_PATH_LIMIT_BYTES} bytes that are allowed")
    try:
        with _locked(path.parent):
            _make_room(path)
            return _listen(path, backlog)
    except OSError as error:
        raise NoSocket(error.strerror or str(error)) from error


def write_address(path: Path, address: Address) -> SocketFile:
    """The address file: ``host:port`` and a newline, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{address}\n")
    made = SocketFile(path=path, identity=_identity(draft))
    try:
        draft.replace(path)
    except OSError:
        draft.unlink()
        raise
    return made


def _identity(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino, found.st_mtime_ns


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    import fcntl  # there is none on Windows

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _make_room(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise NoSocket(f"{str(path)!r} exists and is no socket")
    if _answers(path):
        raise AlreadyServed
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_ANSWER_WAIT_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (BlockingIOError, TimeoutError):
            return True  # somebody listens, and is busy
    return True


def _listen(path: Path, backlog: int) -> tuple[socket.socket, SocketFile]:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)
        try:
            made.bind(str(path))
        finally:
            os.umask(mask)
        made.listen(backlog)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made, SocketFile(path=path, identity=_identity(path))
