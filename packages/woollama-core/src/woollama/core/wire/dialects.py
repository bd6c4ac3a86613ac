"""Every dialect by name: one import and one line each."""

from collections.abc import Mapping
from types import MappingProxyType

from woollama.core.wire.anthropic import ANTHROPIC
from woollama.core.wire.cerebras import CEREBRAS
from woollama.core.wire.chat import COMPATIBLE
from woollama.core.wire.codec import Dialect
from woollama.core.wire.ollama import OLLAMA
from woollama.core.wire.responses import RESPONSES

__all__ = ["DIALECTS"]

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (ANTHROPIC, CEREBRAS, COMPATIBLE, OLLAMA, RESPONSES)}
)
"""Dialects by name. A new one is a module, its import here and its name in the line above."""
