"""One client library in one process: CPU time a call. Run by ``library.py``, by path.

    python library_child.py --library httpx2 --port 9100 --connections 64 --seconds 1

It needs nothing but the library itself (LiteLLM's environment lacks ours), prints one line of JSON
and ends without closing what is open.
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

Call = Callable[[], Awaitable[object]]

MESSAGES: list[dict[str, object]] = [{"role": "user", "content": "Tell me about the river. " * 10}]
BODY = json.dumps({"model": "chat", "messages": MESSAGES}).encode()
HEADERS = {"content-type": "application/json", "authorization": "Bearer x"}
MARK = "BENCH-OK"


@contextlib.asynccontextmanager
async def open_httpx2(base_url: str) -> AsyncGenerator[Call]:
    """A bare call: one client for all calls, a body made before, the reply's bytes."""
    import httpx2  # each library alone in its process

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=1000)
    async with httpx2.AsyncClient(timeout=60, trust_env=False, limits=limits) as client:
        url = base_url + "/chat/completions"

        async def call() -> object:
            return (await client.post(url, content=BODY, headers=HEADERS)).content

        yield call


@contextlib.asynccontextmanager
async def open_complete(base_url: str) -> AsyncGenerator[Call]:
    """Our ``complete``: messages in, text out."""
    complete = importlib.import_module("woollama.core").complete  # alone in its process

    async def call() -> object:
        return await complete("openai/chat", MESSAGES, base_url=base_url, api_key="x")

    yield call


@contextlib.asynccontextmanager
async def open_acompletion(base_url: str) -> AsyncGenerator[Call]:
    """LiteLLM's ``acompletion``: messages in, a reply object out."""
    litellm = importlib.import_module("litellm")  # not in the environment this is checked in
    vars(litellm).update(telemetry=False, suppress_debug_info=True)

    async def call() -> object:
        return await litellm.acompletion(
            model="openai/chat", messages=MESSAGES, api_base=base_url, api_key="x", num_retries=0
        )

    yield call


LIBRARIES = {
    "httpx2": open_httpx2,
    "complete": open_complete,
    "acompletion": open_acompletion,
}


async def measure(
    library: str, base_url: str, connections: int, seconds: float
) -> dict[str, float]:
    """Call over and over from that many tasks at once; return the numbers a call."""
    async with LIBRARIES[library](base_url) as call:
        first = await call()
        if MARK not in str(first):
            raise SystemExit(f"{library}: not the mock's answer: {first!r:.200}")
        calls = 0
        began, cpu = time.perf_counter(), time.process_time()
        end = began + seconds

        async def worker() -> None:
            nonlocal calls
            while time.perf_counter() < end:
                await call()
                calls += 1

        await asyncio.gather(*(worker() for _ in range(connections)))
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        return {"cpu_us_per_call": cpu / calls * 1e6, "calls_per_s": calls / wall}


def main() -> None:
    """Measure, print, and leave."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=LIBRARIES, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    import uvloop  # all on the same loop

    base_url = f"http://127.0.0.1:{options.port}/v1"
    values = uvloop.run(measure(options.library, base_url, options.connections, options.seconds))
    sys.stdout.write(json.dumps({"values": values}) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
