"""Model lists as OpenAI and Anthropic write them: ``{"data": [{"id": …}]}``."""

from collections.abc import Mapping
from typing import Any, cast

from woollama.core.errors import ReplyError
from woollama.core.wire.codec import ModelInfo
from woollama.core.wire.framing import parse

__all__ = ["decode_openai_models"]

_CONTEXT_KEYS = ("context_length", "context_window", "max_input_tokens", "max_model_len")


def decode_openai_models(body: bytes) -> tuple[ModelInfo, ...]:
    """The entries of ``data``, or of a bare list; entries without an id are skipped.

    Raises:
        ReplyError: it is no such list.
    """
    payload = parse(body)
    items: Any = payload
    if isinstance(payload, Mapping):
        items = cast("Mapping[str, Any]", payload).get("data")
    if not isinstance(items, list):
        raise ReplyError("The provider's model list has no list 'data'.", payload=payload)
    found = (_entry(item) for item in cast("list[Any]", items))
    return tuple(info for info in found if info is not None)


def _entry(item: Any) -> ModelInfo | None:
    if not isinstance(item, Mapping):
        return None
    raw = cast("Mapping[str, Any]", item)
    identity = raw.get("id")
    if not isinstance(identity, str) or not identity:
        return None
    created = raw.get("created")
    owner = raw.get("owned_by")
    context = next((raw[key] for key in _CONTEXT_KEYS if isinstance(raw.get(key), int)), None)
    return ModelInfo(
        id=identity,
        created=created if isinstance(created, int) else None,
        owned_by=owner if isinstance(owner, str) else None,
        context=context,
    )
