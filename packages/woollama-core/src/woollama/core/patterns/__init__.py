"""Prompts by name: what they are, who brings them, how they are found."""

from woollama.core.patterns.backend import Pattern, PatternBackend, PatternCall, PatternVariable
from woollama.core.patterns.catalog import PatternCatalog
from woollama.core.patterns.native import NativePatterns
from woollama.core.patterns.template import fill, variables_of

__all__ = [
    "NativePatterns",
    "Pattern",
    "PatternBackend",
    "PatternCall",
    "PatternCatalog",
    "PatternVariable",
    "fill",
    "variables_of",
]
