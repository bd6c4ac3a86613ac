"""How long ``import woollama.core`` takes, next to what it cannot do without."""

import sys
import time

from tools.bench.comparison import Pace, run_measuring, sampled, say
from tools.bench.places import child_env
from tools.bench.sample import Sample

SCENARIO = "import"
CORE = "woollama.core"
FLOOR = "msgspec, anyio, asyncio"
ON_FIRST_USE = ("httpx2", "httptools")
"""Modules that the import of the core is not to bring (ssl comes with asyncio itself)."""

_PAIRS = 15
_PROBE = """
import time
began, cpu = time.perf_counter(), time.process_time()
import {modules}
took, cpu = time.perf_counter() - began, time.process_time() - cpu
import json, sys
heavy = sum(name in sys.modules for name in {heavy!r})
values = dict(import_ms=took * 1e3, import_cpu_ms=cpu * 1e3, modules=len(sys.modules), heavy=heavy)
print(json.dumps(dict(values=values)))
"""


def probe_argv(modules: str) -> list[str]:
    """The command line of a fresh interpreter that imports the modules and prints how long."""
    return [sys.executable, "-c", _PROBE.format(modules=modules, heavy=ON_FIRST_USE)]


def measure_imports(pace: Pace) -> tuple[Sample, ...]:
    """Import both in fresh interpreters, in turn, 15 times after one that fills the caches."""
    samples = list[Sample]()
    for number in range(-1, _PAIRS):
        for modules in (FLOOR, CORE):
            if time.monotonic() > pace.end_s:
                say("time is up; what follows is left out")
                return tuple(samples)
            measured = run_measuring(probe_argv(modules), child_env(), limit_s=30)
            if number >= 0:
                samples.append(sampled(modules, SCENARIO, number, measured))
    return tuple(samples)
