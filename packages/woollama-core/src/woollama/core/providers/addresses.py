"""Base URLs: what a path can be added to."""

import re

from woollama.core.errors import ConfigError

__all__ = ["check_address", "host_of"]

_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(:[1-5]?[0-9]{1,4})?(/[A-Za-z0-9._-]*)*")
"""Most addresses; they are looked at no further, for each call may bring its own."""


def check_address(url: str, *, owner: str) -> None:
    """Refuses a base URL to which no path can be added.

    Args:
        url: ``http(s)://host[:port][/path]``.
        owner: whose it is, for the message.

    Raises:
        ConfigError: it has another form, or holds a password, which would show wherever it does.
    """
    if _PLAIN.fullmatch(url):
        return
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ConfigError(f"{owner}: base_url may not hold a user or password: use 'headers'.")
    from urllib.parse import urlsplit  # it loads ipaddress; plain addresses do without

    try:
        parts = urlsplit(url)
        _ = parts.port  # read here, where it may be none
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
        usable = usable and url.isprintable() and not (parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"{owner}: base_url {url!r} is no address to add a path to.",
            hint="Write it as http://host:port/v1 or https://host/v1.",
        )


def host_of(url: str) -> str | None:
    """The host of an address, in lower case; None when it has none.

    Raises:
        ValueError: it is no address.
    """
    plain = _PLAIN.fullmatch(url)
    if plain is not None:
        return plain[1]
    from urllib.parse import urlsplit

    return urlsplit(url).hostname
