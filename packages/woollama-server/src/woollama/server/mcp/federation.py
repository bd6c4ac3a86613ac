"""One woollama behind another: who is met on the way, so that nobody walks in circles (RU-54).

Each daemon has an instance id. It stands

- in the header ``x-woollama-instance`` of requests and answers over HTTP;
- under ``_meta["woollama/instance"]`` in results (whose they are), in tools that are re-exported
  (through whom they came) and in calls (through whom they came);
- in the environment of child processes, with a mark of the configuration. A child that reads the
  same configuration is the same woollama, and takes over its id: else ``woollama mcp`` in its own
  ``mcp.json`` would start itself without end.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from woollama.server.instance import INSTANCE_META

__all__ = [
    "LINEAGE_VARIABLE",
    "add_trail",
    "child_lineage",
    "header_trail",
    "inherited_id",
    "is_descendant",
    "trail_of",
]

LINEAGE_VARIABLE = "WOOLLAMA_LINEAGE"
"""Holds ``id:mark`` of each woollama that led to this process, the oldest first, with commas."""

_LIMIT = 32
"""Ids that are read from one place; a peer can send as many as it likes."""


def trail_of(meta: object) -> tuple[str, ...]:
    """The ids in a ``_meta`` mapping, ``()`` when there are none; a single string counts as one."""
    if not isinstance(meta, Mapping):
        return ()
    value = cast("Mapping[str, Any]", meta).get(INSTANCE_META)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return tuple(item for item in items[:_LIMIT] if isinstance(item, str))
    return ()


def add_trail(meta: Mapping[str, Any] | None, trail: Iterable[str]) -> dict[str, Any]:
    """A ``_meta`` mapping with these ids in it, in the place of those that were there."""
    return {**(meta or {}), INSTANCE_META: list(trail)}


def header_trail(value: str | None) -> tuple[str, ...]:
    """The ids in a header: comma-separated, or none."""
    parts = (part.strip() for part in (value or "").split(",")[:_LIMIT])
    return tuple(part for part in parts if part)


def inherited_id(environ: Mapping[str, str], config: Path) -> str | None:
    """The id of the woollama that started us with the same configuration; None: nobody did."""
    mark = _mark(config)
    for instance_id, its_mark in _lineage(environ):
        if its_mark == mark:
            return instance_id
    return None


def is_descendant(environ: Mapping[str, str], instance_id: str) -> bool:
    """Whether the daemon of this id is among those that led to this process."""
    return any(its_id == instance_id for its_id, _ in _lineage(environ))


def child_lineage(environ: Mapping[str, str], instance_id: str, config: Path | None) -> str:
    """The variable's value for our children: what we were given, and us."""
    before = environ.get(LINEAGE_VARIABLE, "")
    own = f"{instance_id}:{_mark(config) if config is not None else ''}"
    return f"{before},{own}" if before else own


def _lineage(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in header_trail(environ.get(LINEAGE_VARIABLE)):
        instance_id, _, mark = part.partition(":")
        found.append((instance_id, mark))
    return found


def _mark(config: Path) -> str:
    return sha256(str(config.resolve()).encode()).hexdigest()[:16]
