"""Tool names on the wire: ``server.tool`` to ``server__tool``, short enough, told apart, pinned.

Strict providers take letters, digits, ``_`` and ``-``, at most 64 of them; MCP clients put a prefix
of their own before a re-exported name, so 40 are left there (RU-45). The way back is the map that
``wire_names`` gives, never the text of a name.
"""

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

__all__ = ["EXPORT_LIMIT", "MODEL_LIMIT", "is_wire_name", "wire_name", "wire_names"]

MODEL_LIMIT = 64
"""The most characters of a tool's name towards a model."""

EXPORT_LIMIT = 40
"""The most characters of a tool's name that is re-exported over MCP."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_MARK_LENGTHS = (8, 16, 24, 32)


def is_wire_name(name: str, *, limit: int = MODEL_LIMIT) -> bool:
    """Whether ``name`` can go out as it is."""
    return 0 < len(name) <= limit and _FOREIGN.search(name) is None


def wire_name(source: str, *, limit: int = MODEL_LIMIT) -> str:
    """The wire name of one tool: itself when it can go out, else its dots as ``__``.

    A name that is too long, or that holds other characters, is cut and marked with the beginning
    of its SHA-256, so that two of them stay two.

    Args:
        source: the tool's own name.
        limit: the most characters.
    """
    plain = source.replace(".", "__")
    return plain if is_wire_name(plain, limit=limit) else _marked(source, limit)


def wire_names(sources: Iterable[str], *, limit: int = MODEL_LIMIT) -> dict[str, str]:
    """The wire name of each of several tools, no two alike, whatever their order.

    Args:
        sources: the tools' own names; a repeated one counts once.
        limit: the most characters.

    Returns:
        Own name to wire name, in the order of ``sources``.
    """
    names = {source: wire_name(source, limit=limit) for source in sources}
    alike = Counter(names.values())
    # Of several that would be called alike, the one whose own name it is keeps it.
    kept = {source for source, name in names.items() if alike[name] == 1 or source == name}
    taken = {names[source] for source in kept}
    for source in sorted(names.keys() - kept):
        marked = (_marked(source, limit, length) for length in _MARK_LENGTHS)
        names[source] = next(name for name in marked if name not in taken)
        taken.add(names[source])
    return names


def _marked(source: str, limit: int, length: int = _MARK_LENGTHS[0]) -> str:
    mark = sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    stem = _FOREIGN.sub("_", source.replace(".", "__"))[: limit - length - 1]
    return f"{stem}_{mark}"
