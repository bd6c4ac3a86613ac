"""A managed fabric: real child processes of a fake program."""

import os
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.abc import TaskStatus

from tests.server.fabric.fake.app import PATTERNS, FakeFabric
from tests.server.fabric.fake.serving import serve
from tests.server.fabric.rig import (
    Machine,
    alive,
    answer_of,
    backend_of,
    call,
    serving,
    text_of,
    until,
)
from woollama.core.canonical import RunEvent
from woollama.core.errors import ConfigError, RequestError, TransportError
from woollama.server.fabric import entry, library, plugin
from woollama.server.supervision import Supervisor
from woollama.server.testing import Served

ECHO = {"managed": True, "default_model": "ollama/echo"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@asynccontextmanager
async def managed(machine: Machine, **section: Any) -> AsyncGenerator[Served]:
    async with serving({**ECHO, **section}, machine.environ) as server:
        yield server


def address_of(start: dict[str, Any]) -> str:
    return start["argv"][start["argv"].index("--address") + 1]


async def gone(pid: int) -> None:
    await until(lambda: not alive(pid))


async def test_it_is_started_on_loopback_in_a_folder_of_its_own(machine: Machine) -> None:
    async with managed(machine) as server:
        assert "hi" in await answer_of(server, call())
        (start,) = machine.starts()
        assert ["--serve", "--address", address_of(start)] == start["argv"]
        assert address_of(start).startswith("127.0.0.1:")
        assert [] == start["files"]
        assert 0o700 == (await anyio.Path(start["cwd"]).stat()).st_mode & 0o777
        assert address_of(start) == machine.left_address()
    await gone(start["pid"])
    assert not await anyio.Path(start["cwd"]).exists()
    assert machine.left_address() is None


async def test_it_gets_none_of_our_secrets(machine: Machine) -> None:
    environ = {**machine.environ, "WOOLLAMA_TOKEN": "t", "DATABASE_PASSWORD": "p"}
    async with serving({**ECHO, "env": {"EXTRA": "${HOME}"}}, environ) as server:
        await answer_of(server, call())
    (start,) = machine.starts()
    assert {"EXTRA", "HOME", "LANG", "PATH"} <= set(start["env"])
    assert set() == {"WOOLLAMA_TOKEN", "DATABASE_PASSWORD"} & set(start["env"])


async def test_its_key_is_the_one_of_the_variable(machine: Machine) -> None:
    environ = {**machine.environ, "FABRIC_KEY": "k1"}
    async with serving({**ECHO, "api_key_env": "FABRIC_KEY"}, environ) as server:
        assert "hi" in await answer_of(server, call())
    (start,) = machine.starts()
    assert ["--api-key", "k1"] == start["argv"][-2:]


async def test_a_second_woollama_uses_the_first_ones_and_leaves_it_running(
    machine: Machine,
) -> None:
    async with managed(machine) as first:
        await answer_of(first, call())
        (start,) = machine.starts()
        async with managed(machine) as second:
            assert "hi" in await answer_of(second, call())
        assert 1 == len(machine.starts())
        assert alive(start["pid"])
        assert address_of(start) == machine.left_address()
        assert "hi" in await answer_of(first, call())
    await gone(start["pid"])


async def test_a_live_one_at_the_sections_address_is_used(machine: Machine) -> None:
    fake = FakeFabric(models={"Ollama": ["echo"]})
    async with serve(fake.app) as url:
        address = url.removeprefix("http://")
        async with managed(machine, address=address) as server:
            assert "hi" in await answer_of(server, call())
    assert [] == machine.starts()
    assert machine.left_address() is None


async def test_who_used_another_ones_starts_its_own_when_that_ends(machine: Machine) -> None:
    fake = FakeFabric(models={"Ollama": ["echo"]})
    stop, stopped = anyio.Event(), anyio.Event()

    async def run_another(*, task_status: TaskStatus[str]) -> None:
        async with serve(fake.app) as url:
            task_status.started(url.removeprefix("http://"))
            await stop.wait()
        stopped.set()

    async with anyio.create_task_group() as tasks:
        address = await tasks.start(run_another)
        async with managed(machine, address=address) as server:
            assert [] == machine.starts()
            stop.set()
            await stopped.wait()
            assert "hi" in await answer_of(server, call())
            (start,) = machine.starts()
            assert address == address_of(start)
        await gone(start["pid"])


async def test_another_ones_that_hangs_is_left_for_one_of_our_own(machine: Machine) -> None:
    control: dict[str, Any] = {}
    fake = FakeFabric(models={"Ollama": ["echo"]}, control=lambda: control)
    async with serve(fake.app) as url:
        left = url.removeprefix("http://")
        (machine.run / "woollama.fabric-addr").write_text(f"{left}\n")
        async with managed(machine, timeout_s=0.3) as server:
            assert "hi" in await answer_of(server, call())
            assert [] == machine.starts()
            control["hang"] = True
            with pytest.raises(TransportError) as caught:
                await answer_of(server, call())
            assert 504 == caught.value.status
            assert "hi" in await answer_of(server, call())
            (start,) = machine.starts()
            assert left != address_of(start) == machine.left_address()


async def answered(server: Served) -> str:
    """The first answer; between tries it waits as long as the error says."""
    while True:
        try:
            return await answer_of(server, call())
        except TransportError as error:
            await anyio.sleep(error.retry_after or 0)


async def test_a_port_that_somebody_else_has_taken_is_given_up(machine: Machine) -> None:
    async with managed(machine) as server:
        await answer_of(server, call())
        (first,) = machine.starts()
        os.kill(first["pid"], signal.SIGKILL)
        supervisor: Supervisor[None] = cast("Any", backend_of(server))._client.server.supervisor
        await until(lambda: not supervisor.serving)
        port = int(address_of(first).rpartition(":")[2])
        with socket.socket() as rival:
            rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            rival.bind(("127.0.0.1", port))
            rival.listen()
            with pytest.raises(TransportError, match="could not be started"):
                await answer_of(server, call())
            # A start that failed is not tried again at once.
            assert "hi" in await answered(server)
        assert address_of(first) != address_of(machine.starts()[-1])


async def test_an_address_left_by_a_dead_one_is_not_followed(machine: Machine) -> None:
    (machine.run / "woollama.fabric-addr").write_text("127.0.0.1:1\n")
    async with managed(machine) as server:
        assert "hi" in await answer_of(server, call())
        (start,) = machine.starts()
        assert "127.0.0.1:1" != address_of(start) == machine.left_address()


async def test_killed_it_is_started_again_at_its_address_and_the_request_sent_again(
    machine: Machine,
) -> None:
    async with managed(machine) as server:
        await answer_of(server, call())
        (first,) = machine.starts()
        os.kill(first["pid"], signal.SIGKILL)
        assert "hi" in await answer_of(server, call())
        _, second = machine.starts()
    assert address_of(first) == address_of(second)


async def test_killed_in_the_middle_of_a_stream_the_stream_fails_and_the_next_works(
    machine: Machine,
) -> None:
    async with managed(machine) as server:
        seen: list[RunEvent] = []
        with pytest.raises(TransportError) as caught:
            await killed_at_its_first_text(server, machine, seen)
        assert ("partial ", "cut", 502) == (
            text_of(seen),
            caught.value.kind,
            caught.value.status,
        )
        assert "hi" in await answer_of(server, call())
    assert 2 == len(machine.starts())


async def killed_at_its_first_text(server: Served, machine: Machine, seen: list[RunEvent]) -> None:
    asked = call(model="ollama/hold", stream=True)
    async with backend_of(server).open_run(asked) as events:
        async for event in events:
            seen.append(event)
            if text_of(seen):
                os.kill(machine.starts()[-1]["pid"], signal.SIGKILL)


async def test_many_requests_that_find_it_dead_share_one_start(machine: Machine) -> None:
    answers: list[str] = []

    async def ask(server: Served) -> None:
        answers.append(await answer_of(server, call()))

    async with managed(machine) as server:
        await answer_of(server, call())
        os.kill(machine.starts()[0]["pid"], signal.SIGKILL)
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask, server)
    assert 8 == len(answers)
    assert 2 == len(machine.starts())


