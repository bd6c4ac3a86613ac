"""Task groups that raise the cause itself instead of a group of one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

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
        cause: BaseException = failures
        while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
            cause = cause.exceptions[0]
        if cause is failures:
            raise
        raise cause from cause.__cause__
