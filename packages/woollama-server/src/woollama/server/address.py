"""Addresses to listen on and names to be reached by: reading them, and which of them are ours."""

from ipaddress import IPv4Address, IPv6Address, ip_address

from woollama.core.canonical.value import Value

__all__ = [
    "DEFAULT_HOST",
    "DEFAULT_PORT",
    "Address",
    "host_of",
    "is_address",
    "is_loopback",
    "is_wildcard",
    "parse_address",
]

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9665
"""WOOL on a telephone's keys."""

_ADVICE = "write HOST:PORT, as 127.0.0.1:9665 or [::1]:9665, or one of the two alone"


class Address(Value, frozen=True, kw_only=True):
    """A host, a name or an IP address without brackets, and a port; port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        """``host:port``, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """``http://host:port`` for a client; of "every address", the loopback one."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{Address(host=host, port=self.port)}"


def parse_address(text: str) -> Address:
    """``host:port``, ``host``, ``port``, ``[::1]:port``, ``[::1]`` or ``::1``.

    What is left out is ``DEFAULT_HOST`` or ``DEFAULT_PORT``.

    Raises:
        ValueError: it is none of these; the message says what to write.
    """
    text = text.strip()
    if "://" in text or "/" in text:
        raise ValueError(f"{text!r} is a URL, not an address; {_ADVICE}")
    if text.isascii() and text.isdigit():
        return Address(host=DEFAULT_HOST, port=_port(text, text))
    if _ip(text) is not None:
        return Address(host=text, port=DEFAULT_PORT)
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not isinstance(_ip(host), IPv6Address):
            raise ValueError(f"{text!r} has no IPv6 address in its brackets; {_ADVICE}")
    elif not host or host[0] == "-" or ":" in host or " " in host or not host.isprintable():
        raise ValueError(f"{text!r} is no address; {_ADVICE}")
    return Address(host=host, port=_port(port, text))


def _port(text: str, whole: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 65536:
        return int(text)
    raise ValueError(f"{whole!r} has no port from 0 to 65535; {_ADVICE}")


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_address(host: str) -> bool:
    """Whether it is an IP address and not a name: nobody can make it mean another machine."""
    return _ip(host) is not None


def is_loopback(host: str) -> bool:
    """``localhost``, 127/8, ``::1``, or IPv4 loopback mapped into IPv6; no other name counts."""
    address = _ip(host)
    if address is None:
        return host.lower().rstrip(".") == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_wildcard(host: str) -> bool:
    """Whether it stands for every address of the machine."""
    address = _ip(host)
    return address is not None and address.is_unspecified


def host_of(authority: str) -> str | None:
    """The host of a ``Host`` header or of a URL's authority: lower case, no port, no last dot.

    Returns:
        None when it is not of the form ``host``, ``host:port`` or ``[address]:port``.
    """
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        if not bracket or not isinstance(_ip(host), IPv6Address):
            return None
        port = port.removeprefix(":")
    else:
        host, _, port = authority.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return None
    return host.lower().removesuffix(".") or None
