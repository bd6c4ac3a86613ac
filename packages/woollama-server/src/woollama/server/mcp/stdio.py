"""The transport to a server that is a child process: a JSON-RPC message a line, over its pipes.

The SDK has one too. This one hears the child's stderr, gives it nothing of our environment that it
does not need, keeps lines that are no messages out of our log, and ends the whole process group.
"""

import logging
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import (
    ByteReceiveStream,
    ByteSendStream,
    ObjectReceiveStream,
    ObjectSendStream,
    Process,
)
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from woollama.core.scopes import open_tasks
from woollama.server.mcp.entries import StdioServer
from woollama.server.mcp.faults import Unreachable
from woollama.server.mcp.health import ChildLog
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.link import Streams
from woollama.server.process import Child, Launch, end_process, how_it_ended, open_process

__all__ = ["child_environment", "open_stdio"]

_INHERITED = frozenset(
    {
        "HOME",
        "PATH",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "TZ",
        "TMPDIR",
        "LANG",
        "LANGUAGE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    }
)
_INHERITED_ON_WINDOWS = frozenset(
    {
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATHEXT",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    }
)
"""Without these, programs do not start there."""
_INHERITED_PREFIX = "LC_"

_ENDING_S = 0.5
"""From the end of a child's output to its own."""

_log = logging.getLogger(__name__)


def child_environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """What a child gets: the few variables that every program needs, and ``extra``."""
    inherited = _INHERITED if sys.platform != "win32" else _INHERITED | _INHERITED_ON_WINDOWS
    kept = {
        name: value
        for name, value in environ.items()
        if name in inherited or name.startswith(_INHERITED_PREFIX)
    }
    return {**kept, **extra}


@asynccontextmanager
async def open_stdio(
    server: StdioServer, *, env: Mapping[str, str], limits: McpLimits, log: ChildLog
) -> AsyncGenerator[Streams]:
    """Starts the child and gives the streams of its messages; leaving ends it, whatever it does.

    Args:
        server: whose ``env`` is already part of ``env``.
        env: the whole environment of the child.
        limits: how long it may take to end, how long a message may be.
        log: gets what it writes to stderr, and to stdout beside messages.

    Raises:
        Unreachable: the program is not there or cannot be run.
    """
    try:
        process = await open_process(_launch(server, env))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unreachable(f"{server.command!r} cannot be started: {reason}") from error
    log.ending = None
    said, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, to_say = anyio.create_memory_object_stream[SessionMessage](0)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    # Nothing is waited for between the start and the block that ends it.
    async with open_tasks() as tasks, said, messages, outbox, to_say:
        reader = _Reader(server.name, log, limits.result_limit_bytes)
        tasks.start_soon(reader.read, process, process.stdout, said)
        tasks.start_soon(_write, process.stdin, to_say)
        tasks.start_soon(_read_log, process.stderr, log)
        try:
            yield messages, outbox
        finally:
            # A child that is stuck in writing would not see the end of its stdin.
            messages.close()
            await end_process(process, stop_timeout_s=limits.stop_timeout_s)
            tasks.cancel_scope.cancel()


def _launch(server: StdioServer, env: Mapping[str, str]) -> Launch[None]:
    command = server.command
    if not os.path.dirname(command):  # noqa: PTH120 - "./x" has a directory, Path("./x") has none
        found = shutil.which(command, path=env.get("PATH"))
        if found is None:
            raise Unreachable(
                f"the program {command!r} is not there; install it, or give its path as 'command'"
            )
        command = found
    return Launch(
        argv=(command, *server.args),
        env=env,
        ready=_never_asked,
        cwd=server.cwd,
        watches_stdin=True,
    )


async def _never_asked(_child: Child) -> None:
    """Readiness is the handshake's matter."""


class _Reader:
    """Turns what a child writes into messages; other lines go to its log."""

    def __init__(self, name: str, log: ChildLog, limit_bytes: int) -> None:
        self._name = name
        self._log = log
        self._limit_bytes = limit_bytes
        self._warned = False

    async def read(
        self,
        process: Process,
        stdout: ByteReceiveStream,
        said: ObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Until the child's stdout ends; then the messages end too."""
        async with said:
            try:
                await self._split(stdout, said)
            except (anyio.EndOfStream, OSError):
                # How it ended says more than that its output did.
                with anyio.move_on_after(_ENDING_S):
                    await process.wait()
                if process.returncode is not None:
                    self._log.ending = how_it_ended(process.returncode)
                return
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
        with suppress(
            anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError
        ):
            while True:
                await stdout.receive()

    async def _split(
        self, stdout: ByteReceiveStream, said: ObjectSendStream[SessionMessage | Exception]
    ) -> None:
        buffer = bytearray()
        while len(buffer) <= self._limit_bytes:
            start = len(buffer)
            buffer += await stdout.receive()
            if buffer.find(b"\n", start) < 0:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in lines:
                await self._take(line, said)
        _log.warning("MCP server %r sent a message that is too long; it is ended", self._name)

    async def _take(self, line: bytes, said: ObjectSendStream[SessionMessage | Exception]) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._log.write(line + b"\n")
            if not self._warned:
                # Once, and not what it says: it may be anything.
                self._warned = True
                _log.warning(
                    "MCP server %r writes to stdout what is no message; it is skipped, and shown "
                    "with the end of its stderr",
                    self._name,
                )
            return
        await said.send(SessionMessage(message))


async def _write(stdin: ByteSendStream, to_say: ObjectReceiveStream[SessionMessage]) -> None:
    # A child that is gone is found out by the end of its stdout.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async with to_say:
            async for each in to_say:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")


async def _read_log(stderr: ByteReceiveStream, log: ChildLog) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            log.write(await stderr.receive())
