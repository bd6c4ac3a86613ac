"""What both transports share: proxies, and the words for a failure."""

import os
import socket
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import cast
from urllib.parse import SplitResult, urlsplit

from woollama.core.errors import TransportError

__all__ = [
    "AGENT_HEADERS",
    "Routes",
    "cut",
    "decompressor",
    "garbled",
    "no_address",
    "other_loop",
    "proxy_for",
    "split_address",
    "timed_out",
    "unreachable",
    "unsendable",
]

AGENT_HEADERS = (("accept", "*/*"), ("accept-encoding", "identity"), ("user-agent", "woollama"))
"""What every request says of its sender: no compression, which would hold a stream back."""

_CONNECT_TIMEOUT = "connect_timeout"
_MOST_ROUTES = 1000
_ANY_ZLIB = zlib.MAX_WBITS | 32


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for ``url``; never one for loopback.

    ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in either case.

    Raises:
        TransportError: ``url`` is no address, or the proxy is of a kind that is not spoken.
    """
    parts = split_address(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    proxies = urllib.request.getproxies()
    if not proxies or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    scheme, found, _ = proxy.partition("://")
    if not found:
        return f"http://{proxy}"
    if scheme.lower() in {"http", "https"}:
        return proxy
    raise TransportError(
        f"{_origin(url)} cannot be reached: the environment names a {scheme} proxy for it, and "
        "only http and https proxies are spoken.",
        kind="connect",
        retryable=False,
        hint=f"Set HTTPS_PROXY to an http proxy, or add {host} to NO_PROXY.",
    )


class Routes:
    """The proxies of one transport, each looked up once: the environment is long to read."""

    def __init__(self) -> None:
        """Nothing has been looked up."""
        self._proxies: dict[str, str | None] = {}

    def proxy(self, url: str) -> str | None:
        """As ``proxy_for``, when ``url`` was first asked for."""
        if url not in self._proxies:
            if len(self._proxies) >= _MOST_ROUTES:
                self._proxies.clear()
            self._proxies[url] = proxy_for(url)
        return self._proxies[url]


def split_address(url: str) -> SplitResult:
    """The parts of an ``http`` or ``https`` URL.

    Raises:
        TransportError: it is none.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # read here, where it may be none
    except ValueError as error:
        raise no_address(url, error) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise no_address(url)
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def no_address(url: str, error: BaseException | None = None) -> TransportError:
    """The error of an address that is none."""
    reason = f": {_reason(error)}" if error is not None else ""
    return TransportError(
        f"{_origin(url)!r} is no address{reason}.",
        kind="connect",
        retryable=False,
        hint="Write base_url as http://host:port/v1 or https://host/v1.",
    )


def unsendable(url: str, error: BaseException | str) -> TransportError:
    """The error of a request that HTTP has no form for, such as a header with a line break."""
    return TransportError(
        f"The request to {_origin(url)} cannot be sent: {_reason(error)}.",
        kind="connect",
        retryable=False,
    )


def other_loop() -> TransportError:
    """The error of a transport that is used on a second event loop."""
    return TransportError(
        "This transport belongs to another event loop: make one for each loop, or pass none.",
        kind="connect",
        retryable=False,
    )


def timed_out(
    url: str, what: str, seconds: float | None, *, connecting: bool = False
) -> TransportError:
    """The error of a time limit that passed; ``connecting``: before anything was sent."""
    after = f" within {seconds:g} s" if seconds is not None else " in time"
    return TransportError(
        f"{_origin(url)} {what}{after}.",
        kind="timeout",
        status=504,
        code=_CONNECT_TIMEOUT if connecting else None,
    )


def unreachable(url: str, error: BaseException | str) -> TransportError:
    """The error of a connection that could not be made."""
    return TransportError(
        f"{_origin(url)} cannot be reached: {_reason(error)}.", kind="connect", retryable=True
    )


def cut(url: str, error: BaseException | None) -> TransportError:
    """The error of a connection that broke; None: it ended, and nothing more is known."""
    reason = f": {_reason(error)}" if error is not None else ""
    return TransportError(
        f"{_origin(url)} closed the connection before the reply was complete{reason}.", kind="cut"
    )


def garbled(url: str, error: BaseException | str) -> TransportError:
    """The error of bytes that are no HTTP, or a body that cannot be decompressed."""
    return TransportError(
        f"{_origin(url)} sent something that is no HTTP reply: {_reason(error)}.", kind="cut"
    )


def decompressor(url: str, coding: str) -> Callable[[bytes], bytes] | None:
    """What takes a body's coding off, piece by piece; None when it has none.

    We ask for no compression; a server that compresses all the same is understood.

    Raises:
        TransportError: nobody here knows the coding.
    """
    match coding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(_ANY_ZLIB).decompress
        case other:
            raise garbled(url, f"its content-encoding is {other!r}")


def _origin(url: str) -> str:
    # By hand: what is no address must be named too, and never with its password.
    scheme, found, rest = url.partition("://")
    place = rest if found else scheme
    place = place.split("/", 1)[0].rpartition("@")[2]
    return f"{scheme}://{place}" if found else place


def _reason(error: BaseException | str) -> str:
    """Why, in a few words: the system's own, else the first that a library has for it."""
    if isinstance(error, str):
        return _plain(error)
    causes = list(_causes(error))
    words = [_words_of_the_system(each) for each in causes]
    # Some libraries wrap an error without repeating its words.
    found = [*filter(None, words), *filter(None, map(_plain, causes))]
    return found[0] if found else type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what is behind it; of several tries that failed, the first."""
    inner: BaseException | None = error
    while inner is not None:
        yield inner
        behind = inner.__cause__ or inner.__context__
        if isinstance(inner, BaseExceptionGroup):
            behind = cast("BaseExceptionGroup[BaseException]", inner).exceptions[0]
        inner = behind


def _plain(error: object) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _words_of_the_system(error: BaseException) -> str:
    """What it has for an error: ``connection refused``, and not ``[Errno 111] Connect call …``."""
    if not isinstance(error, OSError) or error.errno is None:
        return ""
    if hasattr(error, "library"):
        # One of TLS has numbers of its own; ``ssl`` is not imported for its name alone.
        words = str(getattr(error, "reason", None) or "").lower().replace("_", " ")
        verdict = getattr(error, "verify_message", None)
        return ": ".join(filter(None, ("TLS", words, verdict)))
    words = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)
    return words[:1].lower() + words[1:] if words else ""
