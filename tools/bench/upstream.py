"""A mock LLM upstream that answers as fast as one Python process can.

A bare asyncio protocol on uvloop with hand-written HTTP/1.1, so that no framework is part of what
is compared.

    python -m tools.bench.upstream --port 9100

It speaks Chat Completions (``POST …/chat/completions``) and Ollama's protocol (``POST /api/chat``),
and lists its models in both. The model's name says how to answer, see ``replies.stream_script``;
without streaming the answer is a fixed JSON body of about 600 bytes. Each streamed text is
CLOCK_MONOTONIC in ns (19 digits) and a space, so that a reader on this machine can tell how long
a chunk was on its way.
"""

import argparse
import asyncio
import re
import time
from functools import lru_cache
from typing import cast

import uvloop

from tools.bench.replies import Script, chat_reply, fixed_reply, stream_script
from tools.bench.request import Request, take_request

_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')
_STREAM = re.compile(rb'"stream"\s*:\s*(true|false)')

_chat_reply = lru_cache(maxsize=100)(chat_reply)
_fixed_reply = lru_cache(maxsize=100)(fixed_reply)
_stream_script = lru_cache(maxsize=100)(stream_script)


class Upstream(asyncio.Protocol):
    """One connection of a client: requests in, replies out, in order."""

    def __init__(self) -> None:
        """Nothing read yet, no stream under way."""
        self._loop = asyncio.get_running_loop()
        self._read = b""
        self._script: Script | None = None
        self._sent = 0
        self._began_s = 0.0
        self._paused = self._held = False
        self._timer: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the stream under way, if any."""
        if self._timer:
            self._timer.cancel()
        self._script = None

    def pause_writing(self) -> None:
        """The client does not keep up: hold the stream."""
        self._paused = True

    def resume_writing(self) -> None:
        """The client has caught up: go on."""
        self._paused = False
        if self._held:  # else a timer still runs that will go on by itself
            self._held = False
            self._step()

    def data_received(self, data: bytes) -> None:
        """Answer what has come in whole."""
        self._read = self._read + data if self._read else data
        self._answer_all()

    def _answer_all(self) -> None:
        while self._read and self._script is None:
            request = take_request(self._read)
            if request is None:
                return
            self._read = self._read[request.size :]
            self._answer(request)

    def _answer(self, request: Request) -> None:
        native = request.path == b"/api/chat"
        if not native and not request.path.endswith(b"/chat/completions"):
            self._transport.write(_fixed_reply(request.path))
            return
        found = _MODEL.search(request.body)
        model = found[1].decode() if found else "chat"
        found = _STREAM.search(request.body)
        streams = found[1] == b"true" if found else native  # Ollama streams unless told not to
        if not streams:
            self._transport.write(_chat_reply(model, native=native))
            return
        usage = b'"include_usage"' in request.body
        self._script = _stream_script(model, native=native, usage=usage)
        self._sent, self._began_s = 0, self._loop.time()
        self._transport.write(self._script.head)
        self._step()

    def _step(self) -> None:
        """Write the next chunk, and see to it that the one after follows in time."""
        script = self._script
        if script is None:
            return
        if self._paused:
            self._held = True
            return
        if self._sent == script.count:
            self._script = self._timer = None
            self._transport.write(script.tail)
            self._answer_all()
            return
        self._transport.write(script.chunk % time.monotonic_ns())
        self._sent += 1
        if script.delay_s:
            due_s = self._began_s + self._sent * script.delay_s
            self._timer = self._loop.call_at(due_s, self._step)
        else:
            self._timer = self._loop.call_soon(self._step)


async def serve(port: int) -> None:
    """Serve on the loopback port until cancelled."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=9100)
    uvloop.run(serve(cast("int", parser.parse_args().port)))
