"""What the routes and the command line work with: made once, passed by argument."""

from collections.abc import Mapping

from anyio.abc import TaskGroup

from woollama.core.directory import Directory
from woollama.core.providers import Provider, Target
from woollama.core.retries import Retries
from woollama.core.runs.plan import Link
from woollama.core.transport import Timeouts, Transport
from woollama.server.mcp.exports import Exports
from woollama.server.mcp.tools import McpTools
from woollama.server.offers import Offers
from woollama.server.plugins.running import RunningPlugins

__all__ = ["Services"]


class Services:
    """Everything that lives as long as the daemon.

    Attributes:
        directory: model names to what answers for them.
        offers: what the providers offer.
        plugins: what plugins contribute, and how they are.
        tools: those of the MCP servers.
        exports: what is passed on over MCP.
        tasks: for what lives as long as the daemon and begins later.
        timeouts, retries: of every request to a provider.
        reasoning: the key under which thinking leaves in chat replies.
        body_limit_bytes: the longest request body.
        instance_id: tells this daemon from others.
    """

    def __init__(
        self,
        *,
        directory: Directory,
        plugins: RunningPlugins,
        tools: McpTools,
        tasks: TaskGroup,
        fresh_s: float,
        transport: Transport,
        own_transports: Mapping[str, Transport],
        timeouts: Timeouts,
        retries: Retries,
        reasoning: str,
        body_limit_bytes: int,
        instance_id: str,
        exports: Exports = Exports(),  # noqa: B008 - an immutable value
    ) -> None:
        """Made by ``lifespan.open_services``."""
        self.directory = directory
        self.plugins = plugins
        self.tools = tools
        self.exports = exports
        self.tasks = tasks
        self.timeouts = timeouts
        self.retries = retries
        self.reasoning = reasoning
        self.body_limit_bytes = body_limit_bytes
        self.instance_id = instance_id
        self._transport = transport
        self._own_transports = own_transports
        self.offers = Offers(
            tuple(directory.registry.all().values()), self.transport_for, tasks, fresh_s=fresh_s
        )

    def transport_for(self, provider: Provider) -> Transport:
        """How a provider is reached: by its plugin's transport, else by the daemon's own."""
        return self._own_transports.get(provider.name, self._transport)

    def link(self, target: Target) -> Link:
        """How a run reaches a model."""
        return Link(
            transport=self.transport_for(target.provider),
            timeouts=self.timeouts,
            retries=self.retries,
        )
