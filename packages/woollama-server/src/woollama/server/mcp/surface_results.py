"""Results that reach the client as they are, under the envelope that its revision wants.

The SDK puts each result through the models of the negotiated revision: what it does not know is
dropped, and a result with an odd part is lost or refused. So a handler gives the SDK a stand-in
that is right, and hands the result itself over beside it. What no client of a revision could read
at all is replaced, visibly, by ``readable``.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import msgspec
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import ValidationError

from woollama.core.canonical.value import NOTHING

__all__ = [
    "BLOCK_META",
    "Context",
    "fits",
    "hand_over",
    "is_modern",
    "mapping_in",
    "pass_through",
    "readable",
]

BLOCK_META = "woollama/block"
"""Key in the ``_meta`` of a substitute: the block that it stands for."""

_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""Blocks that are younger than the protocol, which the SDK's models do not tell apart."""

_UNCACHED: Mapping[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_ENVELOPE = frozenset(_UNCACHED)

Context = ServerRequestContext[Any, Any]
CallNext = Callable[[Context], Awaitable[HandlerResult]]

S = TypeVar("S")


class _Parcel:
    """What a handler has handed over, if it has."""

    def __init__(self) -> None:
        self.raw: Mapping[str, Any] | None = None


_parcel: ContextVar[_Parcel | None] = ContextVar("woollama_mcp_parcel", default=None)
"""The parcel of the request that this task is answering; empty outside of one."""


def hand_over(raw: Mapping[str, Any], stand_in: S) -> S:
    """Sends ``raw`` to the client; the SDK sees ``stand_in``, which is returned."""
    parcel = _parcel.get()
    assert parcel is not None, "the middleware is not there"
    parcel.raw = raw
    return stand_in


async def pass_through(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The middleware that ``hand_over`` needs."""
    parcel = _Parcel()
    token = _parcel.set(parcel)
    try:
        result = await call_next(ctx)
    finally:
        _parcel.reset(token)
    if parcel.raw is None:
        return result
    return _enveloped(cast("dict[str, Any]", result), parcel.raw)


def _enveloped(sieved: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The result under the stand-in's envelope, which the SDK has made for the revision."""
    own = {key: value for key, value in raw.items() if key not in _ENVELOPE}
    if raw.get("resultType") == "input_required":
        result = {**own, "resultType": raw["resultType"]}
    else:
        result = {**sieved, **own}
    said = mapping_in(raw.get("_meta"))
    meta = {key: value for key, value in said.items() if key != SERVER_INFO_META_KEY}
    meta |= mapping_in(sieved.get("_meta"))
    if meta:
        result["_meta"] = meta
    else:
        result.pop("_meta", None)
    return result


def is_modern(version: str) -> bool:
    """Whether it is a revision without a handshake."""
    return version in MODERN_PROTOCOL_VERSIONS


def fits(method: str, version: str, result: Mapping[str, Any]) -> bool:
    """Whether clients of a revision can read this result of a list."""
    try:
        serialize_server_result(method, version, {**_UNCACHED, **result})
    except ValidationError:
        return False
    return True


def readable(raw: Mapping[str, Any], version: str) -> dict[str, Any]:
    """A tool's result in which a client of this revision finds nothing that it cannot read.

    A block of an unknown type becomes a text block that says so, with the block in its ``_meta``.
    A structured result that is no object becomes text for revisions that know only objects.
    """
    if raw.get("resultType") == "input_required":
        return dict(raw)
    given = raw.get("content")
    content = cast("list[Any]", given) if isinstance(given, list) else []
    result = {**raw, "content": [_block(block, version) for block in content]}
    structured = raw.get("structuredContent")
    if "structuredContent" in raw and not is_modern(version) and not isinstance(structured, dict):
        del result["structuredContent"]
        if structured is not None and not content:
            text = msgspec.json.encode(structured).decode()
            result["content"] = [{"type": "text", "text": text}]
    if "isError" in raw and not isinstance(raw["isError"], bool):
        del result["isError"]
    return result


def _block(block: Any, version: str) -> Any:
    match block:
        case {"type": "text", "text": str(), **rest} if not rest:
            return block
        case {"type": str(kind)} if _is_known(block, kind, version):
            return block
        case _:
            kind = str(mapping_in(block).get("type", "none"))
            text = f"[a block of type {kind[:40]!r} that this client cannot read]"
            return {"type": "text", "text": text, "_meta": {BLOCK_META: block}}


def _is_known(block: Mapping[str, Any], kind: str, version: str) -> bool:
    since = _SINCE.get(kind)
    if since is not None and not is_version_at_least(version, since):
        return False
    data = {**_UNCACHED, "content": [block]}
    try:
        # The newest revision has another kind of result, which what does not fit is taken for.
        return bool(serialize_server_result("tools/call", version, data).get("content"))
    except ValidationError:
        return False


def mapping_in(value: object) -> Mapping[str, Any]:
    """``value`` if it is a mapping, else the empty one: what others sent may be anything."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else NOTHING
