"""The door: the layers in front of the application, in their order.

From outside in: the request's log line and id, the boundary that turns what is raised into an error
object, the questions who may ask. What is behind it may raise and need not check.
"""

from starlette.types import ASGIApp

from woollama.server.address import Address
from woollama.server.auth import AccessRules, Auth
from woollama.server.errors import ErrorBoundary
from woollama.server.logs import RequestLogging
from woollama.server.settings import Settings

__all__ = ["behind_door"]


def behind_door(app: ASGIApp, settings: Settings, address: Address) -> ASGIApp:
    """The application as a runner serves it.

    Args:
        app: the routes.
        settings: the token, ``[server]``.
        address: where the daemon really listens, from the binding.
    """
    guarded = Auth(app, AccessRules.of(settings, address))
    return RequestLogging(ErrorBoundary(guarded), log_bodies=settings.server.log_bodies)
