"""What is wrong with an entry of ``mcp.json`` beside its shape, and how to put it right."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from woollama.server.address import is_loopback
from woollama.server.mcp.entries import McpEntry

__all__ = ["doubts_of", "faults_of"]

_STDIO_ONLY = ("args", "env", "cwd")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LONE_SCHEME = re.compile(r"(?:basic|bearer|digest|token|apikey)", re.IGNORECASE)
_LEFT_OVER = re.compile(r"\$\{")


def faults_of(entry: McpEntry, place: str) -> list[tuple[str, str]]:
    """What makes an entry unusable that its shape does not show: place and fix, one pair each."""
    if (entry.command is None) == (entry.url is None):
        return [(place, "needs either 'command' (a program) or 'url' (an address)")]
    faults: list[tuple[str, str]] = []
    if entry.command is not None:
        if entry.headers:
            faults.append((f"{place}.headers", "belongs to 'url'; a program gets 'env'"))
        if entry.type not in (None, "stdio"):
            faults.append((f"{place}.type", f"{entry.type!r} does not fit 'command'; leave it out"))
        return faults + _bad_words(entry, place)
    if entry.type == "stdio":
        faults.append((f"{place}.type", "'stdio' does not fit 'url'; leave it out"))
    faults += [
        (f"{place}.{key}", "belongs to 'command'; leave it out")
        for key in _STDIO_ONLY
        if getattr(entry, key)
    ]
    return [*faults, *_bad_url(entry.url or "", place), *_bad_headers(entry.headers, place)]


def _bad_words(entry: McpEntry, place: str) -> list[tuple[str, str]]:
    words = [("command", entry.command or ""), ("cwd", entry.cwd or "")]
    words += [("args", arg) for arg in entry.args]
    words += [(f"env.{key}", key + value) for key, value in entry.env.items()]
    faults = [(f"{place}.{key}", "holds a NUL character") for key, text in words if "\0" in text]
    faults += [
        (f"{place}.env", f"{key!r} is no name of a variable")
        for key in entry.env
        if not key or "=" in key
    ]
    return faults


def _bad_url(url: str, place: str) -> list[tuple[str, str]]:
    where = f"{place}.url"
    try:
        parts = urlsplit(url)
        _ = parts.port  # read here, where it may be none
    except ValueError as error:
        return [(where, f"is no address: {error}")]
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return [(where, "must be http://host[:port]/path or https://host/path")]
    if parts.username is not None or parts.password is not None:
        return [(where, "holds a user or password; put an Authorization into 'headers'")]
    return []


def _bad_headers(headers: Mapping[str, str], place: str) -> list[tuple[str, str]]:
    faults: list[tuple[str, str]] = []
    for name, value in headers.items():
        where = f"{place}.headers.{name}"
        if _HEADER_NAME.fullmatch(name) is None:
            faults.append((f"{place}.headers", f"{name!r} is no name of a header"))
        elif not value.strip():
            faults.append((where, "is empty; set what it is made of, or remove it"))
        elif name.lower() == "authorization" and _LONE_SCHEME.fullmatch(value.strip()):
            faults.append((where, "has a scheme and no credential; set what it is made of"))
        elif not (value.isascii() and value.isprintable()):
            faults.append((where, "must be of visible ASCII characters"))
    return faults


def doubts_of(entry: McpEntry, place: str) -> list[tuple[str, str]]:
    """What works and is perhaps not meant, as pairs like those of ``faults_of``."""
    doubts: list[tuple[str, str]] = []
    if entry.url is not None and entry.headers and entry.url.startswith("http:"):
        host = urlsplit(entry.url).hostname or ""
        if not is_loopback(host):
            doubts.append(
                (f"{place}.url", f"headers go to {host!r} unencrypted; write https:// if it can")
            )
    for key, value in entry.env.items():
        if not value:
            doubts.append((f"{place}.env.{key}", "is empty"))
    texts = {**entry.env, **entry.headers, "url": entry.url or "", "args": " ".join(entry.args)}
    doubts += [
        (place, f"{key!r} still holds '${{' after expansion: a reference has none inside it")
        for key, text in texts.items()
        if _LEFT_OVER.search(text)
    ]
    return doubts
