"""``GET /w1/tools``: every tool of every MCP server, and how the servers are doing (RU-49)."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from woollama.server.mcp.tools import McpTools

__all__ = ["tools_routes"]


def tools_routes(tools: McpTools) -> list[Route]:
    """The routes of this family; nothing is asked of the servers."""

    async def list_tools(_request: Request) -> Response:
        return Response(msgspec.json.encode(tools.listing()), media_type="application/json")

    return [Route("/w1/tools", list_tools)]
