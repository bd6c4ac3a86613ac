"""What the dialects of OpenAI's family share in a request: parameters leave as they are (RU-18)."""

from typing import Any

from woollama.core.canonical import ChatRequest
from woollama.core.wire.codec import WireSettings
from woollama.core.wire.refusals import asks_for_nothing, refuse

__all__ = ["openai_params"]

_OLLAMA = ("options", "keep_alive")


def openai_params(
    request: ChatRequest, settings: WireSettings, *, dialect: str, cap_field: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The top-level fields beside the conversation and the tools, and the names left out.

    ``stream_options`` are not among them: each dialect has its own.

    Args:
        request: what is to be encoded.
        settings: of the provider; ``cache_key`` fills in, ``drop_params`` takes out.
        dialect: its name, for the message.
        cap_field: the dialect's name of ``max_tokens``; ``drop_params`` may say either.

    Raises:
        CannotEncode: Ollama's ``options`` or ``keep_alive``.
    """
    asked = request.params.asked()
    asked.pop("stream_options", None)
    if settings.cache_key is not None:
        asked.setdefault("prompt_cache_key", settings.cache_key)
    asked.update(request.extra)
    names = {"max_tokens": cap_field}
    drop = settings.drop_params
    dropped = tuple(name for name in asked if name in drop or names.get(name) in drop)
    for name in dropped:
        del asked[name]
    for name in _OLLAMA:
        value = asked.pop(name, None)
        if not asks_for_nothing(name, value):
            # Ollama's own /v1 would ignore them and load the default context.
            raise refuse(dialect, name)
    cap = asked.pop("max_tokens", None)
    if cap is not None:
        asked[cap_field] = cap
    return asked, dropped
