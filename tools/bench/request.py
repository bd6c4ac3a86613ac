"""Cut whole HTTP/1.1 requests out of what a connection has read."""

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request: its path without the query, its body, and how many bytes it took."""

    path: bytes
    body: bytes
    size: int


def take_request(read: bytes) -> Request | None:
    """The first request in ``read``, or None while it is not whole.

    Knows what proxies and clients send to a JSON API: ``Content-Length`` or chunked bodies.
    ``Expect: 100-continue`` is not answered; no target asks for it.
    """
    end = read.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, start = read[:end].lower(), end + 4
    path = read[: read.find(b"\r\n")].split(b" ", 2)[1].partition(b"?")[0]
    if b"\r\ntransfer-encoding: chunked" in head:
        return _take_chunked(read, path, start)
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        return Request(path=path, body=b"", size=start)
    stop = head.find(b"\r\n", at + 17)
    done = start + int(head[at + 17 : stop if stop > 0 else end])
    if len(read) < done:
        return None
    return Request(path=path, body=read[start:done], size=done)


def _take_chunked(read: bytes, path: bytes, start: int) -> Request | None:
    parts, at = list[bytes](), start
    while True:
        eol = read.find(b"\r\n", at)
        if eol < 0:
            return None
        size = int(read[at:eol], 16)
        at = eol + 4 + size
        if len(read) < at:
            return None
        if not size:
            return Request(path=path, body=b"".join(parts), size=at)
        parts.append(read[eol + 2 : eol + 2 + size])
