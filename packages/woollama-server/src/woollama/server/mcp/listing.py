"""All pages of a server's tools, as the server wrote them."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, PaginatedRequestParams
from pydantic import ValidationError

from woollama.server.mcp.faults import ServerFault
from woollama.server.mcp.link import catching

__all__ = ["list_tools"]

_PAGES_LIMIT = 100


async def list_tools(session: ClientSession) -> tuple[list[Any], set[str], list[Any]]:
    """What ``tools/list`` gives, whatever the items are; nothing when there is no such method.

    Returns:
        The items; the names of those whose ``x-mcp-header`` marks are not valid; and the ``_meta``
        of each page.

    Raises:
        ServerFault: the pages do not come to an end.
        MCPError: the server did not give them.
    """
    listed: list[Any] = []
    broken: set[str] = set()
    metas: list[Any] = []
    cursors: set[str] = set()
    cursor: str | None = None
    for _ in range(_PAGES_LIMIT):
        page, unsendable = await _page(session, cursor)
        tools = page.get("tools")
        listed += cast("list[Any]", tools) if isinstance(tools, list) else []
        broken |= unsendable
        metas.append(page.get("_meta"))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return listed, broken, metas
        if cursor in cursors:
            raise ServerFault("its list of tools goes round in a circle")
        cursors.add(cursor)
    raise ServerFault(f"its list of tools has more than {_PAGES_LIMIT} pages")


async def _page(session: ClientSession, cursor: str | None) -> tuple[dict[str, Any], set[str]]:
    params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
    kept: set[str] = set()
    with catching(_marked) as catch:
        try:
            kept = {tool.name for tool in (await session.list_tools(params=params)).tools}
        except ValidationError:
            # A mark that is not even of the right shape: none of these can be called.
            pass
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return {}, set()
            raise
    marked = {tool["name"] for tool in _marked(catch.result)["tools"]}
    return catch.result, marked - kept


def _marked(result: dict[str, Any]) -> dict[str, Any]:
    """Of a page, the tools with arguments that go as headers too: the session must know them."""
    tools = result.get("tools")
    marked: list[dict[str, Any]] = []
    for item in cast("list[Any]", tools) if isinstance(tools, list) else []:
        match item:
            case {"name": str(name), "inputSchema": Mapping()} if _is_marked(item["inputSchema"]):
                marked.append({"name": name, "inputSchema": item["inputSchema"]})
            case _:
                pass
    page = {"tools": marked, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    # One of several pages must not make the session forget the others.
    return page if result.get("nextCursor") is None else {**page, "nextCursor": "more"}


def _is_marked(schema: Any) -> bool:
    return b"x-mcp-header" in msgspec.json.encode(schema)
