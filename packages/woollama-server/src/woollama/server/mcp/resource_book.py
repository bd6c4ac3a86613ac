"""The resources of one connection: listed when somebody asks, and kept until they change."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import anyio
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    ListResourcesRequest,
    ListResourcesResult,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from pydantic import BaseModel

from woollama.server.mcp.faults import ServerFault
from woollama.server.mcp.link import catching
from woollama.server.mcp.translation import Endable, translated

__all__ = ["ResourceBook"]

_PAGES_LIMIT = 100

R = TypeVar("R", bound=BaseModel)
Listed = tuple[Mapping[str, Any], ...]


class ResourceBook:
    """What a server has to read.

    Attributes:
        changed: set by ``forget``; whoever waits for it puts a new one in its place.
    """

    def __init__(self, session: ClientSession, connection: Endable) -> None:
        """Nothing is asked yet.

        Args:
            session: a session that will be greeted.
            connection: ended when it turns out to be closed.
        """
        self._session = session
        self._connection = connection
        self._listed: tuple[Listed, Listed] | None = None
        self._turn = anyio.Lock()
        self.changed = anyio.Event()

    @property
    def offered(self) -> bool:
        """Whether the server has declared resources at all."""
        capabilities = self._session.server_capabilities
        return capabilities is not None and capabilities.resources is not None

    @property
    def announced(self) -> bool:
        """Whether it will say when they change."""
        capabilities = self._session.server_capabilities
        resources = capabilities.resources if capabilities is not None else None
        return bool(resources is not None and resources.list_changed)

    def forget(self) -> None:
        """They have changed."""
        self._listed = None
        self.changed.set()

    async def listed(self, *, meta: Mapping[str, Any] | None = None) -> tuple[Listed, Listed]:
        """The resources and the templates, each as the server described it, all pages.

        Args:
            meta: goes with each request.

        Raises:
            ServerFault: the server did not give them.
        """
        if not self.offered:
            return (), ()
        async with self._turn:
            if self._listed is None or not self.announced:
                with translated(self._connection):
                    resources = await self._pages(
                        ListResourcesRequest, ListResourcesResult, "resources", meta
                    )
                    templates = await self._pages(
                        ListResourceTemplatesRequest,
                        ListResourceTemplatesResult,
                        "resourceTemplates",
                        meta,
                    )
                self._listed = resources, templates
            return self._listed

    async def read(self, uri: str, *, meta: Mapping[str, Any] | None) -> dict[str, Any]:
        """One resource; the server's result, untouched.

        Args:
            uri: the server's own.
            meta: the caller's ``_meta``.

        Raises:
            ServerFault: there is no result.
        """
        params = ReadResourceRequestParams.model_validate({"uri": uri, "_meta": meta or None})
        stand_in: dict[str, Any] = {"contents": [], "resultType": "complete", **_UNCACHED}
        with translated(self._connection), catching(lambda _: stand_in, capabilities={}) as catch:
            await self._session.send_request(ReadResourceRequest(params=params), ReadResourceResult)
        return catch.result

    async def _pages(
        self, request: Any, result: type[R], key: str, meta: Mapping[str, Any] | None
    ) -> Listed:
        listed: list[Mapping[str, Any]] = []
        cursors: set[str] = set()
        cursor: str | None = None
        stand_in: dict[str, Any] = {key: [], "resultType": "complete", **_UNCACHED}
        for _ in range(_PAGES_LIMIT):
            given = {"cursor": cursor, "_meta": meta or None}
            params = PaginatedRequestParams.model_validate(given)
            with catching(lambda _: stand_in, capabilities={}) as catch:
                try:
                    await self._session.send_request(request(params=params), result)
                except MCPError as error:
                    if error.code == METHOD_NOT_FOUND:
                        return ()
                    raise
            page = catch.result.get(key)
            items = cast("list[Any]", page) if isinstance(page, list) else []
            listed += [
                cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)
            ]
            cursor = catch.result.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return tuple(listed)
            if cursor in cursors:
                raise ServerFault(f"its list of {key} goes round in a circle")
            cursors.add(cursor)
        raise ServerFault(f"its list of {key} has more than {_PAGES_LIMIT} pages")


_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}
