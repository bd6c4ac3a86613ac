"""The MCP SDK, loaded by whoever first needs it (ruling RU-60)."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from woollama.server.mcp.session import Connection

__all__ = ["Open", "load_opener", "load_sdk"]

Open = Callable[..., AbstractAsyncContextManager["Connection"]]
"""Connects to a server; see ``downstream.open_connection``."""


def load_sdk() -> None:
    """Imports the SDK as a whole; to be called in a thread, before anything that needs a part.

    It takes the better part of a second, which only those pay who speak MCP. Its parts import each
    other: of two threads that began with different ones, one would find the other's half done.
    """
    import_module("mcp")


def load_opener() -> Open:
    """What connects, which needs the SDK; to be called in a thread, as ``load_sdk``."""
    load_sdk()
    from woollama.server.mcp.downstream import open_connection

    return open_connection
