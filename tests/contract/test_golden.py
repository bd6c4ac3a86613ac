"""Every golden exchange of every dialect, in every direction and every way of feeding."""

from pathlib import Path

import pytest

from woollama.core.testing.golden import FEEDINGS, Case, Feeding, check_case, load_cases
from woollama.core.wire import DIALECTS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dialects"
CASES = [case for name in DIALECTS for case in load_cases(FIXTURES / name)]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_has_golden_exchanges(name: str) -> None:
    assert any(case.dialect == name for case in CASES), f"no fixtures for {name!r}"


@pytest.mark.parametrize("feeding", FEEDINGS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}-{case.path.name}")
def test_golden_exchange(case: Case, feeding: Feeding) -> None:
    check_case(DIALECTS[case.dialect], case, feeding)
