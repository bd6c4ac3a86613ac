"""Is ``woollama.core`` ours? A package index holds another project's of the same name (RU-1)."""

import importlib

__all__ = ["foreign_core"]

_MARKER = "router"


def foreign_core() -> str | None:
    """What is wrong with the installed ``woollama.core``, and what to do; None when it is ours."""
    try:
        core = importlib.import_module("woollama.core")
    except ImportError as error:
        place, reason = "nowhere", f" ({error})"
    else:
        if getattr(core, "__woollama__", None) == _MARKER:
            return None
        place, reason = str(getattr(core, "__file__", None) or "an unknown place"), ""
    return (
        f"woollama.core is not the one this server belongs to; found {place}{reason}. Install both "
        "wheels together by path: pip install --force-reinstall woollama_core-*.whl "
        "woollama_server-*.whl"
    )
