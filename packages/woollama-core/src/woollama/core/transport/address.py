"""Where a request goes, read off its URL once, and the head that it goes out with (RFC 9112, 3)."""

import re
from base64 import b64encode
from types import MappingProxyType
from urllib.parse import quote, unquote

from woollama.core.canonical import Value
from woollama.core.transport.network import AGENT_HEADERS, no_address, split_address, unsendable
from woollama.core.wire.codec import WireRequest

__all__ = ["Address", "Place", "address_of"]

Place = tuple[bool, str, int]
"""Where a connection leads: whether by TLS, the host, the port."""

_PORTS = MappingProxyType({"http": 80, "https": 443})
_LEGAL = "/?:@!$&'()*+,;=%~[]"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Address(Value, frozen=True, kw_only=True):
    """What a URL says.

    Attributes:
        url: as it was given.
        place: where the connection leads.
        authority: the ``Host`` header.
        target: path and query.
        authorization: of a name and password in the URL; None when there are none.
    """

    url: str
    place: Place
    authority: str
    target: str
    authorization: str | None = None

    def head(self, request: WireRequest) -> bytes:
        """The head of a request to here, blank line included.

        Raises:
            TransportError: a header holds what no header can carry.
        """
        lines = [f"{request.method} {self.target} HTTP/1.1\r\nhost: {self.authority}"]
        given = {"host"}
        for name, value in request.headers.items():
            if not _NAME.fullmatch(name) or _CONTROL.search(value):
                raise unsendable(self.url, f"the header {name!a} holds a control character")
            given.add(name.lower())
            lines.append(f"{name}: {value}")
        lines += [f"{name}: {value}" for name, value in AGENT_HEADERS if name not in given]
        if self.authorization is not None and "authorization" not in given:
            lines.append(f"authorization: {self.authorization}")
        if request.body or request.method != "GET":
            lines.append(f"content-length: {len(request.body)}")
        lines.append("\r\n")
        try:
            return "\r\n".join(lines).encode("latin-1")
        except UnicodeEncodeError as error:
            raise unsendable(self.url, "a header holds a character beyond Latin-1") from error


def address_of(url: str) -> Address:
    """What ``url`` says.

    Raises:
        TransportError: it is no address.
    """
    parts = split_address(url)
    host = parts.hostname or ""
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise no_address(url, error) from error
    port = parts.port or _PORTS[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    path = quote(parts.path or "/", safe=_LEGAL)
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return Address(
        url=url,
        place=(parts.scheme == "https", host, port),
        authority=shown if port == _PORTS[parts.scheme] else f"{shown}:{port}",
        target=f"{path}?{quote(parts.query, safe=_LEGAL)}" if parts.query else path,
        authorization=(
            f"Basic {b64encode(login.encode()).decode()}" if parts.username is not None else None
        ),
    )
