"""What both transports share: proxies, limits, the words for a failure."""

import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio

from woollama.core.errors import TransportError

__all__ = ["cut", "limited", "proxy_for", "timed_out", "unreachable"]


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for ``url``; never one for loopback.

    ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in either case.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    proxies = urllib.request.getproxies()
    if not proxies or urllib.request.proxy_bypass(parts.netloc):
        return None
    return proxies.get(parts.scheme) or proxies.get("all") or None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def limited(seconds: float | None, url: str) -> AsyncGenerator[None]:
    """A limit on everything inside; None is no limit.

    Raises:
        TransportError: it passed.
    """
    if seconds is None:
        yield
        return
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise timed_out(url, "did not finish", seconds)


def timed_out(url: str, what: str, seconds: float | None) -> TransportError:
    """The error of a time limit that passed."""
    after = f" within {seconds:g} s" if seconds is not None else " in time"
    return TransportError(f"{_origin(url)} {what}{after}.", kind="timeout", status=504)


def unreachable(url: str, error: BaseException) -> TransportError:
    """The error of a connection that could not be made."""
    return TransportError(
        f"{_origin(url)} cannot be reached: {_reason(error)}.", kind="connect", retryable=True
    )


def cut(url: str, error: BaseException) -> TransportError:
    """The error of a connection that broke."""
    return TransportError(
        f"{_origin(url)} closed the connection before the reply was complete: {_reason(error)}.",
        kind="cut",
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _reason(error: BaseException) -> str:
    text = str(error).strip().rstrip(".")
    return text or type(error).__name__
