"""fabric: its library as patterns, its API under ``/fabric``; a plugin like any other."""

from woollama.server.fabric.entry import FabricPlugin

__all__ = ["plugin"]

plugin = FabricPlugin
"""What the entry point names."""
