"""This woollama as an MCP server, in both eras of the protocol.

Loaded when somebody first asks for it (ruling RU-60). What each method answers is in the modules
``surface_*``; here they are put together round the SDK's server.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import mcp_types as types
from mcp.server.context import HandlerResult
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp

from woollama.core import __version__
from woollama.core.scopes import open_tasks
from woollama.server.instance import INSTANCE_HEADER
from woollama.server.mcp.federation import add_trail, trail_of
from woollama.server.mcp.surface_calls import ToolCalls, passed_meta
from woollama.server.mcp.surface_chat import CHAT, ChatTool
from woollama.server.mcp.surface_notices import Notices
from woollama.server.mcp.surface_prompts import Prompts
from woollama.server.mcp.surface_questions import Conversations
from woollama.server.mcp.surface_resources import Resources
from woollama.server.mcp.surface_results import Context, hand_over, pass_through
from woollama.server.mcp.surface_sources import Sources
from woollama.server.mcp.surface_tools import ExportedTools
from woollama.server.mcp.surface_voice import Levels, meta_of
from woollama.server.tracebacks import describe_exception

__all__ = ["Surface", "open_surface"]

INSTRUCTIONS = (
    "woollama puts models, prompts and tools behind one address. The tool 'chat' asks any model, "
    "recipe or pattern that is configured here; the prompts are these recipes and patterns. Tools "
    "named SERVER__TOOL belong to the MCP servers behind woollama, and resources under "
    "woollama://SERVER/ are theirs, too."
)

_SESSION_IDLE_S = 1800.0
_SESSIONS_LIMIT = 1000
_IDENTIFIED = frozenset({"initialize", "server/discover", "tools/list", "resources/list"})
"""Methods whose result says who we are, so that another woollama notices a loop."""

_log = logging.getLogger(__name__)
CallNext = Callable[[Context], Awaitable[HandlerResult]]


class Surface:
    """The MCP server of one daemon, or of one pair of streams.

    Attributes:
        server: the SDK's.
        notices: who is told of changes.
    """

    def __init__(self, sources: Sources, conversations: Conversations) -> None:
        """Made by ``open_surface``."""
        self._instance_id = sources.instance_id
        self._chat = ChatTool(sources)
        self._exported = ExportedTools(sources, taken=(CHAT,))
        self._prompts = Prompts(sources.directory.catalog)
        self._resources = Resources(sources)
        levels = Levels()
        self._calls = ToolCalls(
            sources, self._exported, self._chat, conversations=conversations, levels=levels
        )
        self.notices = Notices(
            sources.tools,
            tools_state=self._exported.state,
            prompts_state=sources.directory.catalog.list,
        )
        self._body_limit_bytes = sources.body_limit_bytes
        self.server = _Server(
            "woollama",
            version=__version__,
            title="woollama",
            instructions=INSTRUCTIONS,
            # Their marks for HTTP headers are taken off, so there is nothing to compare.
            get_tool_input_schema=lambda _name: None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self.notices.listen,
        )
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, levels.set)
        # In the place of the SDK's own, which is for telemetry.
        self.server.middleware[:] = [_contained, self._identified, pass_through]

    @asynccontextmanager
    async def open_http(self) -> AsyncGenerator[ASGIApp]:
        """The ASGI application of one endpoint; who may ask is the door's matter."""
        manager = StreamableHTTPSessionManager(
            self.server,
            max_request_body_size=self._body_limit_bytes,
            session_idle_timeout=_SESSION_IDLE_S,
            max_sessions=_SESSIONS_LIMIT,
        )
        async with manager.run():
            yield StreamableHTTPASGIApp(manager)

    def close(self) -> None:
        """Ends the streams of clients that only listen, in the way they understand."""
        self.notices.listen.close()

    async def _identified(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Says who we are, and learns who is there."""
        result = await call_next(ctx)
        if ctx.method == "notifications/initialized":
            self.notices.greeted(ctx)
        if ctx.method not in _IDENTIFIED:
            return result
        given = (
            result.model_dump(by_alias=True, mode="json", exclude_none=True)
            if isinstance(result, types.Result)
            else dict(cast("Mapping[str, Any]", result))
        )
        meta = cast("Mapping[str, Any]", given.get("_meta") or {})
        return {**given, "_meta": add_trail(meta, [self._instance_id])}

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        _refuse_cursor(params)
        if not _is_woollama(ctx):
            # Two that wait for each other would both wait in vain.
            await self._exported.settle()
        tools = [self._chat.described(), *self._exported.described(ctx.protocol_version)]
        return hand_over({"tools": tools}, types.ListToolsResult(tools=[]))

    async def _call_tool(
        self, ctx: Context, _params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return hand_over(await self._calls.call(ctx), types.CallToolResult(content=[]))

    async def _list_prompts(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        _refuse_cursor(params)
        return hand_over({"prompts": self._prompts.listed()}, types.ListPromptsResult(prompts=[]))

    async def _get_prompt(
        self, _ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        result = await self._prompts.get(params.name, params.arguments or {})
        return hand_over(result, types.GetPromptResult(messages=[]))

    async def _complete(
        self, _ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        values: list[str] = []
        if isinstance(params.ref, types.PromptReference):
            argument = params.argument
            values = self._prompts.choices(params.ref.name, argument.name, argument.value)
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values)))

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        _refuse_cursor(params)
        items = await self._resources.listed(ctx.protocol_version, trail_of(meta_of(ctx)))
        return hand_over({"resources": items}, types.ListResourcesResult(resources=[]))

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        _refuse_cursor(params)
        items = await self._resources.templates(ctx.protocol_version, trail_of(meta_of(ctx)))
        return hand_over(
            {"resourceTemplates": items}, types.ListResourceTemplatesResult(resource_templates=[])
        )

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        meta = meta_of(ctx)
        trail = trail_of(meta)
        if self._instance_id in trail:
            raise MCPError(INVALID_PARAMS, "A loop: this request has come through this woollama.")
        raw = await self._resources.read(params.uri, meta=passed_meta(meta), trail=trail)
        return hand_over(raw, types.ReadResourceResult(contents=[]))


class _Server(Server[Any]):
    """The SDK's, which says of us what is true."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        # Over HTTP nobody passes what notices there are.
        return super().create_initialization_options(
            notification_options or NotificationOptions(True, True, True),
            experimental_capabilities,
            extensions,
        )

    def get_capabilities(self, *args: Any, **more: Any) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(*args, **more)
        if capabilities.resources is not None:
            # Lists are followed; single resources are not.
            capabilities.resources.subscribe = False
        return capabilities


@asynccontextmanager
async def open_surface(sources: Sources) -> AsyncGenerator[Surface]:
    """The surface at work: it tells clients what changes until it is left."""
    async with open_tasks() as tasks:
        surface = Surface(sources, Conversations(tasks))
        tasks.start_soon(surface.notices.run)
        yield surface
        tasks.cancel_scope.cancel()


async def _contained(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Lets nothing out but errors of the protocol: the SDK would show clients what others say."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        # The top of what answers one message; each fault that is expected has its words by now.
        _log.error("MCP %s failed unexpectedly:\n%s", ctx.method, describe_exception(error))
        message = "woollama failed unexpectedly; its log says more."
        raise MCPError(INTERNAL_ERROR, message) from error


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "There is no such page: lists come whole.")


def _is_woollama(ctx: Context) -> bool:
    request: object = ctx.request
    return isinstance(request, Request) and INSTANCE_HEADER in request.headers
