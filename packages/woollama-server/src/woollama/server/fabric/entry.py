"""The plugin ``fabric``."""

from collections.abc import Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from woollama.core.patterns import PatternBackend
from woollama.core.transport import Transport
from woollama.server.fabric.backend import FabricBackend
from woollama.server.fabric.client import FabricClient
from woollama.server.fabric.config import FabricConfig, with_environment
from woollama.server.fabric.environment import child_environment
from woollama.server.fabric.keys import key_of
from woollama.server.fabric.library import Library
from woollama.server.fabric.process import FabricServer, ManagedServer, RemoteServer
from woollama.server.fabric.proxy import FabricProxy
from woollama.server.fabric.vision import Program
from woollama.server.plugins.contract import (
    Health,
    HealthCheck,
    Plugin,
    PluginContext,
    PluginRoute,
)

__all__ = ["FabricPlugin"]

SETTLE_S = 3.0
"""How long the start waits for fabric's list; a fabric that is slower is picked up later."""


class FabricPlugin(Plugin):
    """Brings fabric's patterns, and its API under ``/fabric``."""

    name = "fabric"
    api_version = 1
    summary = "fabric's patterns on /w1 and /v1, and its API under /fabric."
    config_type = FabricConfig

    def __init__(self) -> None:
        """Nothing is at work yet."""
        self._fabric: _Fabric | None = None

    def pattern_backends(self, context: PluginContext) -> Sequence[PatternBackend]:
        """One, unless fabric is switched off."""
        fabric = self._of(context)
        return (fabric.backend,) if fabric is not None else ()

    def routes(self, context: PluginContext) -> Sequence[PluginRoute]:
        """Everything below ``/fabric``, as the proxy lets it pass."""
        fabric = self._of(context)
        if fabric is None:
            return ()
        proxy = FabricProxy(fabric.client, fabric.config, body_limit_bytes=context.body_limit_bytes)
        return (PluginRoute(path="/{path:path}", endpoint=proxy, methods=()),)

    def health_checks(self, context: PluginContext) -> Mapping[str, HealthCheck]:
        """Whether fabric answered when it was last asked for its list."""
        fabric = self._of(context)
        return {"server": fabric.health} if fabric is not None else {}

    async def setup(self, context: PluginContext) -> None:
        """Asks for the list of patterns, which starts a managed fabric; goes on without it."""
        fabric = self._of(context)
        if fabric is None:
            return
        first = anyio.Event()
        context.tasks.start_soon(fabric.library.keep_asking, first)
        context.notice("Asking fabric for its patterns …")
        with anyio.move_on_after(SETTLE_S):
            await first.wait()
        context.notice("")

    async def teardown(self, context: PluginContext) -> None:
        """Ends a fabric that is ours."""
        fabric = self._of(context)
        self._fabric = None
        if fabric is not None:
            await fabric.server.aclose()

    def _of(self, context: PluginContext) -> "_Fabric | None":
        config = context.config if isinstance(context.config, FabricConfig) else FabricConfig()
        if config.url is None and not config.managed:
            return None
        if self._fabric is None or self._fabric.context is not context:
            self._fabric = _Fabric(context, config)
        return self._fabric


class _Fabric:
    """What one life of the plugin consists of."""

    def __init__(self, context: PluginContext, config: FabricConfig) -> None:
        self.context = context
        self.config = with_environment(config, context.environ)
        key = key_of(self.config, context.environ)
        self.server = _server(self.config, context.tasks, context.transport, key, context.environ)
        self.client = FabricClient(self.server, context.transport, key)
        self.library = Library(self.client, context.tasks, refresh_s=self.config.refresh_s)
        program = Program(
            command=self.config.command,
            env=child_environment(context.environ, self.config.env),
            timeout_s=self.config.vision_timeout_s,
        )
        self.backend = FabricBackend(self.config, self.client, self.library, program)

    async def health(self) -> Health:
        error = self.library.error
        if error is not None:
            return Health(ok=False, detail=error.message[:200])
        count = len(self.library.names())
        return Health(ok=True, detail=f"{count} patterns")


def _server(
    config: FabricConfig,
    tasks: TaskGroup,
    transport: Transport,
    key: str | None,
    environ: Mapping[str, str],
) -> FabricServer:
    if config.url is not None:
        return RemoteServer(config.url, transport, key)
    return ManagedServer(config, tasks=tasks, transport=transport, key=key, environ=environ)
