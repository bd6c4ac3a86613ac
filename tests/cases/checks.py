"""All checks by their names, and the two that are made of others."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from tests.cases.checks_behind import BEHIND_CHECKS
from tests.cases.checks_client import CLIENT_CHECKS
from tests.cases.checks_product import PRODUCT_CHECKS
from tests.cases.checks_stream import STREAM_CHECKS
from tests.cases.evaluation import Evaluate
from tests.cases.scene import Scene
from tests.cases.schema import Check

__all__ = ["CHECKS", "every", "wrong"]


def _any_of(scene: Scene, check: Check) -> str | None:
    reasons: list[str] = []
    for choice in check.checks:
        together = (choice,) if isinstance(choice, Check) else choice
        found = [problem for part in together if (problem := wrong(scene, part))]
        if not found:
            return None
        reasons.append(" and ".join(found))
    return "none of these: " + " | ".join(reasons)


def _not(scene: Scene, check: Check) -> str | None:
    assert check.of is not None
    return None if wrong(scene, check.of) else "holds, and must not"


CHECKS: Mapping[str, Evaluate] = MappingProxyType(
    {
        **CLIENT_CHECKS,
        **STREAM_CHECKS,
        **BEHIND_CHECKS,
        **PRODUCT_CHECKS,
        "any_of": _any_of,
        "not": _not,
    }
)
"""Each by its name."""


def wrong(scene: Scene, check: Check) -> str | None:
    """What is wrong, after the check in its own words; None when it holds."""
    try:
        problem = CHECKS[check.check](scene, check)
    except LookupError:
        problem = "there is nothing to look at"
    return problem and f"{_said(check)} {problem}"


def every(check: Check) -> Iterator[Check]:
    """The check and those that it is made of."""
    yield check
    parts = [part for one in check.checks for part in ((one,) if isinstance(one, Check) else one)]
    for part in [*parts, *([check.of] if check.of else [])]:
        yield from every(part)


def _said(check: Check) -> str:
    place = {
        name: value
        for name in ("step", "upstream", "n", "i", "path", "name", "server", "method")
        if (value := getattr(check, name)) != _DEFAULTS[name]
    }
    return f"{check.check} {json.dumps(place)}:" if place else f"{check.check}:"


_DEFAULTS: Mapping[str, object] = MappingProxyType(msgspec.structs.asdict(Check(check="")))
