"""Plugins at work: set up in order, torn down in reverse, and never the end of the daemon."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

from tests.server.plugins.parts import plugin
from woollama.core.errors import ConfigError, TransportError
from woollama.core.transport.http import HttpTransport
from woollama.server.plugins import running
from woollama.server.plugins.contract import Health, HealthCheck, Plugin, PluginContext, Secret
from woollama.server.plugins.contributions import needed_for_models
from woollama.server.plugins.installed import Enabled
from woollama.server.plugins.running import RunningPlugins, open_plugins


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def run(
    *plugins: Plugin, config_dir: Path = Path(), environ: Mapping[str, str] | None = None
) -> AsyncGenerator[RunningPlugins]:
    transport = HttpTransport()
    with anyio.fail_after(10):
        async with open_plugins(
            [Enabled(each, None) for each in plugins],
            config_dir=config_dir,
            transport=transport,
            notice=lambda _line: None,
            environ=environ or {},
        ) as opened:
            yield opened
        await transport.aclose()


class Recorder(Plugin):
    """Writes down what happens to it."""

    api_version = 1

    def __init__(self, name: str, log: list[str]) -> None:
        self.title = name
        self.log = log

    async def setup(self, context: PluginContext) -> None:
        self.log.append(f"setup {self.title}")

    async def teardown(self, context: PluginContext) -> None:
        self.log.append(f"teardown {self.title}")


class A(Recorder):
    name = "a"


class B(Recorder):
    name = "b"


async def test_setup_is_in_order_and_teardown_in_reverse() -> None:
    log: list[str] = []
    async with run(A("a", log), B("b", log)):
        log.append("work")
    assert ["setup a", "setup b", "work", "teardown b", "teardown a"] == log


async def test_a_setup_that_fails_stops_the_start_and_the_others_are_torn_down() -> None:
    class Breaks(B):
        async def setup(self, context: PluginContext) -> None:
            raise KeyError("nothing there")

    log: list[str] = []
    with pytest.raises(ConfigError) as caught:
        async with run(A("a", log), Breaks("b", log)):
            log.append("work")
    assert "The plugin 'b' cannot be used: its setup failed with KeyError" in caught.value.message
    assert "Remove it from enabled" in str(caught.value)
    assert ["setup a", "teardown a"] == log


async def test_an_error_of_ours_in_a_setup_is_raised_as_it_is() -> None:
    class Breaks(A):
        async def setup(self, context: PluginContext) -> None:
            raise TransportError("no answer")

    with pytest.raises(TransportError, match="no answer"):
        async with run(Breaks("a", [])):
            pass


async def test_a_setup_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(A):
        async def setup(self, context: PluginContext) -> None:
            await anyio.sleep_forever()

    monkeypatch.setattr(running, "SETUP_LIMIT_S", 0.01)
    with pytest.raises(ConfigError, match=r"took longer than 0\.01 s"):
        async with run(Hangs("a", [])):
            pass


async def test_teardowns_that_fail_or_hang_do_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Hangs(B):
        async def teardown(self, context: PluginContext) -> None:
            await anyio.sleep_forever()

    class Breaks(B):
        async def teardown(self, context: PluginContext) -> None:
            raise KeyError

    monkeypatch.setattr(running, "TEARDOWN_LIMIT_S", 0.01)
    log: list[str] = []
    async with run(A("a", log), Hangs("b", log), Breaks("b", log)):
        pass
    assert "teardown a" == log[-1]
    assert ["plugin b: teardown failed", "plugin b: teardown took longer than 0.01 s"] == (
        caplog.messages
    )


async def test_a_task_that_fails_ends_its_plugin_and_not_the_daemon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = anyio.Event()

    class Falls(A):
        async def setup(self, context: PluginContext) -> None:
            context.tasks.start_soon(self.last)
            context.tasks.start_soon(self.fall)

        async def last(self) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        async def fall(self) -> None:
            raise ValueError("a secret text")

    async with run(Falls("a", []), B("b", [])) as opened:
        await ended.wait()
        while (await opened.health())["plugin.a.tasks"].ok:
            await anyio.lowlevel.checkpoint()
        health = await opened.health()
    assert "ended by ValueError; the log says more" == health["plugin.a.tasks"].detail
    assert health["plugin.b.tasks"].ok
    assert [("woollama.server.plugins.running", logging.ERROR)] == [
        (record.name, record.levelno) for record in caplog.records
    ]


async def test_tasks_of_a_plugin_end_behind_its_teardown() -> None:
    log: list[str] = []

    class Works(A):
        async def setup(self, context: PluginContext) -> None:
            context.tasks.start_soon(self.work)

        async def work(self) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                log.append("end")

        async def teardown(self, context: PluginContext) -> None:
            log.append("teardown")

    async with run(Works("a", log)):
        pass
    assert ["teardown", "end"] == log


async def test_health_says_what_each_check_says_and_waits_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def good() -> Health:
        return Health(ok=True, detail="3 loaded")

    async def slow() -> Health:
        await anyio.sleep_forever()
        raise AssertionError

    async def broken() -> Health:
        raise KeyError("secret")

    class Checked(A):
        def health_checks(self, context: PluginContext) -> Mapping[str, HealthCheck]:
            return {"good": good, "slow": slow, "broken": broken}

    monkeypatch.setattr(running, "HEALTH_LIMIT_S", 0.01)
    async with run(Checked("a", [])) as opened:
        health = await opened.health()
    assert {
        "plugin.a.broken": Health(ok=False, detail="KeyError"),
        "plugin.a.good": Health(ok=True, detail="3 loaded"),
        "plugin.a.slow": Health(ok=False, detail="gave no answer within 0.01 s"),
        "plugin.a.tasks": Health(ok=True),
    } == health


async def test_every_method_gets_the_same_context_and_no_secret_is_printed() -> None:
    seen: list[PluginContext] = []

    class Curious(A):
        secrets: ClassVar = {"key": Secret(env="ACME_KEY"), "other": Secret(env="ACME_OTHER")}

        def health_checks(self, context: PluginContext) -> Mapping[str, HealthCheck]:
            seen.append(context)
            return {}

        async def setup(self, context: PluginContext) -> None:
            seen.append(context)

    async with run(Curious("a", []), environ={"ACME_KEY": "s3cret"}):
        pass
    first, second = seen
    assert first is second
    assert ["key"] == list(first.secrets)
    assert "s3cret" == first.secrets["key"].reveal()
    assert "s3cret" not in f"{first!r} {first.secrets!r} {first.secrets['key']}"


async def test_what_a_minimal_plugin_brings_is_nothing() -> None:
    async with run(plugin("a")) as opened:
        assert ((), ()) == (opened.providers, opened.pattern_backends)
        (found,) = opened.contributions
    assert ("a", "/x/a", (), ()) == (found.name, found.prefix, found.routes, found.tool_providers)


def test_for_a_model_only_those_that_bring_providers_or_are_required_are_run() -> None:
    def nothing(_self: Plugin, _context: PluginContext) -> tuple[()]:
        return ()

    def has(*kinds: str) -> dict[str, Any]:
        return dict.fromkeys(kinds, nothing)

    enabled = [
        Enabled(each, None)
        for each in (
            plugin("works"),
            plugin("first"),
            plugin("second", **has("routes"), requires=("first",)),
            plugin("brings", **has("providers", "routes"), requires=("second",)),
            plugin("shows", **has("pattern_backends", "routes"), requires=("second",)),
        )
    ]
    kept = [each.plugin.name for each in needed_for_models(enabled)]
    assert ["works", "first", "second", "brings"] == kept
