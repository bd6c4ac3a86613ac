"""Plugins at work: each in a task group of its own, set up in order, torn down in reverse.

A plugin that fails while it works ends itself, not the daemon; what it was doing is in the log,
and its health says so.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from woollama.core.canonical import NOTHING, Value
from woollama.core.errors import ConfigError, WoollamaError
from woollama.core.patterns import PatternBackend
from woollama.core.providers import ModelRegistry
from woollama.core.retries import NO_RETRIES, Retries
from woollama.core.scopes import open_tasks
from woollama.core.transport import Timeouts, Transport
from woollama.server.plugins.checks import secrets_of
from woollama.server.plugins.contract import (
    Health,
    HealthCheck,
    Plugin,
    PluginContext,
    ProvidedProvider,
)
from woollama.server.plugins.contributions import Contributions, contributions_of
from woollama.server.plugins.installed import Enabled
from woollama.server.plugins.models import ModelRunner, no_models

__all__ = ["RunningPlugins", "open_plugins"]

SETUP_LIMIT_S = 30.0
TEARDOWN_LIMIT_S = 10.0
HEALTH_LIMIT_S = 2.0

_BODY_LIMIT_BYTES = 32 * 1024 * 1024
_log = logging.getLogger(__name__)


class RunningPlugins(Value, frozen=True, kw_only=True):
    """The plugins of one daemon, set up.

    Attributes:
        contributions: of each, in the order of loading.
    """

    contributions: tuple[Contributions, ...] = ()

    @property
    def providers(self) -> tuple[ProvidedProvider, ...]:
        """The providers of all."""
        return tuple(found for each in self.contributions for found in each.providers)

    @property
    def own_transports(self) -> dict[str, Transport]:
        """By the name of a provider that a plugin brings, how it is reached."""
        return {each.provider.name: each.transport for each in self.providers}

    @property
    def pattern_backends(self) -> tuple[PatternBackend, ...]:
        """The pattern backends of all, in the order in which they are searched."""
        return tuple(found for each in self.contributions for found in each.pattern_backends)

    async def health(self) -> dict[str, Health]:
        """The state of every part, by ``plugin.<name>.<label>``; takes two seconds at most."""
        found: dict[str, Health] = {}
        async with open_tasks() as tasks:
            for each in self.contributions:
                for label, check in each.health_checks.items():
                    name = f"plugin.{each.name}.{label}"
                    tasks.start_soon(_ask_health, check, name, found)
        return dict(sorted(found.items()))


async def _ask_health(check: HealthCheck, name: str, found: dict[str, Health]) -> None:
    try:
        with anyio.fail_after(HEALTH_LIMIT_S):
            found[name] = await check()
    except TimeoutError:
        found[name] = Health(ok=False, detail=f"gave no answer within {HEALTH_LIMIT_S:g} s")
    except Exception as error:  # noqa: BLE001 - code of others may raise anything
        found[name] = Health(ok=False, detail=type(error).__name__)


class _Life:
    """The task group of one plugin, kept by a task of the daemon's."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.failure: str | None = None
        self._end = anyio.Event()

    async def keep(self, *, task_status: TaskStatus[TaskGroup]) -> None:
        try:
            async with open_tasks() as tasks:
                task_status.started(tasks)
                await self._end.wait()
                tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - logged whole; nothing stands above it but us
            # What a plugin's tasks raise is the plugin's failure, not the daemon's.
            self.failure = type(error).__name__
            _log.exception("plugin %s failed and does not work any more", self.plugin.name)

    def end(self) -> None:
        self._end.set()

    async def health(self) -> Health:
        if self.failure is None:
            return Health(ok=True)
        return Health(ok=False, detail=f"ended by {self.failure}; the log says more")


@asynccontextmanager
async def open_plugins(
    enabled: Sequence[Enabled],
    *,
    config_dir: Path,
    transport: Transport,
    notice: Callable[[str], None],
    environ: Mapping[str, str] = NOTHING,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - an immutable value
    body_limit_bytes: int = _BODY_LIMIT_BYTES,
    registry: ModelRegistry | None = None,
    retries: Retries = NO_RETRIES,
) -> AsyncGenerator[RunningPlugins]:
    """Runs plugins that ``load_plugins`` has checked; leaving the context tears them down.

    Args:
        enabled: from ``load_plugins``.
        config_dir: where the configuration is.
        transport: the daemon's own.
        notice: tells a person what is going on.
        environ: the environment.
        timeouts: how long the daemon waits for a provider.
        body_limit_bytes: the longest request body.
        registry: takes the providers of the plugins, and has the models they may run; None is none.
        retries: of requests to those models.

    Raises:
        ConfigError: a ``setup`` failed or took too long.
        WoollamaError: what a ``setup`` raised.
    """
    own: dict[str, Transport] = {}
    run = no_models
    if registry is not None:
        run = ModelRunner(registry, own, transport, timeouts=timeouts, retries=retries)
    async with open_tasks() as keepers, AsyncExitStack() as stack:
        contributions: list[Contributions] = []
        contexts: list[tuple[Plugin, PluginContext]] = []
        for each in enabled:
            life = _Life(each.plugin)
            tasks = await keepers.start(life.keep)
            stack.callback(life.end)
            context = PluginContext(
                config=each.config,
                config_dir=config_dir,
                transport=transport,
                tasks=tasks,
                notice=notice,
                secrets=secrets_of(each.plugin, environ, []),
                environ=environ,
                timeouts=timeouts,
                body_limit_bytes=body_limit_bytes,
                run=run,
            )
            contexts.append((each.plugin, context))
            contributions.append(_with_health(contributions_of(each, context), life))
        running = RunningPlugins(contributions=tuple(contributions))
        own.update(running.own_transports)
        if registry is not None:
            for provided in running.providers:
                registry.add(provided.provider)
        for plugin, context in contexts:
            await _set_up(plugin, context)
            stack.push_async_callback(_tear_down, plugin, context)
        yield running


def _with_health(found: Contributions, life: _Life) -> Contributions:
    checks = {**found.health_checks, "tasks": life.health}
    return Contributions(
        name=found.name,
        prefix=found.prefix,
        providers=found.providers,
        pattern_backends=found.pattern_backends,
        tool_providers=found.tool_providers,
        routes=found.routes,
        health_checks=checks,
    )


async def _set_up(plugin: Plugin, context: PluginContext) -> None:
    try:
        with anyio.fail_after(SETUP_LIMIT_S):
            await plugin.setup(context)
    except WoollamaError:
        raise
    except TimeoutError as error:
        raise _failed(plugin, f"took longer than {SETUP_LIMIT_S:g} s") from error
    except Exception as error:
        raise _failed(plugin, f"failed with {type(error).__name__}: {error}") from error


def _failed(plugin: Plugin, how: str) -> ConfigError:
    return ConfigError(
        f"The plugin {plugin.name!r} cannot be used: its setup {how}.",
        status=500,
        hint="Remove it from enabled under [plugins] in woollama.toml, or repair it.",
    )


async def _tear_down(plugin: Plugin, context: PluginContext) -> None:
    try:
        with anyio.fail_after(TEARDOWN_LIMIT_S, shield=True):
            await plugin.teardown(context)
    except TimeoutError:
        _log.warning("plugin %s: teardown took longer than %g s", plugin.name, TEARDOWN_LIMIT_S)
    except Exception:  # noqa: BLE001 - the others are torn down all the same
        _log.exception("plugin %s: teardown failed", plugin.name)
