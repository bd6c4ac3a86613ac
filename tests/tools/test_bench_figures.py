"""The arithmetic of the speed tool."""

import pytest

from tools.bench.figures import (
    median,
    paired_differences,
    paired_ratios,
    quantile,
    spread,
    written,
)


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.5, 51), (0.95, 96), (0.99, 100), (1, 100)]
)
def test_a_quantile_is_one_of_the_values(share: float, expected: float) -> None:
    values = list(range(100, 0, -1))

    assert expected == quantile(values, share)


def test_nothing_has_no_quantile_median_or_spread() -> None:
    assert (None, None, None) == (quantile([], 0.5), median([]), spread([]))


def test_a_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert 2.5 == median(iter([4.0, 1.0, 3.0, 2.0]))


def test_a_spread_is_the_largest_over_the_smallest() -> None:
    assert 4 == spread([2.0, 8.0, 4.0])


def test_a_spread_from_zero_has_no_value() -> None:
    assert spread([0.0, 8.0]) is None


def test_ratios_are_taken_within_a_round() -> None:
    assert (2.0, 3.0) == paired_ratios({0: 20.0, 1: 3.0}, {1: 1.0, 0: 10.0})


def test_a_round_without_the_other_side_or_with_a_zero_gives_no_ratio() -> None:
    assert (5.0,) == paired_ratios({0: 20.0, 1: 3.0, 2: 5.0}, {1: 0.0, 2: 1.0, 3: 9.0})


def test_differences_are_taken_within_a_round_and_zero_counts() -> None:
    assert (0.5, -1.0) == paired_differences({0: 0.5, 1: 1.0, 2: 7.0}, {0: 0.0, 1: 2.0})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "-"),
        (0, "0.00"),
        (0.003714, "0.00371"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (123.4, "123"),
        (54321.0, "54,321"),
        (-12.34, "-12.3"),
    ],
)
def test_a_number_is_written_with_three_digits(value: float | None, expected: str) -> None:
    assert expected == written(value)
