"""The load client: one server, one scenario, one line of JSON (``sample.Measured``).

    python -m tools.bench.load --url http://127.0.0.1:9100/v1/chat/completions --scenario chat-64

A run begins no request after ``--seconds``, or when ``--requests`` have begun; streams under way
may end within ``--grace`` seconds more, and what is left then counts as trouble, not as slow.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

import msgspec
import uvloop

from tools.bench.connection import Connection, Job, Tally
from tools.bench.figures import quantile
from tools.bench.meter import Meter
from tools.bench.sample import Measured
from tools.bench.scenario import Scenario, parse_scenario

_NS = 1_000_000_000
_CONNECT_AT_ONCE = 64
_RAMP_S = 1.0
"""Slow streams begin spread over this time, as users come."""
_SYSTEM = "You are a helpful assistant that answers in one short paragraph."
_QUESTION = "Tell me about the history of the river and the people who live by it. " * 4


class Options(argparse.Namespace):
    """The command line."""

    url: str
    scenario: str
    model: str
    header: list[str]
    pid: int
    seconds: float
    grace: float
    requests: int


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--url", required=True)
    add("--scenario", required=True, help="chat-N, stream-N or slow-N, N connections")
    add("--model", default="{}", help="'{}' stands for the scenario's own model name")
    add("--header", action="append", default=[])
    add("--pid", type=int, default=0, help="the server, whose CPU time and memory are read")
    add("--seconds", type=float, default=3)
    add("--grace", type=float, default=20)
    add("--requests", type=int, default=1_000_000)
    return parser.parse_args(arguments, namespace=Options())


def build_request(
    url: SplitResult, scenario: Scenario, *, model: str, headers: Sequence[str]
) -> bytes:
    """The whole request that every connection sends."""
    body: dict[str, object] = {
        "model": model.replace("{}", scenario.model),
        "messages": [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": _QUESTION},
        ],
    }
    if scenario.streaming:
        body["stream"] = True
    data = json.dumps(body).encode()
    lines = (
        f"POST {url.path} HTTP/1.1",
        f"host: {url.netloc}",
        "content-type: application/json",
        f"content-length: {len(data)}",
        "accept: */*",
        "user-agent: bench",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


async def connect(tally: Tally, count: int) -> list[Connection]:
    """Open the connections, a few at once so that no backlog overflows."""
    loop = asyncio.get_running_loop()
    opened = list[Connection]()
    for number in range(count):
        try:
            _, connection = await loop.create_connection(
                lambda: Connection(tally), tally.job.host, tally.job.port
            )
            opened.append(connection)
        except OSError as error:
            tally.fault(f"connect: {type(error).__name__}")
        if number % _CONNECT_AT_ONCE == _CONNECT_AT_ONCE - 1:
            await asyncio.sleep(0.005)
    return opened


async def measure(options: Options) -> Measured:
    """Run the scenario and say what came of it."""
    scenario = parse_scenario(options.scenario)
    url = urlsplit(options.url)
    job = Job(
        scenario=scenario,
        host=url.hostname or "127.0.0.1",
        port=url.port or 80,
        request=build_request(url, scenario, model=options.model, headers=options.header),
    )
    tally, meter = Tally(job), Meter(options.pid)
    connections = await connect(tally, scenario.connections)
    meter.rss_bytes()
    began_ns, cpu_s, own_s = time.monotonic_ns(), meter.cpu_s(), time.process_time()
    begin(tally, connections, options, began_ns=began_ns)
    last_ns = began_ns + int((options.seconds + options.grace) * _NS)
    while connections and not tally.over.is_set() and time.monotonic_ns() < last_ns:
        try:
            await asyncio.wait_for(tally.over.wait(), 0.25)
        except TimeoutError:
            meter.rss_bytes()
    unfinished = tally.active
    end_ns = time.monotonic_ns() if unfinished or not tally.last_ns else tally.last_ns
    cpu_s, own_s = meter.cpu_s() - cpu_s, time.process_time() - own_s
    meter.rss_bytes()
    for connection in connections:
        connection.stop()
    wall_s = (end_ns - began_ns) / _NS
    return Measured(
        values=summed(tally, wall_s=wall_s, cpu_s=cpu_s, own_s=own_s, rss_bytes=meter.peak_bytes),
        trouble=told(tally.troubles, unfinished),
    )


def begin(
    tally: Tally, connections: Sequence[Connection], options: Options, *, began_ns: int
) -> None:
    """Let every connection ask: at once, or one stream each, begun over the ramp."""
    loop, slow = asyncio.get_running_loop(), tally.job.scenario.kind == "slow"
    requests = len(connections) if slow else options.requests
    begin_s = _RAMP_S + 1 if slow else options.seconds
    tally.allow(requests, until_ns=began_ns + int(begin_s * _NS))
    for number, connection in enumerate(connections):
        if slow:
            loop.call_later(_RAMP_S * number / len(connections), connection.ask)
        else:
            connection.ask()


def told(troubles: dict[str, int], unfinished: int) -> str:
    """What went wrong, in a few words."""
    counts = {**troubles, "unfinished": unfinished}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def summed(
    tally: Tally, *, wall_s: float, cpu_s: float, own_s: float, rss_bytes: int
) -> dict[str, float]:
    """The numbers of a run, by field; README.md says what each is."""
    asked = tally.good + tally.active + sum(tally.troubles.values())
    found: dict[str, float | None] = {
        "served_share": tally.good / asked if asked else 0.0,
        "requests_per_s": tally.good / wall_s,
        "p50_ms": _ms(quantile(tally.took_ns, 0.5)),
        "p95_ms": _ms(quantile(tally.took_ns, 0.95)),
        "p99_ms": _ms(quantile(tally.took_ns, 0.99)),
        "cpu_us_per_request": cpu_s / tally.good * 1e6 if tally.good else None,
        "cpu_percent": cpu_s / wall_s * 100,
        "client_cpu_percent": own_s / wall_s * 100,
        "rss_mb": rss_bytes / 1e6,
    }
    if tally.job.scenario.streaming:
        found |= {
            "first_p50_ms": _ms(quantile(tally.first_ns, 0.5)),
            "chunks_per_s": tally.chunks / wall_s,
            "cpu_us_per_chunk": cpu_s / tally.chunks * 1e6 if tally.chunks else None,
            "late_p50_ms": _ms(quantile(tally.late_ns, 0.5)),
            "late_p99_ms": _ms(quantile(tally.late_ns, 0.99)),
        }
    return {name: round(value, 4) for name, value in found.items() if value is not None}


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    measured = uvloop.run(measure(parse_options(arguments)))
    sys.stdout.write(msgspec.json.encode(measured).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # nothing to close that the process's end does not close
