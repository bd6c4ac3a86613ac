"""Canonical values to wire bytes and back, one module a dialect, without any I/O."""

from typing import TYPE_CHECKING, Any

from woollama.core.wire.codec import (
    Bearer,
    Codec,
    Decoder,
    Dialect,
    Header,
    KeyPlace,
    ModelInfo,
    NoKey,
    WireRequest,
    WireSettings,
)

if TYPE_CHECKING:
    from woollama.core.wire.dialects import DIALECTS

__all__ = [
    "DIALECTS",
    "Bearer",
    "Codec",
    "Decoder",
    "Dialect",
    "Header",
    "KeyPlace",
    "ModelInfo",
    "NoKey",
    "WireRequest",
    "WireSettings",
]


def __getattr__(name: str) -> Any:
    """``DIALECTS``, loaded by its first use: the languages make up a third of this package."""
    if name != "DIALECTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from woollama.core.wire.dialects import DIALECTS

    return DIALECTS
