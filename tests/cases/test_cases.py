"""Faults of the real world, each against a daemon of its own, and what is right then."""

from collections.abc import Mapping
from concurrent.futures import Future

import msgspec
import pytest
from _pytest.mark import ParameterSet

from tests.cases.features import EXPECTED_TO_DIFFER, ready
from tests.cases.run import Verdict, run_case
from tests.cases.schema import Case, load_cases

# One process of a run in several has the pool of all cases.
pytestmark = pytest.mark.xdist_group("cases")

LONGEST_S = 120
CASES = load_cases()


def _parameter(case: Case) -> ParameterSet:
    if case.id not in EXPECTED_TO_DIFFER:
        return pytest.param(case, id=case.id)
    reason = EXPECTED_TO_DIFFER[case.id].reason
    differs = pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)
    return pytest.param(case, id=case.id, marks=differs)


@pytest.mark.parametrize("case", [_parameter(case) for case in ready(CASES.values())])
def test_what_is_right_happens(case: Case, verdicts: Mapping[str, Future[Verdict]]) -> None:
    verdict = verdicts[case.id].result(LONGEST_S)
    report = _report(case, verdict)
    difference = EXPECTED_TO_DIFFER.get(case.id)
    if difference is not None and [difference.check] != [
        problem.partition(":")[0] for problem in verdict.problems
    ]:
        pytest.fail(f"It must differ in {difference.check} alone.\n{report}", pytrace=False)
    assert () == verdict.problems, report


@pytest.mark.parametrize("id", sorted(EXPECTED_TO_DIFFER))
def test_a_provider_that_is_not_relayed_does_what_the_relay_does_not(id: str) -> None:
    case = CASES[id]
    read = {
        name: msgspec.structs.replace(table, set={**table.set, "relay": False})
        for name, table in case.config.inferencers.items()
    }
    config = msgspec.structs.replace(case.config, inferencers=read)
    verdict = run_case(msgspec.structs.replace(case, config=config))
    assert () == verdict.problems, _report(case, verdict)


def _report(case: Case, verdict: Verdict) -> str:
    problems = "\n".join(f"- {problem}" for problem in verdict.problems)
    log = verdict.log[-4000:]
    return f"{case.title}\nfault: {case.fault}\nright: {case.right}\n{problems}\nlog:\n{log}"
