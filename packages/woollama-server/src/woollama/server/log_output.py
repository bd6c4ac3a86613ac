"""Where log lines go and what they may hold: ours whole, those of libraries without their text.

A library may put a prompt, a reply or a key into a message or an exception, at any level. So what
does not come from us is reduced to where it was said, and a traceback to its lines of code (promise
P-60). ``--log-bodies`` is the one switch that shows everything, and says so.
"""

import asyncio
import logging
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, TextIO, cast

import msgspec

from woollama.server.logs import RequestLog
from woollama.server.sections import ServerSettings
from woollama.server.tracebacks import describe_exception

__all__ = ["open_logging"]

_OURS = "woollama"
_log = logging.getLogger("woollama.server")
_encoder = msgspec.json.Encoder(enc_hook=str)


@contextmanager
def open_logging(server: ServerSettings, stream: TextIO | None = None) -> Generator[None]:
    """Sends everything that is logged to ``stream`` until it is left.

    Args:
        server: format, level, and whether bodies are logged.
        stream: None is stderr.
    """
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before = root.handlers[:], root.level, ours.level
    output = _Output(stream if stream is not None else sys.stderr, server)
    root.handlers[:] = [output]
    root.setLevel(logging.WARNING)
    ours.setLevel(server.log_level.upper())
    if server.log_bodies:
        _log.warning("--log-bodies: request and reply bodies are written to this log")
    try:
        yield
    finally:
        output.flush()
        output.close()
        root.handlers[:], level, our_level = before
        root.setLevel(level)
        ours.setLevel(our_level)


class _Output(logging.Handler):
    # Lines of one round of the event loop are written together: a system call for each would cost
    # as much as all the rest of a request's line. Nothing waits longer, and no warning at all.

    def __init__(self, stream: TextIO, server: ServerSettings) -> None:
        super().__init__()
        self._stream = stream
        self._lines: list[str] = []
        self.formatter = _FORMS[server.log_format](whole=server.log_bodies)

    def filter(self, record: logging.LogRecord) -> bool:
        # Some libraries give their loggers a level of their own.
        return _is_ours(record) or record.levelno >= logging.WARNING

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record) + "\n")
        if record.levelno >= logging.WARNING:
            self.flush()
        elif len(self._lines) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:
                self.flush()

    def flush(self) -> None:
        """Writes the lines that wait; called by the loop, and by ``logging`` at the end."""
        with self.lock or nullcontext():
            lines = "".join(self._lines)
            self._lines.clear()
            try:
                self._stream.write(lines)
                self._stream.flush()
            except (OSError, ValueError):
                # Nobody reads it any more: that is no reason not to serve. What logging itself does
                # here is to print the arguments of the message.
                return


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name == _OURS or record.name.startswith("woollama.")


class _Form(logging.Formatter):
    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole
        self._second = 0
        self._stamp = ""

    def stamp(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int(record.msecs):03d}Z"

    def message(self, record: logging.LogRecord) -> str:
        """The message; of a library only the template, and that only when the data is beside it."""
        if self._whole or _is_ours(record):
            return record.getMessage()
        place = f"{record.module}:{record.lineno}"
        said = str(record.msg) if record.args else "the text is withheld, --log-bodies shows it"
        return f"{record.name} at {place}: {said}"

    def trace(self, record: logging.LogRecord) -> str:
        info = record.exc_info
        if not info or info[1] is None:
            return ""
        if self._whole:
            return "".join(traceback.format_exception(info[1])).rstrip()
        return describe_exception(info[1])


class _Text(_Form):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{self.stamp(record)} {record.levelname.lower()} {self.message(record)}"
        trace = self.trace(record)
        return f"{line}\n{trace}" if trace else line


class _Json(_Form):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": self.stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if isinstance(cast("object", record.msg), RequestLog):
            fields |= cast("RequestLog", cast("object", record.msg)).fields()
        else:
            fields["message"] = self.message(record)
        trace = self.trace(record)
        if trace:
            fields["trace"] = trace
        return _encoder.encode(fields).decode()


_FORMS = MappingProxyType({"text": _Text, "json": _Json})
