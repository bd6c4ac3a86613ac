"""From settings to running services, and everything closed again in order."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager

import msgspec

from woollama.core.directory import Directory
from woollama.core.patterns import NativePatterns, PatternCatalog
from woollama.core.providers import ModelRegistry, Target
from woollama.core.runs.plan import Link
from woollama.core.scopes import open_tasks
from woollama.core.transport import Transport
from woollama.core.transport.default import make_transport
from woollama.server.bundled import RECIPES
from woollama.server.bundled.servers import with_bundled
from woollama.server.instance import new_instance_id
from woollama.server.mcp.config import McpConfig, load_mcp
from woollama.server.mcp.federation import inherited_id
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.tools import McpTools, open_mcp_tools
from woollama.server.plugins.contributions import needed_for_models
from woollama.server.plugins.installed import Installed
from woollama.server.plugins.loader import load_plugins, open_plugins
from woollama.server.plugins.pattern_faults import PatternFaults
from woollama.server.plugins.running import RunningPlugins
from woollama.server.plugins.tools import join_tools
from woollama.server.services import Services
from woollama.server.settings import Settings

__all__ = ["open_services"]


def _silent(_line: str) -> None:
    pass


@asynccontextmanager
async def open_services(
    settings: Settings,
    *,
    environ: Mapping[str, str] | None = None,
    notice: Callable[[str], None] = _silent,
    installed: Mapping[str, Installed] | None = None,
    mcp_servers: bool = True,
    patterns: bool = True,
) -> AsyncGenerator[Services]:
    """The services of one daemon, or of one command without a daemon.

    Args:
        settings: from ``load_settings``.
        environ: the environment; None is the process's own.
        notice: tells a person at a terminal what is going on; "" when it is over.
        installed: the plugins that can be enabled; None looks for those that are installed.
        mcp_servers: whether the servers in ``mcp.json`` are started; a command that needs no tool
            leaves them alone.
        patterns: whether recipes and patterns are wanted; a command that asks a model leaves alone
            the plugins that bring no provider, and what these would start.

    Raises:
        ConfigError: everything that is wrong in the configuration.
    """
    environ = os.environ if environ is None else environ
    registry = ModelRegistry.from_config(environ=environ)
    path = settings.config_dir / "mcp.json"
    mcp = with_bundled(load_mcp(environ, path))
    enabled = load_plugins(
        settings.plugins.enabled,
        settings.plugins.tables,
        fabric=mcp.fabric,
        found=installed,
        environ=environ,
        config_dir=settings.config_dir,
        taken=registry.names(),
        servers=[server.name for server in mcp.servers if not server.on_demand],
    )
    identity = settings.instance_id or inherited_id(environ, path) or new_instance_id()
    transport = make_transport()
    async with (
        aclosing(transport),
        open_tasks() as tasks,
        open_mcp_tools(
            mcp if mcp_servers else _without_servers(mcp),
            instance_id=identity,
            environ=environ,
            limits=_limits(settings),
        ) as tools,
        open_plugins(
            enabled if patterns else needed_for_models(enabled),
            config_dir=settings.config_dir,
            transport=transport,
            notice=notice,
            environ=environ,
            timeouts=settings.timeouts,
            body_limit_bytes=settings.server.body_limit_bytes,
            registry=registry,
            retries=settings.retries,
        ) as plugins,
    ):
        own = plugins.own_transports
        catalog = _catalog(settings, registry, plugins, tools, transport=transport, own=own)
        yield Services(
            directory=Directory(registry, catalog),
            plugins=plugins,
            tools=tools,
            transport=transport,
            own_transports=own,
            timeouts=settings.timeouts,
            retries=settings.retries,
            reasoning=settings.reasoning.alias,
            body_limit_bytes=settings.server.body_limit_bytes,
            instance_id=identity,
            exports=mcp.exports,
            tasks=tasks,
            fresh_s=settings.discovery.ttl_s,
        )
        tasks.cancel_scope.cancel()


def _without_servers(config: McpConfig) -> McpConfig:
    return msgspec.structs.replace(config, servers=(), skipped={}, warnings=())


def _limits(settings: Settings) -> McpLimits:
    given = settings.mcp
    return McpLimits(
        connect_timeout_s=given.connect_timeout_s,
        call_timeout_s=given.call_timeout_s,
        patience_s=given.patience_s,
        backoff_limit_s=given.retry_limit_s,
    )


def _catalog(
    settings: Settings,
    registry: ModelRegistry,
    plugins: RunningPlugins,
    tools: McpTools,
    *,
    transport: Transport,
    own: Mapping[str, Transport],
) -> PatternCatalog:
    """Our own patterns first, then those of the plugins."""

    def link(target: Target) -> Link:
        return Link(
            transport=own.get(target.provider.name, transport),
            timeouts=settings.timeouts,
            retries=settings.retries,
        )

    native = NativePatterns(
        (settings.config_dir / "recipes.toml", RECIPES),
        registry,
        tools=join_tools(tools, plugins.contributions),
        limits=settings.runs.of_core(),
        link=link,
    )
    return PatternCatalog((native, *plugins.pattern_backends), report=PatternFaults())
