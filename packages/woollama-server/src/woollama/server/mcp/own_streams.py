"""Our own standard streams as the two streams of an MCP server: a JSON-RPC message a line.

The SDK reads its input in a thread, which nothing can interrupt: told to stop, such a server waits
for its client. Here the descriptors are waited for, so that it can end what it has begun and go.
While they are open, whatever else is printed goes to stderr, and whoever else reads finds nothing.
"""

import os
import stat
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import cast

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from woollama.core.scopes import open_tasks

__all__ = ["open_own_streams"]

_READ_BYTES = 1 << 16
_LAST_WORDS_S = 1.0
"""How long a client may take to read what was said before the end."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2

Incoming = SessionMessage | Exception
Streams = tuple[ObjectReceiveStream[Incoming], ObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_own_streams(*, limit_bytes: int) -> AsyncGenerator[Streams]:
    """The messages of our client, and the way to it.

    The first stream ends when the client closes our stdin, and when it sends a line that is longer
    than ``limit_bytes``.
    """
    if sys.platform == "win32":
        # Pipes cannot be waited for there.
        async with stdio_server() as streams:
            yield cast("Streams", streams)
        return
    said, messages = anyio.create_memory_object_stream[Incoming](0)
    outbox, to_say = anyio.create_memory_object_stream[SessionMessage](0)
    with _taken(_STDIN) as source, _taken(_STDOUT) as sink:
        async with open_tasks() as tasks, said, messages, outbox, to_say:
            written = anyio.Event()
            tasks.start_soon(_read, source, said, limit_bytes)
            tasks.start_soon(_write, sink, to_say, written)
            yield messages, outbox
            outbox.close()
            with anyio.move_on_after(_LAST_WORDS_S):
                await written.wait()
            tasks.cancel_scope.cancel()


@contextmanager
def _taken(number: int) -> Generator[int]:
    """A private descriptor for one of the standard ones, which leads elsewhere meanwhile."""
    private = os.dup(number)
    blocking = os.get_blocking(private)
    try:
        if number == _STDIN:
            elsewhere = os.open(os.devnull, os.O_RDONLY)
            os.dup2(elsewhere, number)
            os.close(elsewhere)
        else:
            os.dup2(_STDERR, number)
        # A client that does not read is not to stop everything else.
        os.set_blocking(private, False)
        yield private
    finally:
        # Others may have the same pipe or terminal.
        os.set_blocking(private, blocking)
        os.dup2(private, number)
        os.close(private)


async def _read(source: int, said: ObjectSendStream[Incoming], limit_bytes: int) -> None:
    buffer = bytearray()
    is_file = stat.S_ISREG(os.fstat(source).st_mode)
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with said:
            while len(buffer) <= limit_bytes:
                if not is_file:
                    await anyio.wait_readable(source)
                try:
                    data = os.read(source, _READ_BYTES)
                except BlockingIOError:
                    continue
                if not data:
                    break
                start = len(buffer)
                buffer += data
                if buffer.find(b"\n", start) >= 0:
                    *lines, rest = bytes(buffer).split(b"\n")
                    buffer = bytearray(rest)
                    for line in lines:
                        if line.strip():
                            await said.send(_message(line))
            if 0 < len(buffer) <= limit_bytes:
                # A last line needs no end.
                await said.send(_message(bytes(buffer)))


def _message(line: bytes) -> Incoming:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(
    sink: int, to_say: ObjectReceiveStream[SessionMessage], written: anyio.Event
) -> None:
    # A client that does not read any more is found out by the end of what it sends.
    with suppress(BrokenPipeError, ConnectionError):
        async with to_say:
            async for each in to_say:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                rest = memoryview(text.encode() + b"\n")
                while rest:
                    try:
                        rest = rest[os.write(sink, rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(sink)
    written.set()
