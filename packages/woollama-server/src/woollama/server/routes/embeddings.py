"""``POST /v1/embeddings``: bytes pass; a vector in the form the client asked for.

OpenAI's clients ask for ``base64`` (little-endian 32-bit floats) unless told otherwise, and some
servers answer lists of numbers all the same: those are converted.
"""

import base64
import struct
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from woollama.core.directory import FoundPattern
from woollama.core.errors import ReplyError, RequestError
from woollama.core.exchange import read_body
from woollama.core.providers import Target
from woollama.core.relay import open_relay, raw_body
from woollama.core.wire.faults import kept_headers
from woollama.server.leaving import call_while_connected
from woollama.server.logs import request_log
from woollama.server.services import Services
from woollama.server.surface.client import read_request
from woollama.server.surface.fields import text_field

__all__ = ["embeddings_routes", "in_base64"]

_LIMIT_REPLY_BYTES = 256 * 1024 * 1024


def embeddings_routes(services: Services) -> list[Route]:
    """The routes of this family."""

    async def embed(request: Request) -> Response:
        body = await read_request(request.receive, limit_bytes=services.body_limit_bytes)
        fields = raw_body(body)
        model = text_field(fields, "model")
        log = request_log(request.scope)
        log.model = model
        target = _target(services, model)
        log.provider = target.provider.name
        wants_base64 = bytes(fields.get("encoding_format", b"")) == b'"base64"'
        reply, headers = b"", {}
        with call_while_connected(request.scope, request.receive):
            async with open_relay(
                target,
                fields,
                "/embeddings",
                transport=services.transport_for(target.provider),
                timeouts=services.timeouts,
                retries=services.retries,
            ) as response:
                headers = kept_headers(response.headers)
                reply = await read_body(response, limit_bytes=_LIMIT_REPLY_BYTES)
        if not reply.lstrip().startswith(b"{"):
            raise ReplyError(
                "The provider answered something that is no list of embeddings.",
                payload=reply[:500].decode(errors="replace"),
            )
        if wants_base64 and b"[" in reply:
            reply = in_base64(reply)
        return Response(reply, media_type="application/json", headers=headers)

    return [Route("/v1/embeddings", embed, methods=["POST"])]


def _target(services: Services, model: str) -> Target:
    found = services.directory.find(model, known=services.offers.names())
    if isinstance(found, FoundPattern):
        raise RequestError(f"{model!r} is a prompt; it has no embeddings.", param="model")
    if found.provider.kind == "anthropic":
        raise RequestError(
            f"Provider {found.provider.name!r} speaks Anthropic's API, which has no embeddings.",
            param="model",
        )
    if found.provider.has_capability(found.model, "embedding") is False:
        raise RequestError(
            f"{model} is declared for something else than embeddings (serves).", param="model"
        )
    return found


def in_base64(reply: bytes) -> bytes:
    """An embeddings reply with every list of numbers turned into base64.

    Raises:
        ReplyError: it is no embeddings reply.
    """
    try:
        body: Any = msgspec.json.decode(reply)
    except msgspec.DecodeError as error:
        raise ReplyError(f"The provider's embeddings are not JSON ({error}).") from error
    items = cast("dict[str, Any]", body).get("data") if isinstance(body, dict) else None
    if not isinstance(items, list):
        raise ReplyError("The provider's embeddings have no list 'data'.", payload=body)
    for item in cast("list[dict[str, Any]]", items):
        vector = item.get("embedding")
        if isinstance(vector, list):
            item["embedding"] = _packed(cast("Sequence[float]", vector))
    return msgspec.json.encode(body)


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
