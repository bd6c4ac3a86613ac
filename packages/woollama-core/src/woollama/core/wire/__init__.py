"""Canonical values to wire bytes and back, one module a dialect, without any I/O."""

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
