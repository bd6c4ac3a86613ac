"""A task group raises the cause itself instead of a group of one."""

import anyio
import pytest

from woollama.core.scopes import open_tasks


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


async def fail(error: Exception) -> None:
    raise error


async def test_tasks_run_until_all_are_done() -> None:
    done: list[int] = []

    async def run(n: int) -> None:
        done.append(n)

    async with open_tasks() as tasks:
        for n in range(3):
            tasks.start_soon(run, n)
    assert [0, 1, 2] == sorted(done)


async def run_failing(*errors: Exception, body: Exception | None = None) -> None:
    async with open_tasks() as tasks:
        for error in errors:
            tasks.start_soon(fail, error)
        if body is not None:
            raise body


async def test_the_only_failure_is_raised_as_it_is() -> None:
    error = KeyError("one")
    error.__cause__ = ValueError("why")
    with pytest.raises(KeyError) as caught:
        await run_failing(error)
    assert error is caught.value
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_failure_of_the_body_is_raised_as_it_is() -> None:
    error = KeyError("body")
    with pytest.raises(KeyError) as caught:
        await run_failing(body=error)
    assert error is caught.value


async def test_a_failure_in_groups_of_one_is_raised_as_it_is() -> None:
    error = KeyError("deep")
    with pytest.raises(KeyError) as caught:
        await run_failing(ExceptionGroup("outer", [ExceptionGroup("inner", [error])]))
    assert error is caught.value


async def test_several_failures_stay_together() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await run_failing(KeyError("a"), ValueError("b"))
    assert {KeyError, ValueError} == {type(error) for error in caught.value.exceptions}


async def test_cancelling_is_no_failure() -> None:
    with anyio.fail_after(5):
        async with open_tasks() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            tasks.cancel_scope.cancel()
