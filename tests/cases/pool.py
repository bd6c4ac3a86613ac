"""Runs cases a few at a time, because most of a case is waiting."""

import threading
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from tests.cases.run import Verdict, run_case
from tests.cases.schema import Case

__all__ = ["AT_A_TIME", "open_pool"]

AT_A_TIME = 3


@contextmanager
def open_pool(
    cases: Mapping[str, Case], at_a_time: int = AT_A_TIME
) -> Generator[Mapping[str, Future[Verdict]]]:
    """The verdicts to come, by case; those that have not begun at the end are never run."""
    over = {id: threading.Event() for id in cases}
    executor = ThreadPoolExecutor(at_a_time, thread_name_prefix="case")
    try:
        yield {id: executor.submit(run_case, case, over=over[id]) for id, case in cases.items()}
    finally:
        for event in over.values():
            event.set()
        executor.shutdown(cancel_futures=True)
