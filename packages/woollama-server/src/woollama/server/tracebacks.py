"""Tracebacks that may be logged: an exception's message can hold what a user wrote (P-60)."""

import traceback
from collections.abc import Iterator
from typing import cast

__all__ = ["describe_exception"]


def describe_exception(error: BaseException) -> str:
    """A traceback without any message: types and lines of code, causes first.

    The message of an exception can hold what a user wrote: ``KeyError`` shows the key.
    """
    return "\n".join(line for each in _chain(error, set()) for line in each)


def _chain(error: BaseException, seen: set[int]) -> Iterator[list[str]]:
    if id(error) in seen:
        return
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _chain(cause, seen)
    for inner in _members(error):
        yield from _chain(inner, seen)
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
    name = f"{error.__class__.__module__}.{error.__class__.__qualname__}"
    yield [*([frames] if frames else []), name.removeprefix("builtins.")]


def _members(error: BaseException) -> tuple[BaseException, ...]:
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).exceptions
    return ()
