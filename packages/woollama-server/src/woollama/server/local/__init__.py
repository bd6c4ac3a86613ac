"""The embedded model: a plugin that is there when the extra ``local`` is installed."""

from woollama.server.local.embedded import LocalPlugin

__all__ = ["plugin"]

plugin = LocalPlugin
"""What the entry point names."""
