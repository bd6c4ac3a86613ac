"""How measurements are judged, and that every goal is measured by some step."""

from pathlib import Path
from typing import Literal

import pytest

from tools.bench import goals, imports, library, startup
from tools.bench.goal import Goal, Ref, Verdict, judge
from tools.bench.sample import Sample, load_samples, save_samples
from tools.bench.scenario import ScenarioError, parse_scenario
from tools.bench.target import find_target


def sample(subject: str, number: int, value: float, trouble: str = "") -> Sample:
    return Sample(
        subject=subject,
        scenario="chat-64",
        round=number,
        machine_load=0.5,
        values={"rate": value},
        trouble=trouble,
    )


def goal(
    *,
    must: float,
    aim: float,
    how: Literal["ratio", "difference", "value"] = "ratio",
    better: Literal["more", "less"] = "more",
) -> Goal:
    return Goal(
        label="rate",
        part="server",
        ours=Ref(subject="ours", scenario="chat-64", field="rate"),
        against=Ref(subject="peer", scenario="chat-64", field="rate"),
        how=how,
        must=must,
        aim=aim,
        better=better,
    )


ROUNDS = (
    *(sample("ours", 0, 30), sample("peer", 0, 10)),
    *(sample("ours", 1, 80), sample("peer", 1, 40)),
    *(sample("ours", 2, 50), sample("peer", 2, 10)),
)


@pytest.mark.parametrize(
    ("must", "aim", "expected"), [(2, 3, "aim met"), (3, 4, "holds"), (3.1, 4, "MISSED")]
)
def test_the_median_of_the_rounds_ratios_is_judged(
    must: float, aim: float, expected: Verdict
) -> None:
    outcome = judge(goal(must=must, aim=aim), ROUNDS)

    assert (3, 2, 5, expected) == (outcome.judged, outcome.low, outcome.high, outcome.verdict)
    assert (50, 10) == (outcome.ours, outcome.against)


def test_a_difference_is_judged_where_less_is_better() -> None:
    outcome = judge(goal(must=40, aim=30, how="difference", better="less"), ROUNDS)

    assert (40, "holds") == (outcome.judged, outcome.verdict)


def test_a_value_is_judged_alone() -> None:
    outcome = judge(goal(must=40, aim=50, how="value"), ROUNDS)

    assert (50, "aim met") == (outcome.judged, outcome.verdict)


def test_trouble_on_our_side_misses_the_goal_however_fast() -> None:
    outcome = judge(goal(must=2, aim=3), (*ROUNDS, sample("ours", 3, 900, "1 cut off")))

    assert ("MISSED", ("1 cut off",)) == (outcome.verdict, outcome.trouble)


def test_trouble_on_the_other_side_is_told_and_does_not_decide() -> None:
    outcome = judge(goal(must=2, aim=3), (*ROUNDS, sample("peer", 3, 1, "5 unfinished")))

    assert ("aim met", ("5 unfinished",)) == (outcome.verdict, outcome.trouble)


def test_without_the_other_side_nothing_is_judged() -> None:
    outcome = judge(goal(must=2, aim=3), [sample("ours", 0, 30)])

    assert (None, "not measured") == (outcome.judged, outcome.verdict)


def test_every_goal_is_measured_by_its_part() -> None:
    measured = {(name, step.scenario) for step in goals.STEPS for name in step.targets}
    for connections in library.CONNECTIONS:
        scenario = library.scenario_name(connections)
        measured |= {(name, scenario) for name in library.LIBRARIES}
    measured |= {(name, imports.SCENARIO) for name in (imports.CORE, imports.FLOOR)}
    measured |= {(goals.OURS, startup.SCENARIO)}

    wanted = [ref for row in goals.GOALS for ref in (row.ours, row.against) if ref]

    assert [] == [ref for ref in wanted if (ref.subject, ref.scenario) not in measured]
    assert set(goals.PARTS) == {row.part for row in goals.GOALS}


def test_every_aim_is_at_least_as_hard_as_what_must_hold() -> None:
    wrong = [
        row.label
        for row in goals.GOALS
        if (row.aim < row.must if row.better == "more" else row.aim > row.must)
    ]

    assert [] == wrong


def test_every_step_names_targets_and_a_scenario_that_exist() -> None:
    for step in goals.STEPS:
        assert step.scenario == parse_scenario(step.scenario).name
        assert list(step.targets) == [find_target(name).name for name in step.targets]


@pytest.mark.parametrize("name", ["chat", "chat-", "chat-0", "chat-x", "fast-64", ""])
def test_a_name_that_is_no_scenario_is_refused_by_name(name: str) -> None:
    with pytest.raises(ScenarioError, match=f"no scenario {name!r}"):
        parse_scenario(name)


def test_saved_samples_come_back(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    save_samples(ROUNDS, file)

    assert load_samples(file) == ROUNDS
