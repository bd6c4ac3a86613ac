"""What ``woollama ask`` is given, on its command line and through a pipe, as values."""

import sys
from types import MappingProxyType
from typing import Any, cast

import click
import msgspec

__all__ = ["read_options", "read_question", "read_variables"]

_OWN_WAYS = MappingProxyType(
    {
        "messages": "the question is the argument, or what comes through a pipe",
        "model": "use -m",
        "stream": "use --no-stream",
    }
)


def read_question(arguments: tuple[str, ...], *, needed: bool = True) -> str:
    """The arguments, and behind them what comes through a pipe.

    Args:
        arguments: put together with spaces.
        needed: whether there has to be something.

    Raises:
        click.UsageError: there is nothing, or bytes that are no text.
    """
    given = [" ".join(arguments)] if arguments else []
    piped = "" if sys.stdin.isatty() else _read_pipe()
    if piped:
        given.append(piped)
    text = "\n\n".join(given)
    if needed and not text.strip():
        raise click.UsageError("Nothing to ask: give a question, or pipe one in.")
    return text


def _read_pipe() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as error:
        message = f"What comes on standard input is no text in UTF-8 (byte {error.start + 1})."
        raise click.UsageError(message) from error
    except OSError as error:
        message = f"Standard input cannot be read: {error.strerror}."
        raise click.UsageError(message) from error


def read_variables(given: tuple[str, ...]) -> dict[str, str]:
    """``NAME=TEXT`` as they are."""
    return _pairs(given, "-v", "NAME=TEXT")


def read_options(given: tuple[str, ...]) -> dict[str, Any]:
    """``KEY=VALUE`` with values read as JSON where they are JSON; a dot goes one level down.

    Raises:
        click.UsageError: one is no pair, is given twice, or has a way of its own.
    """
    fields: dict[str, Any] = {}
    for key, text in _pairs(given, "-o", "KEY=VALUE").items():
        if key in _OWN_WAYS:
            raise click.UsageError(f"-o does not set {key!r}: {_OWN_WAYS[key]}.")
        *groups, name = key.split(".")
        if not all((*groups, name)):
            raise click.UsageError(f"-o has an empty name between the dots of {key!r}.")
        inner = fields
        for group in groups:
            below: Any = inner.setdefault(group, {})
            if not isinstance(below, dict):
                raise click.UsageError(f"-o gives {group!r} a value and parts: keep one.")
            inner = cast("dict[str, Any]", below)
        if name in inner:
            raise click.UsageError(f"-o gives {name!r} a value and parts: keep one.")
        inner[name] = _value(text)
    return fields


def _value(text: str) -> Any:
    # Not the json module: it takes NaN and 1e999, which are no JSON and cannot be sent.
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text
    except RecursionError as error:
        raise click.UsageError("-o has a value that is nested too deeply.") from error


def _pairs(given: tuple[str, ...], flag: str, form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in given:
        key, equals, text = pair.partition("=")
        if not key or not equals:
            raise click.UsageError(f"{flag} wants {form}, not {pair!r}.")
        if key in pairs:
            raise click.UsageError(f"{flag} gives {key!r} twice: keep one.")
        pairs[key] = text
    return pairs
