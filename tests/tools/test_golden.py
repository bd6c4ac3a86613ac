"""The writer of golden files says what the files say."""

from pathlib import Path

import pytest

from tools.golden import FIXTURES, expected
from woollama.core.testing.golden import Case, load_cases, matches
from woollama.core.wire import DIALECTS

CASES = [case for name in DIALECTS for case in load_cases(FIXTURES / name)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}-{case.path.name}")
def test_it_writes_what_is_there(case: Case) -> None:
    for file, content in expected(DIALECTS[case.dialect], case):
        assert case.has(file), f"{Path(case.path.name) / file} would be written"
        if file != "canonical_events.json":
            assert matches(case.json(file), content), file
