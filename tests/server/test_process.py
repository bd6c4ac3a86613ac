"""One supervised child process: server/process.py, supervision.py and guard.py."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from woollama.core.errors import TransportError
from woollama.core.scopes import open_tasks
from woollama.server.process import Child, Launch, NotReady
from woollama.server.supervision import ChildEvent, Failure, Limits, Supervisor

SERVES = "import os, sys; print('here', os.getpid(), flush=True); sys.stdin.read()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SERVES.replace(
    "sys.stdin.read()", "[signal.pause() for _ in iter(int, 1)]"
)
FALLS = "import sys; sys.stderr.write('no such model\\n'); sys.exit(3)"
SILENT = "import sys; sys.stdin.read()"
SHUTS_UP = "import os, sys; os.close(1); sys.stdin.read()"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


async def pid_it_said(child: Child) -> int:
    word, pid = (await child.first_line()).split()
    assert word == "here"
    return int(pid)


def python(
    program: str, *, watches_stdin: bool = True, first_input: bytes = b""
) -> Callable[[], Launch[int]]:
    """Launches of a small program that reports the process it is."""
    return lambda: Launch(
        argv=(sys.executable, "-c", program),
        env={name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
        ready=pid_it_said,
        first_input=first_input,
        watches_stdin=watches_stdin,
    )


class Watcher:
    """Collects events and lets a test wait for one."""

    def __init__(self) -> None:
        self.seen: list[ChildEvent] = []
        self._news = anyio.Event()

    def __call__(self, event: ChildEvent) -> None:
        self.seen.append(event)
        self._news.set()
        self._news = anyio.Event()

    @property
    def states(self) -> list[str]:
        return [event.state for event in self.seen]

    async def until(self, state: str) -> None:
        with anyio.fail_after(10):
            while state not in self.states:
                await self._news.wait()


@asynccontextmanager
async def supervised(
    launch: Callable[[], Launch[int]], watcher: Watcher, *, limits: Limits | None = None
) -> AsyncGenerator[Supervisor[int]]:
    with anyio.fail_after(30):
        async with open_tasks() as tasks:
            supervisor = Supervisor(
                "the child",
                tasks,
                launch=launch,
                limits=limits or Limits(start_timeout_s=10),
                on_event=watcher,
            )
            yield supervisor
            tasks.cancel_scope.cancel()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_is_started_on_first_use_and_ends_with_its_group() -> None:
    watcher = Watcher()
    async with supervised(python(SERVES), watcher) as supervisor:
        assert supervisor.pid is None
        assert not supervisor.serving
        pid = await supervisor.start()
        assert supervisor.serving
        assert pid == supervisor.pid
        assert alive(pid)
        assert pid == await supervisor.start()
    assert not alive(pid)
    assert ["starting", "ready", "stopped"] == watcher.states


async def test_callers_at_the_same_time_share_one_start() -> None:
    watcher = Watcher()
    pids: list[int] = []

    async def call(supervisor: Supervisor[int]) -> None:
        pids.append(await supervisor.start())

    async with supervised(python(SERVES), watcher) as supervisor, open_tasks() as callers:
        for _ in range(5):
            callers.start_soon(call, supervisor)
    assert 5 == len(pids)
    assert 1 == len(set(pids))
    assert 1 == watcher.states.count("starting")


async def test_a_caller_that_leaves_leaves_the_start_to_the_others() -> None:
    watcher = Watcher()
    async with supervised(python(SERVES), watcher) as supervisor:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await supervisor.start()
        assert scope.cancelled_caught
        await watcher.until("ready")
        assert supervisor.pid == await supervisor.start()


async def test_what_is_handed_over_is_read_and_not_shown() -> None:
    program = "import sys; print('here', int(sys.stdin.readline()), flush=True); sys.stdin.read()"
    launch = python(program, first_input=b"4711\n")
    assert "4711" not in repr(launch())
    async with supervised(launch, Watcher()) as supervisor:
        assert 4711 == await supervisor.start()


async def test_a_child_that_dies_is_started_again_by_the_next_use() -> None:
    watcher = Watcher()
    async with supervised(python(SERVES), watcher) as supervisor:
        first = await supervisor.start()
        os.kill(first, signal.SIGKILL)
        assert await supervisor.died(within_s=10)
        assert not supervisor.serving
        second = await supervisor.start()
        assert first != second
        assert not alive(first)
    assert ["starting", "ready", "ended", "starting", "ready", "stopped"] == watcher.states


async def test_a_serving_child_is_not_reported_dead() -> None:
    async with supervised(python(SERVES), Watcher()) as supervisor:
        assert await supervisor.died(within_s=0)
        await supervisor.start()
        assert not await supervisor.died(within_s=0)


async def test_a_failed_start_says_how_it_ended_and_what_it_wrote() -> None:
    async with supervised(python(FALLS), Watcher()) as supervisor:
        with pytest.raises(TransportError) as caught:
            await supervisor.start()
    assert 503 == caught.value.status
    assert "the child did not start: it ended with exit code 3" == str(caught.value)
    assert "no such model\n" == caught.value.payload


async def test_within_the_back_off_a_failure_is_told_again_without_a_new_try() -> None:
    watcher = Watcher()
    limits = Limits(start_timeout_s=10, backoff_s=300, backoff_limit_s=300)
    async with supervised(python(FALLS), watcher, limits=limits) as supervisor:
        for _ in range(3):
            with pytest.raises(TransportError):
                await supervisor.start()
            assert await supervisor.died(within_s=10)
        with pytest.raises(TransportError) as caught:
            await supervisor.start()
        assert caught.value.retry_after is not None
        assert 290 < caught.value.retry_after <= 300
    assert ["starting", "failed"] * 2 == watcher.states


async def test_a_start_waits_the_back_off_out_after_a_child_that_served() -> None:
    watcher = Watcher()
    limits = Limits(start_timeout_s=10, backoff_s=0.2)
    async with supervised(python(SERVES), watcher, limits=limits) as supervisor:
        for _ in range(2):
            os.kill(await supervisor.start(), signal.SIGKILL)
            assert await supervisor.died(within_s=10)
        before = anyio.current_time()
        await supervisor.start()
        assert 0.19 <= anyio.current_time() - before


async def test_a_child_that_served_long_enough_starts_the_count_anew() -> None:
    limits = Limits(start_timeout_s=10, backoff_s=300, backoff_limit_s=300, calm_s=0)
    async with supervised(python(SERVES), Watcher(), limits=limits) as supervisor:
        for _ in range(3):
            os.kill(await supervisor.start(), signal.SIGKILL)
            assert await supervisor.died(within_s=10)


def test_the_first_restart_is_immediate_and_the_wait_grows_to_its_limit() -> None:
    limits = Limits(backoff_s=0.5, backoff_limit_s=10)
    assert [0, 0, 0.5, 1, 2, 4, 8, 10] == [limits.delay_s(falls) for falls in range(8)]
    assert 10 == limits.delay_s(100_000)


async def test_a_child_that_is_not_ready_in_time_is_killed() -> None:
    watcher = Watcher()
    limits = Limits(start_timeout_s=0.2)
    async with supervised(python(SILENT), watcher, limits=limits) as supervisor:
        with pytest.raises(TransportError, match=r"it was not ready within 0\.2 s"):
            await supervisor.start()
        assert await supervisor.died(within_s=10)
        assert supervisor.pid is None
    assert ["starting", "failed"] == watcher.states


async def test_a_child_that_closes_its_output_is_not_ready() -> None:
    async with supervised(python(SHUTS_UP), Watcher()) as supervisor:
        with pytest.raises(TransportError, match="it closed its output before it was ready"):
            await supervisor.start()


def refusing(program: str) -> Callable[[], Launch[int]]:
    """Launches of a small program whose first line is taken for a refusal."""

    async def refuse(child: Child) -> int:
        raise NotReady(f"it said {await child.first_line()!r}")

    argv = (sys.executable, "-c", f"print('I will not', flush=True); {program}")
    return lambda: Launch(argv=argv, env={}, ready=refuse, watches_stdin=True)


async def test_a_probe_that_refuses_is_the_reason() -> None:
    async with supervised(refusing("pass"), Watcher()) as supervisor:
        with pytest.raises(TransportError, match="it said 'I will not'"):
            await supervisor.start()


async def test_a_child_that_refuses_is_heard_out() -> None:
    """What it writes behind its refusal does not fit into a pipe."""
    talks = "import sys; sys.stderr.write('x' * 1_000_000 + 'the last words')"
    async with supervised(refusing(talks), Watcher()) as supervisor:
        with pytest.raises(TransportError, match="it said 'I will not'") as caught:
            await supervisor.start()
    assert caught.value.payload.endswith("xxthe last words")


async def test_a_child_that_refuses_and_stays_is_killed() -> None:
    stays = "import signal; [signal.pause() for _ in iter(int, 1)]"
    watcher, limits = Watcher(), Limits(stop_timeout_s=0.1)
    async with supervised(refusing(stays), watcher, limits=limits) as supervisor:
        with pytest.raises(TransportError, match="it said 'I will not'"):
            await supervisor.start()
    assert ["starting", "failed"] == watcher.states


async def test_a_program_that_does_not_exist_is_a_failed_start() -> None:
    def launch() -> Launch[int]:
        return Launch(argv=("/nowhere/at-all",), env={}, ready=pid_it_said, watches_stdin=True)

    async with supervised(launch, Watcher()) as supervisor:
        with pytest.raises(TransportError, match="'/nowhere/at-all' does not run"):
            await supervisor.start()


async def test_a_guarded_program_that_does_not_exist_is_a_failed_start() -> None:
    def launch() -> Launch[int]:
        return Launch(argv=("/nowhere/at-all",), env={}, ready=pid_it_said)

    async with supervised(launch, Watcher()) as supervisor:
        with pytest.raises(TransportError, match="exit code 127") as caught:
            await supervisor.start()
    assert "/nowhere/at-all" in caught.value.payload


async def test_stop_ends_the_child_and_the_next_use_starts_it() -> None:
    watcher = Watcher()
    async with supervised(python(SERVES), watcher) as supervisor:
        await supervisor.stop()
        first = await supervisor.start()
        await supervisor.stop()
        assert not alive(first)
        assert supervisor.pid is None
        assert first != await supervisor.start()
    assert ["starting", "ready", "stopped"] * 2 == watcher.states


async def test_a_start_during_a_stop_waits_for_a_new_child() -> None:
    limits = Limits(start_timeout_s=10, stop_timeout_s=0.2)
    async with supervised(python(STUBBORN), Watcher(), limits=limits) as supervisor:
        first = await supervisor.start()
        async with open_tasks() as tasks:
            tasks.start_soon(supervisor.stop)
            await anyio.wait_all_tasks_blocked()
            assert first != await supervisor.start()


async def test_stop_during_a_start_tells_those_who_wait() -> None:
    async def call(supervisor: Supervisor[int], watcher: Watcher) -> None:
        await watcher.until("starting")
        await supervisor.stop()

    watcher = Watcher()
    async with supervised(python(SILENT), watcher) as supervisor, open_tasks() as tasks:
        tasks.start_soon(call, supervisor, watcher)
        with pytest.raises(TransportError, match="it was stopped"):
            await supervisor.start()


async def test_a_child_that_ignores_the_request_to_end_is_killed() -> None:
    limits = Limits(start_timeout_s=10, stop_timeout_s=0.1)
    async with supervised(python(STUBBORN), Watcher(), limits=limits) as supervisor:
        pid = await supervisor.start()
        assert alive(pid)
    assert not alive(pid)


async def test_a_child_that_watches_its_stdin_is_left_to_end_by_itself(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program = f"{SERVES}; open({str(mark)!r}, 'w').write('tidied up')"
    async with supervised(python(program), Watcher()) as supervisor:
        await supervisor.start()
    assert "tidied up" == mark.read_text()


async def test_the_log_keeps_its_end_only() -> None:
    program = "import sys; sys.stderr.write('x' * 500_000 + 'the end'); sys.exit(1)"
    limits = Limits(start_timeout_s=10, log_limit_bytes=1000)
    failures: list[Failure] = []

    def explain(failure: Failure) -> TransportError:
        failures.append(failure)
        return TransportError("no")

    with anyio.fail_after(30):
        async with open_tasks() as tasks:
            supervisor = Supervisor(
                "x", tasks, launch=python(program), limits=limits, explain=explain
            )
            with pytest.raises(TransportError):
                await supervisor.start()
    assert 1000 == len(failures[0].log)
    assert failures[0].log.endswith("the end")


async def test_output_behind_the_first_line_does_not_fill_the_pipe() -> None:
    program = (
        "import sys; print('here 1', flush=True); print('y' * 500_000, flush=True);"
        "sys.stderr.write('z' * 500_000); sys.exit(7)"
    )
    async with supervised(python(program), Watcher()) as supervisor:
        assert 1 == await supervisor.start()
        assert await supervisor.died(within_s=10)


async def test_a_first_line_without_end_is_not_ready() -> None:
    program = "import sys; print('y' * 200_000, flush=True); sys.stdin.read()"
    async with supervised(python(program), Watcher()) as supervisor:
        with pytest.raises(TransportError):
            await supervisor.start()


async def test_a_guarded_program_ends_in_order_when_stopped() -> None:
    program = SERVES.replace("sys.stdin.read()", "__import__('signal').pause()")
    async with supervised(python(program, watches_stdin=False), Watcher()) as supervisor:
        pid = await supervisor.start()
        assert pid != supervisor.pid
        assert alive(pid)
    assert not alive(pid)


@pytest.mark.parametrize("watches_stdin", [True, False])
async def test_the_child_is_gone_when_its_parent_is_killed(
    watches_stdin: bool, tmp_path: Path
) -> None:
    """No clean-up runs in a parent that gets SIGKILL; the closed pipe alone must do."""
    waits = "sys.stdin.read()" if watches_stdin else "__import__('signal').pause()"
    program = SERVES.replace("sys.stdin.read()", waits)
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import anyio, sys\n"
        "from woollama.server.process import Launch\n"
        "from woollama.server.supervision import Limits, Supervisor\n"
        "async def ready(child):\n"
        "    return await child.first_line()\n"
        "def launch():\n"
        f"    return Launch(argv=(sys.executable, '-c', {program!r}), env={{}}, ready=ready,\n"
        f"                  watches_stdin={watches_stdin})\n"
        "async def main():\n"
        "    async with anyio.create_task_group() as tasks:\n"
        "        supervisor = Supervisor('x', tasks, launch=launch, limits=Limits())\n"
        "        print(await supervisor.start(), flush=True)\n"
        "        await anyio.sleep(60)\n"
        "anyio.run(main)\n"
    )
    async with await anyio.open_process(
        [sys.executable, str(parent)], stdin=subprocess.DEVNULL, stderr=None
    ) as process:
        with anyio.fail_after(30):
            assert process.stdout is not None
            pid = int((await process.stdout.receive()).split()[1])
            child = os.pidfd_open(pid)
            process.kill()
            await process.wait()
            await anyio.wait_readable(child)
            os.close(child)
