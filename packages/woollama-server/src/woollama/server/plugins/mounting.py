"""The routes of plugins, each under the prefix of its plugin."""

from collections.abc import Iterable

from starlette.routing import Mount, Route, Router

from woollama.server.plugins.contract import PluginRoute
from woollama.server.plugins.contributions import Contributions

__all__ = ["mount_routes"]


def mount_routes(contributions: Iterable[Contributions]) -> list[Mount]:
    """One mount for each plugin that has routes, for the application's list of routes."""
    return [
        Mount(
            each.prefix,
            app=Router([_route(route) for route in each.routes], redirect_slashes=False),
        )
        for each in contributions
        if each.routes
    ]


def _route(route: PluginRoute) -> Route:
    return Route(route.path, route.endpoint, methods=list(route.methods) or None)
