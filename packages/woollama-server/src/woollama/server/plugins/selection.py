"""Which plugins are to run, and where the section of each stands."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from woollama.core.canonical import NOTHING, Value
from woollama.core.config.files import Problem
from woollama.core.config.variables import expand
from woollama.server.plugins.installed import FILE

__all__ = ["OVERRIDE", "Section", "Selection", "select_plugins"]

OVERRIDE = "WOOLLAMA_PLUGINS"
"""The variable that stands for ``enabled``: ``none``, or names with commas between them."""

FABRIC = "fabric"
FABRIC_FILE = "mcp.json"


class Section(Value, frozen=True, kw_only=True):
    """What is written for one plugin, and where: for messages."""

    raw: Any
    file: str
    place: str


class Selection(Value, frozen=True, kw_only=True):
    """What is to run.

    Attributes:
        names: in the order of loading, each once.
        sections: by name; a plugin without one has the defaults.
        problems: what is wrong with the choice.
    """

    names: tuple[str, ...]
    sections: Mapping[str, Section] = NOTHING
    problems: tuple[Problem, ...] = ()


def select_plugins(
    enabled: Iterable[str],
    tables: Mapping[str, Any],
    *,
    fabric: Any = None,
    environ: Mapping[str, str] = NOTHING,
) -> Selection:
    """The plugins to run.

    ``fabric`` is enabled by its section in ``mcp.json``, where its users have it (RU-3). The
    variable replaces the whole list, and ``none`` is a safe mode that looks at no section.

    Args:
        enabled: ``[plugins] enabled``.
        tables: the tables under ``[plugins]``.
        fabric: the section ``fabric`` of ``mcp.json``, nothing expanded; None is none.
        environ: for the variable, and for ``${VAR}`` in the section ``fabric``.
    """
    listed = list(dict.fromkeys(enabled))
    configured = [*listed, FABRIC] if fabric is not None and FABRIC not in listed else listed
    override = environ.get(OVERRIDE, "").strip()
    wanted = _override(override) if override else configured
    problems: list[Problem] = []
    sections = {
        name: Section(raw=raw, file=FILE, place=f"plugins.{name}")
        for name, raw in tables.items()
        if name != FABRIC
    }
    if FABRIC in wanted:
        section = _fabric_section(fabric, environ, problems)
        if section is not None:
            sections[FABRIC] = section
    if not override or wanted:
        # What the file enables is no leftover of a shorter list in the variable.
        problems.extend(_leftovers(tables, {*wanted, *configured}))
    return Selection(names=tuple(wanted), sections=sections, problems=tuple(problems))


def _override(text: str) -> list[str]:
    if text.lower() == "none":
        return []
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _leftovers(tables: Mapping[str, Any], known: set[str]) -> Iterable[Problem]:
    for name in tables:
        place = f"plugins.{name}"
        if name == FABRIC:
            message = f'is read from {FABRIC_FILE}: move it there, under the key "fabric"'
            yield Problem(FILE, place, message)
        elif name not in known:
            message = (
                f"is a section of a plugin that is not enabled: add {name!r} to enabled under "
                "[plugins], or delete the section"
            )
            yield Problem(FILE, place, message)


def _fabric_section(
    raw: Any, environ: Mapping[str, str], problems: list[Problem]
) -> Section | None:
    if raw is None:
        message = (
            f'"fabric" has no section: write one into {FABRIC_FILE}, or remove it from enabled'
        )
        problems.append(Problem(FILE, "plugins.enabled", message))
        return None
    if isinstance(raw, Mapping):
        tree, missing = expand({FABRIC: raw}, environ, named=((FABRIC, "env"),))
        raw = cast("Mapping[str, Any]", tree)[FABRIC]
        if missing:
            names = ", ".join(missing)
            message = f"unset variables: {names}; set each, or write ${{NAME:-default}}"
            problems.append(Problem(FABRIC_FILE, FABRIC, message))
            return None
    return Section(raw=raw, file=FABRIC_FILE, place=FABRIC)
