"""Asking again, when the operator or embedder wants it: only before the first byte (C-16)."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

import anyio

from woollama.core.canonical import Value
from woollama.core.errors import InferenceError, ProviderError, TransportError

if TYPE_CHECKING:
    from tenacity import RetryCallState

__all__ = ["NO_RETRIES", "Retries", "enter_with_retries"]

T = TypeVar("T")


class Retries(Value, frozen=True, kw_only=True):
    """How often and how long.

    Attributes:
        attempts: requests in all; 1 asks once.
        first_wait_s: before the second request; it doubles each time, with up to a quarter more.
        longest_wait_s: the longest wait of ours.
        longest_asked_s: a peer that asks for more is not asked again.
    """

    attempts: int = 1
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_s: float = 120.0


NO_RETRIES = Retries()


async def enter_with_retries(
    opener: Callable[[], AbstractAsyncContextManager[T]],
    retries: Retries,
    *,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> tuple[AbstractAsyncContextManager[T], T]:
    """Enters what ``opener`` gives, again after a failure that may pass.

    What may pass: a connection that could not be made, 408, 409, 429 and 5xx. A peer's
    ``Retry-After`` and ``x-should-retry`` are obeyed.

    Args:
        opener: gives a fresh context for each attempt.
        retries: how often and how long.
        sleep: waits so many seconds.

    Returns:
        The context that was entered, for the caller to leave, and its value.

    Raises:
        InferenceError: the last failure.
    """
    if retries.attempts <= 1:
        context = opener()
        return context, await context.__aenter__()
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

    async for attempt in AsyncRetrying(
        sleep=sleep,
        retry=retry_if_exception(lambda error: _may_pass(error, retries)),
        stop=stop_after_attempt(retries.attempts),
        wait=_wait(retries),
        reraise=True,
    ):
        with attempt:
            context = opener()
            return context, await context.__aenter__()
    raise AssertionError("tenacity ended without a result or a failure")


def _may_pass(error: BaseException, retries: Retries) -> bool:
    if isinstance(error, TransportError):
        return error.retryable and (error.kind == "connect" or error.code == "connect_timeout")
    if not isinstance(error, ProviderError) or (error.retry_after or 0) > retries.longest_asked_s:
        return False
    if "x-should-retry" in error.headers:
        return error.retryable
    return error.retryable and (error.status in {408, 409, 429} or error.status >= 500)


def _wait(retries: Retries) -> Callable[["RetryCallState"], float]:
    from tenacity import wait_exponential, wait_random

    growing = wait_exponential(multiplier=retries.first_wait_s, max=retries.longest_wait_s)

    def wait(state: "RetryCallState") -> float:
        failure = state.outcome.exception() if state.outcome is not None else None
        if isinstance(failure, InferenceError) and failure.retry_after is not None:
            return failure.retry_after
        pause = growing(state)
        return pause + wait_random(0, pause / 4)(state)

    return wait
