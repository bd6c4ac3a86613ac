"""What can go wrong with an MCP server, in our words: nothing here needs the SDK."""

from typing import Any, cast

from woollama.core.errors import ToolError

__all__ = [
    "CLOSED",
    "CallLost",
    "CallTimedOut",
    "FederationLoop",
    "Refused",
    "ServerFault",
    "Unforeseen",
    "Unreachable",
    "innermost",
]

CLOSED = "it closed the connection"
"""Why a connection ended, when nothing more is known."""


class ServerFault(ToolError):
    """Root of what an MCP server or the way to it does wrong; ``message`` is for people."""

    default_status = 502


class Unreachable(ServerFault):
    """There is no connection, and it could not be made in time."""

    default_kind = "overloaded"
    default_status = 503


class CallLost(ServerFault):
    """The connection broke before the answer was there.

    Attributes:
        unsent: the server is known not to have got the request.
        gone: the connection is of no use any more, as opposed to this one answer.
    """

    def __init__(self, message: str, *, unsent: bool = False, gone: bool = False) -> None:
        """``unsent`` and ``gone`` are false when nobody knows."""
        super().__init__(message)
        self.unsent = unsent
        self.gone = gone


class CallTimedOut(ServerFault):
    """No answer within the time limit of the call; the server was told to stop."""

    default_kind = "timeout"
    default_status = 504


class FederationLoop(ServerFault):
    """The server is this woollama itself, directly or through another one."""

    default_kind = "conflict"
    default_status = 409


class Refused(ServerFault):
    """The server answered with a JSON-RPC error.

    Attributes:
        rpc_code: its code, such as -32602.
        data: what it said beside the message.
    """

    def __init__(self, message: str, *, rpc_code: int, data: Any = None) -> None:
        """``message`` is the server's own text."""
        super().__init__(message, payload=data)
        self.rpc_code = rpc_code
        self.data = data


class Unforeseen(ServerFault):
    """Something that nobody has foreseen: a bug, here or in the SDK.

    The message says the type of it and nothing more: its own text may hold what was sent.
    """

    def __init__(self, error: BaseException) -> None:
        """``error`` is what was raised, or a group with it."""
        name = type(innermost(error)).__name__
        super().__init__(f"it failed unexpectedly: {name}; the log says where")


def innermost(error: BaseException) -> BaseException:
    """The first of a group that is no group itself; anything else as it is."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
