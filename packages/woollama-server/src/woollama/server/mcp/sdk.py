"""The MCP SDK, loaded by whoever first needs it (ruling RU-60)."""

from importlib import import_module

__all__ = ["load_sdk"]


def load_sdk() -> None:
    """Imports the SDK as a whole; to be called in a thread, before anything that needs a part.

    It takes the better part of a second, which only those pay who speak MCP. Its parts import each
    other: of two threads that began with different ones, one would find the other's half done.
    """
    import_module("mcp")
