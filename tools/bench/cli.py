"""The command line: measure the goals, compare targets, or print saved measurements again."""

import argparse
import datetime
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tools.bench import goals
from tools.bench.comparison import Pace, Step, compare, say
from tools.bench.figures import median, written
from tools.bench.goal import Outcome, judge
from tools.bench.imports import measure_imports
from tools.bench.library import measure_libraries
from tools.bench.places import bench_home
from tools.bench.sample import Sample, load_samples, save_samples
from tools.bench.scenario import ScenarioError
from tools.bench.stage import Stage
from tools.bench.startup import measure_startup
from tools.bench.tables import all_tables, goals_table
from tools.bench.target import TargetError


class Options(argparse.Namespace):
    """The command line."""

    command: str
    rounds: int
    seconds: float
    grace: float
    minutes: float
    out: Path | None
    parts: list[str]
    targets: list[str]
    scenarios: list[str]
    file: Path


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("goals", "measure the speed goals"), ("compare", "compare targets")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--rounds", type=int, default=3)
        command.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
        command.add_argument("--grace", type=float, default=30.0, help="seconds to end in")
        command.add_argument("--minutes", type=float, default=20.0, help="limit of the whole run")
        command.add_argument("--out", type=Path, help="file name without suffix for the results")
        if name == "goals":
            command.add_argument("--parts", type=_words, default=list(goals.PARTS))
        else:
            command.add_argument("--targets", type=_words, required=True)
            command.add_argument("--scenarios", type=_words, required=True)
    shown = commands.add_parser("show", help="print the tables of a .jsonl file again")
    shown.add_argument("file", type=Path)
    options = parser.parse_args(arguments, namespace=Options())
    if options.command == "goals" and (unknown := set(options.parts) - set(goals.PARTS)):
        parser.error(f"no part {min(unknown)!r}; there are: {', '.join(goals.PARTS)}")
    return options


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def measure_goals(parts: Sequence[str], pace: Pace) -> tuple[Sample, ...]:
    """Measure the parts, the quick ones first."""
    samples = list[Sample]()
    with Stage() as stage:
        if "startup" in parts:
            say("start-up")
            samples += measure_startup(stage, (goals.OURS, goals.UVICORN), pace)
        if "imports" in parts:
            say("imports")
            samples += measure_imports(pace)
        if "library" in parts:
            samples += measure_libraries(stage, pace)
        if "server" in parts:
            samples += compare(stage, goals.STEPS, pace)
    return tuple(samples)


def judge_all(samples: Sequence[Sample], parts: Sequence[str]) -> tuple[Outcome, ...]:
    """The outcome of every goal of the parts."""
    return tuple(judge(goal, samples) for goal in goals.GOALS if goal.part in parts)


def report(samples: Sequence[Sample], outcomes: Sequence[Outcome], out: Path | None) -> None:
    """Print the tables, and save them with the samples."""
    when = datetime.datetime.now(datetime.UTC)
    head = (
        f"{when:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, {platform.system()}"
        f" {platform.machine()}, Python {platform.python_version()},"
        f" machine load {written(median(sample.machine_load for sample in samples))}"
    )
    text = "\n\n".join(
        part
        for part in (head, goals_table(outcomes) if outcomes else "", all_tables(samples))
        if part
    )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    base = out or bench_home() / "results" / f"{when:%Y%m%d-%H%M%S}"
    base.parent.mkdir(parents=True, exist_ok=True)
    save_samples(samples, base.with_name(base.name + ".jsonl"))
    base.with_name(base.name + ".md").write_text(text + "\n", encoding="utf-8")
    say(f"saved as {base}.jsonl and .md")


def main(arguments: Sequence[str]) -> int:
    """Run a command; ``goals`` when none is named.

    Returns:
        0 when all that was asked for was measured and every goal holds, 1 when not, 2 when the
        command line names something that does not exist.
    """
    options = parse_options(arguments or ["goals"])
    if options.command == "show":
        samples = load_samples(options.file)
        outcomes = judge_all(samples, goals.PARTS)
        sys.stdout.write(f"{goals_table(outcomes)}\n\n{all_tables(samples)}\n")
        return 0
    signal.signal(signal.SIGTERM, _leave)
    pace = Pace(
        rounds=options.rounds,
        seconds=options.seconds,
        grace_s=options.grace,
        end_s=time.monotonic() + options.minutes * 60,
    )
    try:
        if options.command == "goals":
            samples = measure_goals(options.parts, pace)
            outcomes = judge_all(samples, options.parts)
        else:
            steps = [Step(scenario=s, targets=tuple(options.targets)) for s in options.scenarios]
            with Stage() as stage:
                samples, outcomes = compare(stage, steps, pace), ()
    except (TargetError, ScenarioError) as error:
        say(str(error))
        return 2
    report(samples, outcomes, options.out)
    measured = bool(samples) and all(sample.values for sample in samples)
    hold = all(outcome.verdict in {"aim met", "holds"} for outcome in outcomes)
    return 0 if measured and hold else 1


def _leave(number: int, frame: FrameType | None) -> None:
    """SIGTERM: unwind, so that the stage is cleared."""
    raise SystemExit(128 + number)
