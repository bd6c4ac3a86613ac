"""Measure several targets interleaved: A B C, A B C, …, scenario by scenario, round by round."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import msgspec

from tools.bench.places import module_argv, module_env
from tools.bench.sample import Measured, Sample
from tools.bench.scenario import parse_scenario
from tools.bench.stage import Actor, Stage, StageError
from tools.bench.target import Target, find_target


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario and the targets that go through it, one after another."""

    scenario: str
    targets: tuple[str, ...]


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        rounds: How often each step is taken.
        seconds: How long one measurement begins new requests.
        grace_s: How long what is under way then may take.
        end_s: When (``time.monotonic``) no new measurement begins.
    """

    rounds: int = 3
    seconds: float = 3.0
    grace_s: float = 30.0
    end_s: float


def say(text: str) -> None:
    """A line of progress, on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def apply_load(
    target: Target, actor: Actor, scenario: str, *, seconds: float, grace_s: float
) -> Measured:
    """Run the load client once; what it could not do is told as trouble."""
    argv = module_argv(
        "load",
        *("--url", f"http://127.0.0.1:{actor.port}{target.path}"),
        *("--scenario", scenario, "--model", target.model, "--pid", str(actor.pid)),
        *("--seconds", str(seconds), "--grace", str(grace_s)),
        *(word for header in target.headers for word in ("--header", header)),
    )
    return run_measuring(argv, module_env(), limit_s=seconds + grace_s + 30)


def run_measuring(argv: Sequence[str], env: Mapping[str, str], *, limit_s: float) -> Measured:
    """Run a process that prints one ``Measured``; what went wrong is told as trouble."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=limit_s, env=env, check=False)
    except subprocess.TimeoutExpired:
        return Measured(trouble=f"no answer within {limit_s:g} s")
    except OSError as error:
        return Measured(trouble=f"{argv[0]}: {error.strerror}")
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        return Measured(trouble=f"exit {done.returncode}: {said[-1]}")
    try:
        return msgspec.json.decode(lines[-1], type=Measured)
    except msgspec.DecodeError as error:
        return Measured(trouble=f"not understood: {error}")


def sampled(subject: str, scenario: str, number: int, measured: Measured) -> Sample:
    """A measurement in its place."""
    if measured.trouble:
        say(f"  {subject} {scenario}: {measured.trouble}")
    return Sample(
        subject=subject,
        scenario=scenario,
        round=number,
        machine_load=round(os.getloadavg()[0], 2),
        values=measured.values,
        trouble=measured.trouble,
    )


def start_all(stage: Stage, names: Sequence[str]) -> dict[str, tuple[Target, Actor]]:
    """Start the targets and warm them up; one that does not come up is said and left out."""
    up: dict[str, tuple[Target, Actor]] = {}
    for target in [find_target(name) for name in names]:
        name = target.name
        try:
            actor = stage.start(target)
        except StageError as error:
            say(str(error))
            continue
        say(f"{name}: up after {actor.up_s:.2f} s")
        for scenario in ("chat-8", "stream-8"):
            warm = apply_load(target, actor, scenario, seconds=0.5, grace_s=10)
            if warm.trouble:
                say(f"  {name} warm-up, {scenario}: {warm.trouble}")
        up[name] = target, actor
    return up


def compare(stage: Stage, steps: Sequence[Step], pace: Pace) -> tuple[Sample, ...]:
    """Take all steps, round by round, until they are done or the time is up."""
    for step in steps:
        parse_scenario(step.scenario)
    names = tuple(dict.fromkeys(name for step in steps for name in step.targets))
    up = start_all(stage, names)
    samples = list[Sample]()
    for number in range(pace.rounds):
        say(f"round {number + 1} of {pace.rounds}")
        for step in steps:
            for name in step.targets:
                if name not in up:
                    if number == 0:
                        absent = Measured(trouble=f"{name} did not come up")
                        samples.append(sampled(name, step.scenario, number, absent))
                    continue
                if time.monotonic() > pace.end_s:
                    say("time is up; what follows is left out")
                    return tuple(samples)
                target, actor = up[name]
                measured = apply_load(
                    target, actor, step.scenario, seconds=pace.seconds, grace_s=pace.grace_s
                )
                samples.append(sampled(name, step.scenario, number, measured))
    return tuple(samples)
