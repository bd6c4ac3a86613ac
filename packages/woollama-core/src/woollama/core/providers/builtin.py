"""The providers that are known without any configuration (core API, section 7)."""

import os
from collections.abc import Mapping

import msgspec

from woollama.core.providers.addresses import check_address
from woollama.core.providers.provider import Provider
from woollama.core.wire import WireSettings

__all__ = ["BUILTIN", "builtin_providers"]

BUILTIN: tuple[Provider, ...] = (
    Provider("ollama", "http://localhost:11434/v1", discover=True, kind="ollama"),
    Provider(
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        kind="anthropic",
    ),
    Provider(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        settings=WireSettings(output_field="max_completion_tokens"),
    ),
    Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Provider("together", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
    Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
)
"""In the order in which they are listed."""


def builtin_providers(environ: Mapping[str, str] | None = None) -> tuple[Provider, ...]:
    """The built-in providers, Ollama at ``$WOOLLAMA_OLLAMA_URL`` when that is set.

    With or without ``/v1`` and a slash at its end, the variable gives the same address.

    Raises:
        ConfigError: the variable holds no address.
    """
    environ = os.environ if environ is None else environ
    url = environ.get("WOOLLAMA_OLLAMA_URL", "").strip()
    if not url:
        return BUILTIN
    check_address(url, owner="WOOLLAMA_OLLAMA_URL")
    root = url.rstrip("/").removesuffix("/v1").rstrip("/")
    ollama, *others = BUILTIN
    return (msgspec.structs.replace(ollama, base_url=f"{root}/v1"), *others)
