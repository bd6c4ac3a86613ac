"""The arithmetic: quantiles, medians, ratios of paired rounds, and how a number is written."""

import statistics
from collections.abc import Iterable, Mapping, Sequence


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that ``share`` of the values lie below (nearest rank); None when there are none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Iterable[float]) -> float | None:
    """The middle value, or None when there are none."""
    kept = list(values)
    return statistics.median(kept) if kept else None


def spread(values: Iterable[float]) -> float | None:
    """Largest over smallest: 1 is steady. None when there are none or the smallest is 0."""
    kept = list(values)
    return max(kept) / min(kept) if kept and min(kept) > 0 else None


def paired_ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> tuple[float, ...]:
    """Ours over theirs, round by round.

    What disturbs the machine disturbs neighbours in time alike, so a ratio is taken within a
    round; rounds that lack either side, or in which theirs is 0, are left out.
    """
    return tuple(
        value / theirs[number] for number, value in sorted(ours.items()) if theirs.get(number)
    )


def paired_differences(ours: Mapping[int, float], theirs: Mapping[int, float]) -> tuple[float, ...]:
    """Ours less theirs, round by round, for rounds that have both."""
    return tuple(
        value - theirs[number] for number, value in sorted(ours.items()) if number in theirs
    )


def written(value: float | None) -> str:
    """A number for a table: three significant digits, thousands separated, ``-`` for None."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or size == 0:
        return f"{value:.2f}"
    return f"{value:.3g}"
