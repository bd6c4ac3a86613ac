"""From settings to running services, and everything closed again in order."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager

from woollama.core.config.files import read_file
from woollama.core.directory import Directory
from woollama.core.patterns import NativePatterns, PatternCatalog
from woollama.core.providers import ModelRegistry, Target
from woollama.core.runs.plan import Link
from woollama.core.scopes import open_tasks
from woollama.core.transport.default import make_transport
from woollama.server.bundled import RECIPES
from woollama.server.instance import new_instance_id
from woollama.server.plugins.installed import Installed
from woollama.server.plugins.loader import load_plugins, open_plugins
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
) -> AsyncGenerator[Services]:
    """The services of one daemon, or of one command without a daemon.

    Args:
        settings: from ``load_settings``.
        environ: the environment; None is the process's own.
        notice: tells a person at a terminal what is going on; "" when it is over.
        installed: the plugins that can be enabled; None looks for those that are installed.

    Raises:
        ConfigError: everything that is wrong in the configuration.
    """
    environ = os.environ if environ is None else environ
    registry = ModelRegistry.from_config(environ=environ)
    enabled = load_plugins(
        settings.plugins.enabled,
        settings.plugins.tables,
        fabric=read_file(settings.config_dir / "mcp.json", None).get("fabric"),
        found=installed,
        environ=environ,
        config_dir=settings.config_dir,
        taken=registry.names(),
    )
    transport = make_transport()
    async with aclosing(transport), open_tasks() as tasks:
        async with open_plugins(
            enabled,
            config_dir=settings.config_dir,
            transport=transport,
            notice=notice,
            environ=environ,
            timeouts=settings.timeouts,
            body_limit_bytes=settings.server.body_limit_bytes,
        ) as plugins:
            for each in plugins.providers:
                registry.add(each.provider)
            own = {each.provider.name: each.transport for each in plugins.providers}

            def link(target: Target) -> Link:
                return Link(
                    transport=own.get(target.provider.name, transport),
                    timeouts=settings.timeouts,
                    retries=settings.retries,
                )

            native = NativePatterns(
                (settings.config_dir / "recipes.toml", RECIPES), registry, link=link
            )
            catalog = PatternCatalog((native, *plugins.pattern_backends))
            services = Services(
                directory=Directory(registry, catalog),
                plugins=plugins,
                transport=transport,
                own_transports=own,
                timeouts=settings.timeouts,
                retries=settings.retries,
                reasoning=settings.reasoning.alias,
                body_limit_bytes=settings.server.body_limit_bytes,
                instance_id=settings.instance_id or new_instance_id(),
                tasks=tasks,
                fresh_s=settings.discovery.ttl_s,
            )
            yield services
        tasks.cancel_scope.cancel()
