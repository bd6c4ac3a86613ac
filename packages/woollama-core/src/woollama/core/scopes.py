"""Task groups that raise the cause itself instead of a group of one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import anyio
from anyio.abc import TaskGroup

__all__ = ["open_tasks"]


@asynccontextmanager
async def open_tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose only failure is raised as it is.

    Several failures stay a group: hiding all but one would lose the others.

    Raises:
        BaseException: what the body or the only failing task raised.
    """
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as failures:
        cause = _cause(failures)
        if cause is failures:
            raise
        raise cause from cause.__cause__


def _cause(failure: BaseException) -> BaseException:
    while isinstance(failure, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", failure)
        if len(group.exceptions) != 1:
            return group
        failure = group.exceptions[0]
    return failure
