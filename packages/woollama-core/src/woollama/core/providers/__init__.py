"""Who answers: providers, their keys and models, and the registry that finds them by name."""

from woollama.core.providers.provider import Credential, Inferencer, ModelSettings, Provider
from woollama.core.providers.registry import ModelRegistry, provider_names
from woollama.core.providers.target import Target

__all__ = [
    "Credential",
    "Inferencer",
    "ModelRegistry",
    "ModelSettings",
    "Provider",
    "Target",
    "provider_names",
]
