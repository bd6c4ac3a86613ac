"""Files that people edit while we run: read when they changed, kept when an edit broke them."""

import errno
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from woollama.core.canonical import Value
from woollama.core.errors import ConfigError
from woollama.core.patterns.template import variables_of

__all__ = ["PatternFolder", "Prompt", "WatchedFile", "is_pattern_name"]

T = TypeVar("T")

LIMIT_BYTES = 4 * 1024 * 1024
"""The largest prompt that is read; the largest of a well-known library has 230 kB."""

_FRESH_NS = 100_000_000
_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL})
_FILE_NAME = "system.md"
_log = logging.getLogger(__name__)


class Prompt(Value, frozen=True, kw_only=True):
    """A prompt as its file has it, and the names of its tokens."""

    text: str
    variables: tuple[str, ...]


class Stamp(Value, frozen=True, kw_only=False):
    """What changes when a file does."""

    modified_ns: int
    changed_ns: int
    size: int
    inode: int


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None when there is none.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        found = path.stat()
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return None
        raise
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


class WatchedFile(Generic[T]):
    """The first of several files that exists, read anew whenever it changed.

    Looking costs one ``stat`` of a local file, which takes microseconds: less than the way to a
    thread and back would.

    Attributes:
        problem: what is wrong with the file as it stands now; None when nothing is.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[Path], T], empty: T) -> None:
        """Nothing is looked at yet.

        Args:
            paths: the candidates; one that exists hides those behind it.
            read: turns a file into its value; raises ``OSError``, ``ValueError`` or ``ConfigError``
                when the file is broken.
            empty: the value when no file exists.
        """
        self.problem: str | None = None
        self._paths = tuple(paths)
        self._read = read
        self._empty = empty
        self._value = empty
        self._in_force = False
        self._seen: tuple[Path, Stamp] | None = None

    def value(self) -> T:
        """The value now; of a file that an edit broke the last good one."""
        try:
            found = self._find()
        except OSError as error:
            self._fault(self._paths[0], str(error))
            return self._value
        if found is None:
            self._seen, self.problem, self._value = None, None, self._empty
            self._in_force = True
        elif found != self._seen:
            self._seen = None if _is_fresh(found[1]) else found
            self._take(found[0])
        return self._value

    def _find(self) -> tuple[Path, Stamp] | None:
        for path in self._paths:
            stamp = stamp_of(path)
            if stamp is not None:
                return path, stamp
        return None

    def _take(self, path: Path) -> None:
        try:
            self._value = self._read(path)
        except (OSError, ValueError, ConfigError) as error:
            self._fault(path, str(error))
        else:
            self.problem = None
            self._in_force = True

    def _fault(self, path: Path, reason: str) -> None:
        # Of a file that never was in force, who wanted it tells the problem.
        if self._in_force and reason != self.problem:
            _log.warning("%s: %s; what it said before stays in force", path, reason)
        self.problem = reason


def _is_fresh(stamp: Stamp) -> bool:
    # Two writes within one tick of the file system's clock leave the same stamp: what was written
    # just now is read again next time.
    return time.time_ns() - stamp.modified_ns < _FRESH_NS


class PatternFolder:
    """``<name>/system.md`` files below one folder, as they are now.

    A name is the folder's own and nothing else: it cannot lead out of it. Folders whose names begin
    with a dot, or are no text, are not looked at. A file that cannot be read, is larger than
    ``LIMIT_BYTES`` or no UTF-8 keeps its last good text.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is looked at yet; ``folder`` may be missing."""
        self.folder = folder
        self._files: dict[str, WatchedFile[Prompt | None]] = {}

    def names(self) -> list[str]:
        """The names of the patterns there are, sorted."""
        try:
            with os.scandir(self.folder) as entries:
                found = [entry.name for entry in entries if is_pattern_name(entry.name)]
        except OSError:
            return []
        for gone in self._files.keys() - set(found):
            self._files.pop(gone, None)
        return sorted(name for name in found if self.find(name) is not None)

    def find(self, name: str) -> Prompt | None:
        """A pattern, to the byte; None when there is none of this name."""
        if not is_pattern_name(name):
            return None
        file = self._files.get(name)
        if file is None:
            path = self.folder / name / _FILE_NAME
            file = WatchedFile[Prompt | None]((path,), _read_prompt, None)
        prompt = file.value()
        if prompt is None and file.problem is None:
            self._files.pop(name, None)
        else:
            self._files[name] = file
        return prompt

    def problems(self) -> dict[str, str]:
        """What is wrong with which pattern's file."""
        return {
            name: file.problem
            for name, file in sorted(self._files.items())
            if file.problem is not None
        }


def is_pattern_name(name: str) -> bool:
    """Whether ``name`` can be a pattern's folder: one step, visible, text."""
    if not name or name.startswith(".") or "\0" in name or "/" in name or "\\" in name:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _read_prompt(path: Path) -> Prompt:
    data = path.read_bytes()
    if len(data) > LIMIT_BYTES:
        raise ValueError(f"has {len(data)} bytes, more than {LIMIT_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: {error}") from error
    return Prompt(text=text, variables=variables_of(text))
