"""The application: routes and what stands around them, as one plain ASGI callable."""

import anyio
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from woollama.server.errors import EXCEPTION_HANDLERS
from woollama.server.plugins.mounting import mount_routes
from woollama.server.routes import chat
from woollama.server.routes.embeddings import embeddings_routes
from woollama.server.routes.health import health_routes
from woollama.server.routes.mcp import mcp_routes
from woollama.server.routes.models import models_routes
from woollama.server.routes.tools import tools_routes
from woollama.server.routes.w1 import w1_routes
from woollama.server.services import Services

__all__ = ["make_app"]


def make_app(services: Services, *, stop: anyio.Event | None = None) -> ASGIApp:
    """Everything that is served, without the door (see ``auth``) in front of it.

    Args:
        services: what the routes work with.
        stop: set when the daemon is told to stop.

    The chat route is reached before Starlette: its routing and two exception layers cost an eighth
    of a request, and this route needs neither.
    """
    chat_route = chat.ChatRoute(services)
    routes = [
        Route(chat.PATH, chat_route, methods=["POST"]),
        *models_routes(services),
        *embeddings_routes(services),
        *w1_routes(services),
        *tools_routes(services.tools),
        *mcp_routes(services, stop=stop),
        *health_routes(services),
        *mount_routes(services.plugins.contributions),
    ]
    others = Starlette(routes=routes, exception_handlers=EXCEPTION_HANDLERS)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == chat.PATH and scope["method"] == "POST":
            await chat_route(scope, receive, send)
        else:
            await others(scope, receive, send)

    return app
