"""Exchanges with fabric v1.4.470, to the byte."""

import json
from pathlib import Path

TRANSCRIPTS = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "fabric" / "transcripts.json").read_text()
)
DROPPED = {"date", "content-length", "transfer-encoding", "connection"}


def parts(message: bytes) -> tuple[int, dict[str, str], list[bytes]]:
    """Status, headers and the pieces of the body: its chunks, or all of it."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    kept = {name: value for name, value in headers.items() if name not in DROPPED}
    if headers.get("transfer-encoding") != "chunked":
        return int(first.split()[1]), kept, [body]
    pieces: list[bytes] = []
    while body:
        size, _, body = body.partition(b"\r\n")
        count = int(size, 16)
        pieces.append(body[:count])
        body = body[count + 2 :]
    return int(first.split()[1]), kept, pieces
