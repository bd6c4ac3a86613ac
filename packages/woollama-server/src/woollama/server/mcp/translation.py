"""The SDK's errors in our words, once, where its calls are made."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from woollama.server.mcp.faults import CLOSED, CallLost, FederationLoop, Refused, ServerFault

__all__ = ["HTTP_FAULT", "Endable", "http_fault", "translated"]

HTTP_FAULT = "woollama/http"
"""Key in the ``data`` of the errors that our HTTP layer makes: what went wrong, one word."""

_CLOSED = "Connection closed"
_BROKEN_OFF = ("SSE stream", "Failed to parse")


class Endable(Protocol):
    """A connection, as far as its errors concern it."""

    http: bool

    def end(self, reason: str) -> None:
        """Give it up."""
        ...


def http_fault(error: MCPError) -> str | None:
    """The word of our HTTP layer in an error; None: the server or the SDK made it."""
    data = error.data
    if isinstance(data, Mapping):
        word = cast("Mapping[str, Any]", data).get(HTTP_FAULT)
        return word if isinstance(word, str) else None
    return None


@contextmanager
def translated(connection: Endable) -> Generator[None]:
    """Raises what the SDK raises as faults of ours; a connection that has closed is ended.

    Raises:
        ServerFault: whatever it was.
    """
    try:
        yield
    except MCPError as error:
        raise _fault(error, connection) from error
    except ValidationError as error:
        # Its own text quotes what was sent.
        raise ServerFault("it sent an answer that does not fit the protocol") from error
    except RuntimeError as error:
        # The session's word for a handshake with a revision that it does not know.
        raise ServerFault(str(error)) from error


def _fault(error: MCPError, connection: Endable) -> ServerFault:
    match http_fault(error):
        case "loop":
            return FederationLoop(error.message)
        case "unreachable" | "gone":
            return CallLost(error.message, unsent=True, gone=True)
        case "cut":
            return CallLost(error.message)
        case _:
            pass
    if error.code == CONNECTION_CLOSED and error.message == _CLOSED:
        connection.end(CLOSED)
        return CallLost(CLOSED, gone=True)
    if connection.http and error.message.startswith(_BROKEN_OFF):
        return CallLost("its answer broke off")
    return Refused(error.message, rpc_code=error.code, data=error.data)
