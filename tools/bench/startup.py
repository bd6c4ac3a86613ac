"""From the start of a server to its open port and first answer, and its memory when it is new."""

import http.client
import json
import time
from collections.abc import Sequence

from tools.bench.comparison import Pace, apply_load, sampled, say
from tools.bench.sample import Measured, Sample
from tools.bench.stage import Actor, Stage, StageError
from tools.bench.target import Target, find_target

SCENARIO = "start"


def ask_once(target: Target, actor: Actor) -> str:
    """Ask one plain question; return what went wrong, or nothing."""
    model = target.model.replace("{}", "chat")
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    headers = {"content-type": "application/json"}
    for line in target.headers:
        name, _, value = line.partition(": ")
        headers[name] = value
    connection = http.client.HTTPConnection("127.0.0.1", actor.port, timeout=30)
    try:
        connection.request("POST", target.path, body, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"first question: {type(error).__name__}"
    finally:
        connection.close()
    return "" if status == 200 else f"first question: status {status}"


def start_once(stage: Stage, target: Target) -> Measured:
    """Start a server afresh, ask it, load it with 64 connections for a second, and stop it."""
    try:
        actor = stage.start(target)
    except StageError as error:
        return Measured(trouble=str(error))
    try:
        open_s = time.monotonic()
        trouble = ask_once(target, actor)
        answered_s = actor.up_s + time.monotonic() - open_s
        loaded = apply_load(target, actor, "chat-64", seconds=1, grace_s=10)
    finally:
        stage.stop(target.name)
    values = {"port_s": round(actor.up_s, 3), "answer_s": round(answered_s, 3)}
    if "rss_mb" in loaded.values:
        values["rss_mb"] = loaded.values["rss_mb"]
    return Measured(values=values, trouble=trouble or loaded.trouble)


def measure_startup(stage: Stage, names: Sequence[str], pace: Pace) -> tuple[Sample, ...]:
    """Start every target in turn, round by round. A first round only fills the file caches."""
    samples = list[Sample]()
    targets = [find_target(name) for name in names]
    for number in range(-1, pace.rounds):
        for target in targets:
            if time.monotonic() > pace.end_s:
                say("time is up; what follows is left out")
                return tuple(samples)
            measured = start_once(stage, target)
            if number >= 0:
                samples.append(sampled(target.name, SCENARIO, number, measured))
    return tuple(samples)