async def test_one_that_hangs_is_a_504_and_is_ended_and_the_next_works(machine: Machine) -> None:
    async with managed(machine, timeout_s=0.5) as server:
        await answer_of(server, call())
        (first,) = machine.starts()
        os.kill(first["pid"], signal.SIGSTOP)
        with pytest.raises(TransportError) as caught:
            await answer_of(server, call())
        assert (504, "timeout") == (caught.value.status, caught.value.kind)
        await gone(first["pid"])
        assert "hi" in await answer_of(server, call())
    assert 2 == len(machine.starts())


async def test_a_slow_model_is_no_reason_to_end_it(machine: Machine) -> None:
    async with managed(machine, timeout_s=0.3) as server:
        with pytest.raises(TransportError, match="sent nothing more within"):
            await answer_of(server, call(model="ollama/hang"))
        (start,) = machine.starts()
        assert alive(start["pid"])
        assert "hi" in await answer_of(server, call())
    assert 1 == len(machine.starts())


async def test_a_slow_start_does_not_hold_the_daemon_up(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "SETTLE_S", 0.1)
    machine.behave(start="slow")
    async with managed(machine) as server:
        backend = backend_of(server)
        assert () == tuple(backend.list())
        (machine.store / "go").touch()
        await until(lambda: backend.find("summarize") is not None)
        assert "hi" in await answer_of(server, call())


