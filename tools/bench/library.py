"""CPU time of one call: our ``complete``, a bare HTTP call, and LiteLLM's ``acompletion``."""

import sys
import time
from pathlib import Path

from tools.bench.comparison import Pace, run_measuring, sampled, say
from tools.bench.places import child_env, litellm_python
from tools.bench.sample import Sample
from tools.bench.stage import Stage

CONNECTIONS = (1, 64)
LIBRARIES = ("httpx2", "complete", "acompletion")

_CHILD = Path(__file__).with_name("library_child.py")


def scenario_name(connections: int) -> str:
    """The scenario of that many calls at once."""
    return f"call-{connections}"


def measure_libraries(stage: Stage, pace: Pace) -> tuple[Sample, ...]:
    """Run every library in a process of its own, in turn, round by round."""
    samples = list[Sample]()
    env = child_env(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False")
    for number in range(pace.rounds):
        say(f"libraries, round {number + 1} of {pace.rounds}")
        for connections in CONNECTIONS:
            for library in LIBRARIES:
                if time.monotonic() > pace.end_s:
                    say("time is up; what follows is left out")
                    return tuple(samples)
                python = str(litellm_python()) if library == "acompletion" else sys.executable
                argv = [
                    *(
                        python,
                        "-P",
                        str(_CHILD),
                        "--library",
                        library,
                    ),  # -P: not beside our modules
                    *("--port", str(stage.upstream.port)),
                    *("--connections", str(connections), "--seconds", str(min(pace.seconds, 2))),
                ]
                measured = run_measuring(argv, env, limit_s=60)
                samples.append(sampled(library, scenario_name(connections), number, measured))
    return tuple(samples)
