"""Prompts by name: what they are, who brings them, how they are found."""

from woollama.core.patterns.backend import Pattern, PatternBackend, PatternCall, PatternVariable
from woollama.core.patterns.catalog import PatternCatalog

__all__ = ["Pattern", "PatternBackend", "PatternCall", "PatternCatalog", "PatternVariable"]
