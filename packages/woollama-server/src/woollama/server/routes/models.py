"""``GET /v1/models`` and ``GET /v1/models/{id}``: what is on offer, from all providers at once."""

import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from woollama.core.directory import OWN_NAMESPACE, near_names
from woollama.core.errors import UnknownModel
from woollama.core.patterns import Pattern
from woollama.core.providers import Provider
from woollama.core.wire import ModelInfo
from woollama.server.offers import PATIENCE_S
from woollama.server.services import Services

__all__ = ["model_entries", "models_routes"]


def models_routes(services: Services) -> list[Route]:
    """The routes of this family."""
    started = int(time.time())

    async def list_models(_request: Request) -> Response:
        entries = await model_entries(services, created=started)
        return _json({"object": "list", "data": entries})

    async def retrieve(request: Request) -> Response:
        wanted = request.path_params["model"]
        entries = await model_entries(services, created=started)
        for entry in entries:
            if entry["id"] == wanted:
                return _json(entry)
        near = near_names(wanted, [entry["id"] for entry in entries])
        raise UnknownModel(
            f"There is no model {wanted!r} in the list.{near}",
            param="model",
            code="model_not_found",
        )

    return [
        Route("/v1/models", list_models),
        Route("/v1/models/{model:path}", retrieve),
    ]


async def model_entries(services: Services, *, created: int) -> list[dict[str, Any]]:
    """The entries of the list: providers in their order, then the recipes and patterns.

    Args:
        services: whose offers are listed.
        created: Unix time for models whose provider gives none.
    """
    providers = services.directory.registry.all()
    entries: dict[str, dict[str, Any]] = {}
    for offer in await services.offers.list(patience_s=PATIENCE_S):
        provider = providers[offer.provider]
        for info in offer.models:
            entry = _entry(provider, info, created)
            entries.setdefault(entry["id"], entry)
    for pattern in services.directory.catalog.list():
        if pattern.model is not None:
            entry = _pattern_entry(pattern, created)
            entries.setdefault(entry["id"], entry)
    return list(entries.values())


def _entry(provider: Provider, info: ModelInfo, created: int) -> dict[str, Any]:
    declared = provider.model_settings.get(info.id)
    entry: dict[str, Any] = {
        "id": f"{provider.name}/{info.id}",
        "object": "model",
        "created": info.created if info.created is not None else created,
        "owned_by": provider.name,
    }
    if info.context is not None:
        entry["context_length"] = info.context
    own: dict[str, Any] = {
        "kind": provider.kind,
        "dialect": provider.dialect_for(info.id).name,
    }
    if declared is not None and declared.efforts:
        own["efforts"] = list(declared.efforts)
    entry["woollama"] = own
    return entry


def _pattern_entry(pattern: Pattern, created: int) -> dict[str, Any]:
    return {
        "id": f"{OWN_NAMESPACE}/{pattern.name}",
        "object": "model",
        "created": created,
        "owned_by": OWN_NAMESPACE,
        "woollama": {"source": pattern.source, "runs_on": pattern.model},
    }


def _json(body: Any) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
