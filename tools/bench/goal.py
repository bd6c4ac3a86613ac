"""A speed goal, and how measurements are judged by it."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from tools.bench.figures import median, paired_differences, paired_ratios
from tools.bench.sample import Sample, by_round, troubles

Verdict = Literal["aim met", "holds", "MISSED", "not measured"]


class Ref(msgspec.Struct, frozen=True, kw_only=True):
    """A measured number: one field of one subject in one scenario."""

    subject: str
    scenario: str
    field: str


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of goals.

    Attributes:
        label: What is measured.
        part: The part of the run that measures it.
        ours: Our number.
        against: What it is compared with; None when the number itself is judged.
        how: ``ratio`` ours over theirs, ``difference`` ours less theirs, ``value`` ours alone.
        unit: Written after the judged number.
        must: The limit that must hold.
        aim: The limit aimed at.
        better: Whether more is better or less.
    """

    label: str
    part: str
    ours: Ref
    against: Ref | None = None
    how: Literal["ratio", "difference", "value"] = "ratio"
    unit: str = "x"
    must: float
    aim: float
    better: Literal["more", "less"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A goal and what came of it.

    Attributes:
        goal: The goal.
        ours: Median of our number over the rounds, None when there is none.
        against: Median of theirs.
        judged: Median of the rounds' ratios, differences or values.
        low: The lowest round's.
        high: The highest round's.
        verdict: Of the judged number by the goal's limits; trouble on our side is ``MISSED``.
        trouble: What went wrong, on either side.
    """

    goal: Goal
    ours: float | None = None
    against: float | None = None
    judged: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "not measured"
    trouble: tuple[str, ...] = ()


def keeps(value: float, limit: float, better: Literal["more", "less"]) -> bool:
    """Whether the value is on the good side of the limit, or on it."""
    return value >= limit if better == "more" else value <= limit


def judge(goal: Goal, samples: Iterable[Sample]) -> Outcome:
    """What the samples say about a goal.

    A wrong answer is not a fast one: with any trouble in our own measurements the goal is missed.
    """
    kept = tuple(samples)
    ours = _rounds(kept, goal.ours)
    theirs: Mapping[int, float] = _rounds(kept, goal.against) if goal.against else {}
    judged = _judged(goal, ours, theirs)
    our_trouble = troubles(kept, goal.ours.subject, goal.ours.scenario)
    their_trouble = (
        troubles(kept, goal.against.subject, goal.against.scenario) if goal.against else ()
    )
    middle = median(judged)
    verdict: Verdict = "not measured"
    if our_trouble:
        verdict = "MISSED"
    elif middle is not None and keeps(middle, goal.aim, goal.better):
        verdict = "aim met"
    elif middle is not None:
        verdict = "holds" if keeps(middle, goal.must, goal.better) else "MISSED"
    return Outcome(
        goal=goal,
        ours=median(ours.values()),
        against=median(theirs.values()),
        judged=middle,
        low=min(judged, default=None),
        high=max(judged, default=None),
        verdict=verdict,
        trouble=tuple(dict.fromkeys(our_trouble + their_trouble)),
    )


def _rounds(samples: tuple[Sample, ...], ref: Ref) -> Mapping[int, float]:
    return by_round(samples, ref.subject, ref.scenario, ref.field)


def _judged(
    goal: Goal, ours: Mapping[int, float], theirs: Mapping[int, float]
) -> tuple[float, ...]:
    if goal.how == "value":
        return tuple(ours.values())
    if goal.how == "difference":
        return paired_differences(ours, theirs)
    return paired_ratios(ours, theirs)
