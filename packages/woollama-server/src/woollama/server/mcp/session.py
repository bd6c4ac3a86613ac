"""One connection to one MCP server: the handshake of either era, calls, and notices of changes."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    LoggingMessageNotificationParams,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from woollama.core import __version__
from woollama.server.mcp.entries import Protocol
from woollama.server.mcp.faults import FederationLoop, Refused, ServerFault
from woollama.server.mcp.federation import add_trail, trail_of
from woollama.server.mcp.health import OnProgress
from woollama.server.mcp.limits import McpLimits
from woollama.server.mcp.link import Link, Streams, catching
from woollama.server.mcp.listing import list_tools
from woollama.server.mcp.questions import NOBODY, CannotAsk, Direct, OpenCalls
from woollama.server.mcp.resource_book import ResourceBook
from woollama.server.mcp.translation import http_fault, translated

__all__ = ["Connection"]

_NO_VERDICT = frozenset({"cut", "denied", "loop", "unreachable"})
"""Faults that say nothing of the protocol that a server speaks."""

_log = logging.getLogger(__name__)


class Connection:
    """A server that has been greeted; any number of calls at once.

    Attributes:
        ended: set when it is of no use any more.
        reason: why it ended.
        http: whether requests go each their own way.
        doubted: set when something happened that a look at it would explain.
        resources: the server's resources.
        instances: the ids by which the server is known, when it is a woollama.
    """

    def __init__(
        self,
        streams: Streams,
        *,
        instance_id: str,
        limits: McpLimits,
        http: bool,
        hears: Callable[[], bool],
    ) -> None:
        """Not greeted yet.

        Args:
            streams: of its messages.
            instance_id: ours.
            limits: of every server.
            http: whether the streams are many HTTP requests and not one pipe.
            hears: whether notices of the older protocol reach us now.
        """
        self._link = Link(streams)
        self.session = ClientSession(
            dispatcher=self._link,
            client_info=Implementation(name="woollama", version=__version__),
            message_handler=self._hear,
            elicitation_callback=self._asked,
            logging_callback=self._logged,
        )
        self.resources = ResourceBook(self.session, self)
        self._open_calls = OpenCalls()
        self._instance_id = instance_id
        self._limits = limits
        self._hears = hears
        self.http = http
        self._subscribed = False
        self.instances: frozenset[str] = frozenset()
        self._changed = anyio.Event()
        self.doubted = anyio.Event()
        self.reason: str | None = None

    @property
    def ended(self) -> anyio.Event:
        """See the class."""
        return self._link.ended

    @property
    def protocol(self) -> str:
        """The revision that is spoken, ``2025-11-25``."""
        return self.session.protocol_version or ""

    @property
    def legacy(self) -> bool:
        """Whether it is one with a handshake."""
        return self.protocol not in MODERN_PROTOCOL_VERSIONS

    @property
    def follows(self) -> bool:
        """Whether the server will say when its tools change."""
        return self._announces_tools and (self._hears() if self.legacy else self._subscribed)

    @property
    def _announces_tools(self) -> bool:
        capabilities = self.session.server_capabilities
        tools = capabilities.tools if capabilities is not None else None
        return bool(tools is not None and tools.list_changed)

    def end(self, reason: str) -> None:
        """Give it up; the first reason counts."""
        if self.reason is None:
            self.reason = reason
        self.ended.set()

    async def greet(self, mode: Protocol) -> None:
        """The handshake.

        Raises:
            ServerFault: the server did not answer as one that speaks MCP.
            FederationLoop: it is ourselves.
        """
        with translated(self):
            if mode == "legacy" or not await self._discover(required=mode == "modern"):
                await self._initialize()
        answer = self.session.discover_result or self.session.initialize_result
        self._recognize(answer.meta if answer is not None else None)

    async def _discover(self, *, required: bool) -> bool:
        try:
            with anyio.fail_after(self._limits.probe_timeout_s):
                await self.session.discover()
        except MCPError as error:
            if required or http_fault(error) in _NO_VERDICT:
                raise
        except (TimeoutError, ValidationError, RuntimeError) as error:
            if required:
                raise ServerFault("it does not speak the protocol of 2026") from error
        else:
            return True
        return False

    async def _initialize(self) -> None:
        try:
            await self.session.initialize()
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise
            # It was slow, and the first request that it heard made the connection a new one.
            await self.session.discover()

    def _recognize(self, meta: object) -> None:
        trail = trail_of(meta)
        self.instances = self.instances.union(trail)
        if self._instance_id in trail:
            raise FederationLoop("it is this woollama itself: a loop; remove the entry")

    async def list_tools(self) -> tuple[list[Any], set[str]]:
        """See ``listing.list_tools``.

        Raises:
            FederationLoop: the list says that the server is ourselves.
        """
        with translated(self):
            listed, broken, metas = await list_tools(self.session)
        for meta in metas:
            self._recognize(meta)
        return listed, broken

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        meta: Mapping[str, Any] | None = None,
        trail: Iterable[str] = (),
        on_progress: OnProgress | None = None,
        direct: Direct = NOBODY,
    ) -> dict[str, Any]:
        """Runs a tool; cancelling the caller tells the server.

        Args:
            name: the server's own name of it.
            arguments: passed as they are.
            meta: the caller's ``_meta``; its progress token is replaced by one of this connection.
            trail: the ids of the woollamas before us; another woollama is told of them and us.
            on_progress: called for each progress notice.
            direct: what goes with a client's own call.

        Returns:
            The server's result, untouched.

        Raises:
            ServerFault: there is none.
        """
        ours = {"progressToken", *((LOG_LEVEL_META_KEY,) if self.legacy else ())}
        told = {key: value for key, value in (meta or {}).items() if key not in ours}
        if self.instances:
            told = add_trail(told, (*trail, self._instance_id))
        params: dict[str, Any] = {**direct.answers, "name": name, "_meta": told or None}
        if arguments is not None:
            params["arguments"] = dict(arguments)
        request = CallToolRequest(params=CallToolRequestParams.model_validate(params))
        try:
            return await self._send(request, on_progress, direct)
        except Refused as error:
            if error.rpc_code != HEADER_MISMATCH or self.legacy:
                raise
        # The arguments that it wants as headers have changed; it has run nothing.
        await self.list_tools()
        return await self._send(request, on_progress, direct)

    async def _send(
        self, request: CallToolRequest, on_progress: OnProgress | None, direct: Direct
    ) -> dict[str, Any]:
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                await on_progress(progress, total, message)

        # The newer protocol is told with each request; the older one once, before anybody calls.
        with (
            translated(self),
            self._open_calls.call(direct),
            catching(_empty_result, capabilities=direct.capabilities) as catch,
        ):
            await self.session.send_request(
                request,
                CallToolResult,
                progress_callback=None if on_progress is None else tell,
            )
        return catch.result

    async def ping(self) -> None:
        """Returns when the server is there, whatever it says.

        Raises:
            ServerFault: it is not.
        """
        try:
            with translated(self):
                if self.legacy:
                    await self.session.send_ping()
                else:
                    await self.session.send_discover(LATEST_MODERN_VERSION)
        except Refused as error:
            _log.debug("a ping was refused: %s", error.rpc_code)

    async def next_change(self) -> None:
        """Waits until the server says that its tools have changed; several times count as one."""
        await self._changed.wait()
        self._changed = anyio.Event()

    async def follow(self) -> None:
        """Keeps the subscription that the newer protocol needs for notices; ends without one."""
        wait_s = self._limits.backoff_s
        tools, resources = self._announces_tools, self.resources.announced
        while (tools or resources) and not self.legacy:
            try:
                async with listen(
                    self.session, tools_list_changed=tools, resources_list_changed=resources
                ) as subscription:
                    honored = subscription.honored
                    self._subscribed = bool(honored.tools_list_changed)
                    if not (self._subscribed or honored.resources_list_changed):
                        return
                    # What changed before is not told any more.
                    self._changed.set()
                    self.resources.forget()
                    async for event in subscription:
                        wait_s = self._limits.backoff_s
                        if isinstance(event, ResourcesListChanged):
                            self.resources.forget()
                        else:
                            self._changed.set()
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    return
            except SubscriptionLost:
                self.doubted.set()
            self._subscribed = False
            await anyio.sleep(wait_s)
            wait_s = min(wait_s * 2, self._limits.backoff_limit_s)

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()
        elif isinstance(message, ResourceListChangedNotification):
            self.resources.forget()

    async def _asked(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """A question of the older protocol, in the middle of a call."""
        question = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        question.pop("_meta", None)
        try:
            return ElicitResult.model_validate(await self._open_calls.ask(question))
        except CannotAsk as reason:
            return ErrorData(code=INVALID_REQUEST, message=f"Nobody was asked: {reason}.")

    async def _logged(self, params: LoggingMessageNotificationParams) -> None:
        await self._open_calls.log(params.model_dump(by_alias=True, mode="json", exclude_none=True))


def _empty_result(_result: dict[str, Any]) -> dict[str, Any]:
    return {"content": [], "resultType": "complete"}
