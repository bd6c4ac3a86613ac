"""Token counts of several turns in one."""

from collections.abc import Iterable
from typing import Any

import msgspec

from woollama.core.canonical import Reply, Usage

__all__ = ["sum_usage"]


def sum_usage(replies: Iterable[Reply]) -> Usage | None:
    """The usage of all replies together; None when none reported any.

    A count that no reply reported stays unknown.
    """
    total: dict[str, Any] = {}
    found = False
    for reply in replies:
        if reply.usage is None:
            continue
        found = True
        for name, count in msgspec.structs.asdict(reply.usage).items():
            if count is not None:
                total[name] = total.get(name, 0) + count
    return Usage(**total) if found else None