async def test_one_that_is_not_ready_in_time_is_ended_and_tried_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "FIRST_WAIT_S", 0.05)
    machine.behave(start="slow")
    async with managed(machine, start_timeout_s=1.0) as server:
        health = await server.services.plugins.health()
        detail = health["plugin.fabric.server"].detail
        assert "fabric could not be started: it was not ready within 1 s." == detail
        proxied = await server.client.get("/fabric/models/names")
        assert 503 == proxied.status
        assert "fabric could not be started" in proxied.json()["error"]["message"]
        (machine.store / "go").touch()
        backend = backend_of(server)
        await until(lambda: backend.find("summarize") is not None)


async def test_one_that_ends_at_once_says_why(machine: Machine) -> None:
    (machine.store / ".env").unlink()
    async with managed(machine) as server:
        health = await server.services.plugins.health()
    detail = health["plugin.fabric.server"].detail
    assert "fabric could not be started: it ended with exit code 1." == detail


async def test_a_program_that_is_not_there_is_told_and_found_when_it_comes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "FIRST_WAIT_S", 0.05)
    hidden = machine.program.rename(machine.program.with_name("hidden"))
    async with managed(machine) as server:
        health = await server.services.plugins.health()
        assert "fabric's program 'fabric' is not there." == health["plugin.fabric.server"].detail
        hidden.rename(machine.program)
        backend = backend_of(server)
        await until(lambda: backend.find("summarize") is not None)


async def test_an_empty_list_at_first_is_filled_later(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.behave(names="empty")
    async with managed(machine, refresh_s=0) as server:
        backend = backend_of(server)
        assert () == tuple(backend.list())
        machine.behave()
        await until(lambda: backend.find("summarize") is not None)


async def test_a_pattern_that_would_never_end_is_not_run(tmp_path: Path) -> None:
    machine = Machine(tmp_path, patterns={**PATTERNS, "loop": "x {{a}}"})
    async with managed(machine) as server:
        with pytest.raises(RequestError):
            await answer_of(server, call("loop", variables={"a": "{{a}}"}))
        assert "x 1\nhi" == await answer_of(server, call("loop", variables={"a": "1"}))


async def test_nothing_is_started_when_it_is_switched_off(machine: Machine) -> None:
    async with serving({"managed": False}, machine.environ):
        pass
    assert [] == machine.starts()


async def test_an_address_that_is_not_ours_refuses_the_start(machine: Machine) -> None:
    with pytest.raises(ConfigError, match=r"fabric: .*is not on this machine"):
        async with managed(machine, address="0.0.0.0:8080"):
            pass


async def test_a_missing_key_refuses_the_start(machine: Machine) -> None:
    with pytest.raises(ConfigError, match="the variable 'NO_SUCH_KEY' holds no key"):
        async with managed(machine, api_key_env="NO_SUCH_KEY"):
            pass


def test_the_entry_point_gives_the_plugin() -> None:
    assert entry.FabricPlugin is plugin
    assert ("fabric", 1) == (plugin.name, plugin.api_version)
