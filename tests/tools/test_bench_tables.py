"""What the tables of the speed tool look like."""

from tools.bench.goal import Goal, Outcome, Ref
from tools.bench.sample import Sample
from tools.bench.tables import all_tables, goals_table, table

GOAL = Goal(
    label="requests/s",
    part="server",
    ours=Ref(subject="ours", scenario="chat-64", field="requests_per_s"),
    must=20,
    aim=35,
    better="more",
)


def sample(subject: str, number: int, **values: float) -> Sample:
    return Sample(subject=subject, scenario="call-64", round=number, machine_load=1, values=values)


def test_a_cell_cannot_break_its_table() -> None:
    assert "| a |\n| --- |\n| x\\|y z |" == table(["a"], [["x|y\nz"]])


def test_a_missed_goal_says_by_how_much_of_the_limit() -> None:
    missed = Outcome(
        goal=GOAL, ours=1500, against=100, judged=15, low=14.5, high=16, verdict="MISSED"
    )

    row = goals_table([missed]).splitlines()[-1]

    assert (
        "| requests/s | 1,500 | 100 | 15.0 x | 14.5 to 16.0 | ≥ 20 x | ≥ 35 x | MISSED by 25% |"
        == row
    )


def test_a_goal_missed_for_trouble_says_what_it_was() -> None:
    missed = Outcome(goal=GOAL, judged=50, verdict="MISSED", trouble=("3 cut off",))

    assert goals_table([missed]).endswith("| MISSED; 3 cut off |")


def test_a_goal_that_was_not_measured_has_no_numbers() -> None:
    row = goals_table([Outcome(goal=GOAL)]).splitlines()[-1]

    assert "| requests/s | - | - | - x | - to - | ≥ 20 x | ≥ 35 x | not measured |" == row


def test_a_scenario_has_medians_and_ratios_to_the_first_subject() -> None:
    samples = [
        *(sample("a", 0, cpu_us_per_call=100, calls_per_s=10),),
        *(sample("a", 1, cpu_us_per_call=200, calls_per_s=30),),
        *(sample("b", 0, cpu_us_per_call=300, calls_per_s=5),),
    ]

    assert [
        "### call-64",
        "",
        "| subject | cpu us per call | calls per s | cpu us per call / a | rounds | max/min"
        " | trouble |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| a | 150 | 20.0 | 1.00 | 2 | 2.00 |  |",
        "| b | 300 | 5.00 | 2.00 | 1 | 1.00 |  |",
    ] == all_tables(samples).splitlines()
