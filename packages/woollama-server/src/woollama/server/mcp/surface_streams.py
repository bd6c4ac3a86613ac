"""The MCP surface on our own standard streams: one client, which has started us."""

from woollama.server.mcp.own_streams import open_own_streams
from woollama.server.mcp.surface import open_surface
from woollama.server.mcp.surface_sources import Sources

__all__ = ["serve_streams"]


async def serve_streams(sources: Sources) -> None:
    """Serves until the client closes our stdin."""
    async with (
        open_surface(sources) as surface,
        open_own_streams(limit_bytes=sources.body_limit_bytes) as (messages, outbox),
    ):
        server = surface.server
        await server.run(messages, outbox, server.create_initialization_options())
