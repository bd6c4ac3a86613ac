"""The cases that were selected, run a few at a time."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest

from tests.cases.pool import open_pool
from tests.cases.run import Verdict
from tests.cases.schema import Case


@pytest.fixture(scope="session")
def verdicts(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Verdict]]]:
    """The verdicts to come of the cases whose tests are selected, by the case's id."""
    found = [getattr(item, "callspec", None) for item in request.session.items]
    values = [value for spec in found if spec is not None for value in spec.params.values()]
    cases = {value.id: value for value in values if isinstance(value, Case)}
    with open_pool(cases) as pool:
        yield pool
