"""What fabric would read again after it has put a value in, and so must not get.

fabric replaces tokens in a pattern until none is left, so a value that holds or forms a token is
expanded in its turn: ``{{plugin:file:read:/etc/passwd}}`` reads the file, ``{{plugin:fetch:…}}``
calls out, and a value that names itself never ends. A value can also form a token with braces of
the pattern: ``{plugin:sys:env:KEY}`` in the place of ``x`` in ``{{{x}}}``, or a bare
``plugin:sys:env:KEY`` in ``{{{{x}}}}``. With us a value is put in once (RU-44).
"""

import re
from collections.abc import Mapping

from woollama.core.errors import RequestError

__all__ = ["check_expansion", "check_values", "tokens_without_value"]

LIMIT_VALUE_CHARACTERS = 1024 * 1024
_TOKEN = re.compile(r"\{\{([^{}]+)\}\}")
_CALL = re.compile(r"(?:plugin|ext):(?:[^:]*:){2}")
_CALL_START = re.compile(r"(?:plugin|ext):")
_SENTINEL = "__FABRIC_INPUT_SENTINEL_TOKEN__"


def check_values(variables: Mapping[str, str]) -> None:
    """Refuses variables that fabric would expand in any pattern.

    Raises:
        RequestError: a name or a value holds ``{{``, or what fabric replaces by the input; or a
            value is too long.
    """
    for name, value in variables.items():
        where = f"variables.{name}"
        for text in (name, value):
            if "{{" in text:
                raise RequestError(
                    f'{where}: variable names and values must not contain "{{{{": fabric would '
                    "expand it.",
                    param=where,
                )
            if _SENTINEL in text:
                raise RequestError(f"{where} must not contain {_SENTINEL}.", param=where)
        if len(value) > LIMIT_VALUE_CHARACTERS:
            raise RequestError(
                f"{where} is longer than {LIMIT_VALUE_CHARACTERS} characters.", param=where
            )


def check_expansion(pattern: str, text: str, variables: Mapping[str, str]) -> None:
    """Refuses values that fabric would read again in this pattern.

    Args:
        pattern: its name, for the message.
        text: as it is written.
        variables: that passed ``check_values``.

    Raises:
        RequestError: a value becomes a part of a token that is then expanded.
    """
    filled, spans = _fill(text, variables)
    for token in _TOKEN.finditer(filled):
        inside = [span for span in spans if _touches(token, span)]
        if all(_is_argument(token, span) for span in inside):
            continue
        name = inside[0][2]
        raise RequestError(
            f"variables.{name}: in the pattern {pattern!r} this value would be expanded by fabric "
            "once more, because it stands between braces there.",
            param=f"variables.{name}",
        )


_Span = tuple[int, int, str]


def _touches(token: re.Match[str], span: _Span) -> bool:
    start, end, _ = span
    if start == end:
        # An empty value counts where its neighbours meet.
        return token.start() < start < token.end()
    return start < token.end() and end > token.start()


def _fill(text: str, variables: Mapping[str, str]) -> tuple[str, list[_Span]]:
    """The text after fabric's first pass, and where which value stands in it."""
    text = text.replace("{{input}}", _SENTINEL)
    pieces: list[str] = []
    spans: list[_Span] = []
    at = size = 0
    for token in _TOKEN.finditer(text):
        name = token[1]
        if name not in variables:
            continue
        before = text[at : token.start()]
        value = variables[name]
        size += len(before)
        spans.append((size, size + len(value), name))
        size += len(value)
        pieces += (before, value)
        at = token.end()
    pieces.append(text[at:])
    return "".join(pieces), spans


def _is_argument(token: re.Match[str], span: _Span) -> bool:
    """Whether the pattern itself hands the value to one of fabric's plugins, as its author meant.

    ``{{plugin:text:upper:{{name}}}}`` does; what the value may do there is the author's decision.
    The braces and the name of the call must be the author's.
    """
    call = _CALL.match(token[1])
    start, end, _ = span
    return call is not None and token.start(1) + call.end() <= start and end <= token.end(1)


def tokens_without_value(text: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The tokens that fabric wants values for and does not get, in their order."""
    found = (token[1] for token in _TOKEN.finditer(text.replace("{{input}}", "")))
    return tuple(
        dict.fromkeys(
            name for name in found if name not in variables and not _CALL_START.match(name)
        )
    )
