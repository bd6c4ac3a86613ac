"""One strict fake a dialect."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from woollama.core.testing.fake import Fake
from woollama.core.testing.fakes.anthropic import AnthropicFake
from woollama.core.testing.fakes.cerebras import CerebrasFake
from woollama.core.testing.fakes.compatible import CompatibleFake
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.fakes.responses import ResponsesFake

__all__ = [
    "FAKES",
    "AnthropicFake",
    "CerebrasFake",
    "CompatibleFake",
    "OllamaFake",
    "ResponsesFake",
]

FAKES: Mapping[str, Callable[..., Fake]] = MappingProxyType(
    {
        "anthropic": AnthropicFake,
        "cerebras": CerebrasFake,
        "compatible": CompatibleFake,
        "ollama": OllamaFake,
        "responses": ResponsesFake,
    }
)
"""By the name of the dialect. Each takes ``(script, *, key, models)``, and more of its own."""
