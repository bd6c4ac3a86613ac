"""P-5: one process, many event loops and threads; nothing is left open, nothing stays bound."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.core.chat_upstream import DONE, delta, says, streams
from woollama.core.testing.upstream import Script, serve_in_thread

PREAMBLE = """
import asyncio, gc, json, sys, weakref
from concurrent.futures import ThreadPoolExecutor
from woollama.core import complete, complete_stream, complete_sync

def how():
    return {"api_key": "k", "base_url": sys.argv[1]}

async def ask():
    return await complete("openai/m", [{"role": "user", "content": "hi"}], **how())

def stream():
    return complete_stream("openai/m", [{"role": "user", "content": "hi"}], **how())

def say(value):
    gc.collect()
    print(json.dumps(value))
"""


def run(code: str, script: Script, *, connections: int | None = None) -> Any:
    """What a program prints that may warn of nothing, and the connections it has left behind."""
    with serve_in_thread(script) as upstream:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", PREAMBLE + code, upstream.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if connections is not None:
            assert connections == len(upstream.connections)
    assert ("", 0) == (ran.stderr, ran.returncode)
    return json.loads(ran.stdout)


def test_p_5_loops_in_a_row_each_have_their_own_connections_and_are_freed() -> None:
    code = """
loops = []

async def one():
    loops.append(weakref.ref(asyncio.get_running_loop()))
    return [await ask(), await ask()]

texts = [text for _ in range(5) for text in asyncio.run(one())]
gc.collect()
say([texts, [loop() for loop in loops]])
"""
    assert [["Paris"] * 10, [None] * 5] == run(code, says(), connections=5)


def test_p_5_threads_have_their_own_loops() -> None:
    code = """
with ThreadPoolExecutor(8) as pool:
    say(list(pool.map(lambda _: asyncio.run(ask()), range(24))))
"""
    assert ["Paris"] * 24 == run(code, says(), connections=24)


def test_p_5_sixteen_calls_run_in_one_loop() -> None:
    code = """
async def all_of_them():
    return await asyncio.gather(*(ask() for _ in range(16)))

say(asyncio.run(all_of_them()))
"""
    assert ["Paris"] * 16 == run(code, says())


def test_complete_sync_can_be_called_again_and_from_threads() -> None:
    code = """
def sync(_=None):
    return complete_sync("openai/m", [{"role": "user", "content": "hi"}], **how())

with ThreadPoolExecutor(4) as pool:
    say([sync(), sync(), *pool.map(sync, range(4))])
"""
    assert ["Paris"] * 6 == run(code, says(), connections=6)


@pytest.mark.parametrize("leave", ["break", "pass"])
def test_a_stream_that_is_left_leaves_nothing_open(leave: str) -> None:
    code = f"""
async def listen():
    found = []
    async for piece in stream():
        found.append(piece)
        {leave}
    return found

say([asyncio.run(listen()) for _ in range(2)])
"""
    pieces = ["Par"] if leave == "break" else ["Par", "is"]
    script = streams(delta("Par"), delta("is", finish="stop"), DONE)
    assert [pieces, pieces] == run(code, script)


def test_a_stream_that_nobody_closes_ends_with_its_loop() -> None:
    code = """
async def begin():
    global kept
    kept = stream()
    return await anext(kept)

say(asyncio.run(begin()))
"""
    assert "Par" == run(code, streams(delta("Par"), delta("is", finish="stop"), DONE))


def test_trio_has_a_transport_of_its_own() -> None:
    code = """
import trio

async def on_trio():
    async with stream() as pieces:
        return [await anext(pieces)]

say([trio.run(on_trio), trio.run(on_trio)])
"""
    script = streams(delta("Par"), delta("is", finish="stop"), DONE)
    assert [["Par"], ["Par"]] == run(code, script)


def test_uvloop_is_a_loop_like_any_other() -> None:
    code = """
import uvloop

say([uvloop.run(ask()) for _ in range(2)])
"""
    assert ["Paris", "Paris"] == run(code, says(), connections=2)


def test_a_transport_of_the_callers_own_belongs_to_one_loop() -> None:
    code = """
from woollama.core import InferenceError
from woollama.core.transport.fast import FastTransport
from woollama.core.transport.http import HttpTransport

async def twice(transport):
    how_ = {**how(), "transport": transport}
    first = await complete("openai/m", [{"role": "user", "content": "hi"}], **how_)
    again = await complete("openai/m", [{"role": "user", "content": "hi"}], **how_)
    return [first, again]

async def closed(transport):
    found = await twice(transport)
    await transport.aclose()
    return found

def elsewhere(transport):
    try:
        return asyncio.run(twice(transport))
    except InferenceError as error:
        return str(error)

async def lent(transport):
    found = await twice(transport)
    with ThreadPoolExecutor(1) as pool:
        failed = await asyncio.get_running_loop().run_in_executor(pool, elsewhere, transport)
    await transport.aclose()
    return [found, failed]

results = []
for make in (FastTransport, HttpTransport):
    transport = make()
    results += [asyncio.run(closed(transport)), *asyncio.run(lent(transport))]
say(results)
"""
    twice = ["Paris", "Paris"]
    error = (
        "Provider 'openai': This transport belongs to another event loop: make one for each loop, "
        "or pass none."
    )
    assert [twice, twice, error] * 2 == run(code, says())
