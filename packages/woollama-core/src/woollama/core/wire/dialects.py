"""Every dialect by name: one import and one line each."""

from collections.abc import Mapping
from types import MappingProxyType

from woollama.core.wire.chat import COMPATIBLE
from woollama.core.wire.codec import Dialect

__all__ = ["DIALECTS"]

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (COMPATIBLE,)}
)
"""Dialects by name. A new one is a module, its import here and its name in the line above."""
