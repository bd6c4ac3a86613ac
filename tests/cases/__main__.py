"""``python -m tests.cases list`` lists the cases; ``run`` runs some, with what the product says."""

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence

from tests.cases.features import EXPECTED_TO_DIFFER, reason_to_wait
from tests.cases.run import run_case
from tests.cases.schema import Case, load_cases

__all__ = ["listing", "main"]

SHOWN = 700


def listing(cases: Iterable[Case]) -> str:
    """The cases that are not run or differ on purpose, with the reasons, in Markdown."""
    cases = list(cases)
    groups: dict[str, list[Case]] = {}
    for case in cases:
        reason = reason_to_wait(case)
        if reason is not None:
            groups.setdefault(f"Not run yet ({reason}):", []).append(case)
    waiting = sum(map(len, groups.values()))
    for case in cases:
        if case.id in EXPECTED_TO_DIFFER:
            title = f"Different by design: {EXPECTED_TO_DIFFER[case.id].reason}:"
            groups.setdefault(title, []).append(case)
    lines = [f"{len(cases)} cases: {len(cases) - waiting} are run, {waiting} are not yet."]
    for title, group in groups.items():
        lines += ["", title, ""]
        lines += [f"- {case.id} ({case.level}): {case.title}" for case in group]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; 1 when a case failed."""
    parser = ArgumentParser(prog="python -m tests.cases")
    parser.add_argument("command", choices=["list", "run"])
    parser.add_argument("ids", nargs="*", help="cases to run, features built or not")
    parser.add_argument("--server", choices=["hypercorn", "uvicorn"], default="hypercorn")
    parser.add_argument("--log", action="store_true", help="show what the product wrote")
    options = parser.parse_args(arguments)
    cases = load_cases()
    if options.command == "list":
        sys.stdout.write(listing(cases.values()))
        return 0
    chosen: list[str] = options.ids or [id for id in cases if not reason_to_wait(cases[id])]
    failed = 0
    for case in (cases[id] for id in chosen):
        begin = time.monotonic()
        verdict = run_case(case, environ={"WOOLLAMA_SERVER__KIND": options.server})
        word = "fail" if verdict.problems else "pass"
        failed += bool(verdict.problems)
        seconds = time.monotonic() - begin
        sys.stdout.write(f"{word} {case.id} {case.level:6} {seconds:4.1f} s  {case.title}\n")
        sys.stdout.writelines(f"       - {problem[:SHOWN]}\n" for problem in verdict.problems)
        if options.log:
            sys.stdout.write(verdict.log + os.linesep)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
