"""``GET /healthz``, ``GET /readyz``, ``HEAD /``: is it alive, can it serve."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from woollama.core import __version__
from woollama.server.services import Services

__all__ = ["health_routes"]


def health_routes(services: Services) -> list[Route]:
    """The routes of this family."""

    async def alive(_request: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(_request: Request) -> Response:
        # Ready is: the configuration was taken and every plugin is set up, or nothing would answer.
        return _json({"status": "ready", "version": __version__, "id": services.instance_id})

    async def root(_request: Request) -> Response:
        return _json({"name": "woollama", "version": __version__})

    return [
        Route("/healthz", alive),
        Route("/readyz", ready),
        Route("/", root),
    ]


def _json(body: dict[str, str]) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
