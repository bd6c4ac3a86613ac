"""The door called as a function, for what no real connection can show."""

from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message

from tests.server.at_the_door import Reply, echo
from woollama.server.address import Address
from woollama.server.door import behind_door
from woollama.server.settings import Settings


async def call(
    app: ASGIApp = echo,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    settings: Settings | None = None,
    **scope: Any,
) -> Reply:
    """One request, and what was sent for it, written as HTTP."""
    settings = settings if settings is not None else Settings(config_dir=Path("/nowhere"))
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    full: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/models",
        "raw_path": b"/v1/models",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        **scope,
    }
    await behind_door(app, settings, Address(host="127.0.0.1", port=2))(full, receive, send)
    raw = b""
    for message in sent:
        if message["type"] == "http.response.start":
            raw += b"HTTP/1.1 %d \r\n" % message["status"]
            raw += b"".join(b"%s: %s\r\n" % pair for pair in message["headers"]) + b"\r\n"
        else:
            raw += message.get("body", b"")
    return Reply(raw)
