"""Which features of the product are built, and where it differs from a case on purpose."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from tests.cases.schema import Case

__all__ = ["BUILT", "EXPECTED_TO_DIFFER", "Difference", "FEATURES", "ready", "reason_to_wait"]

BUILT: Final = "built"

FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "openai_chat": BUILT,
        "unix_socket": BUILT,
        "anthropic_native": BUILT,
        "ollama_native": BUILT,
        "ollama_native_tools": BUILT,
        "openai_responses": BUILT,
        "recipes": BUILT,
        "mcp": BUILT,
        "patterns": BUILT,
        "mcp_http": BUILT,
    }
)
"""By the name that a case's ``requires`` uses: ``BUILT``, or why its cases wait."""


class Difference(NamedTuple):
    """What the product does not do, by design.

    Attributes:
        check: the only check that does not hold.
        reason: why that is right.
    """

    check: str
    reason: str


EXPECTED_TO_DIFFER: Mapping[str, Difference] = MappingProxyType(
    {
        "A03": Difference(
            "sse_tools",
            "the bytes of a server that speaks the client's dialect are passed as they are, wrong "
            "indexes too; `relay = false` on the provider gives each call its own",
        ),
        "A04": Difference(
            "sse_tools",
            "the bytes of a server that speaks the client's dialect are passed as they are, "
            "missing indexes too; `relay = false` on the provider puts them in",
        ),
    }
)
"""Cases of level ``should`` that the product fails by design."""


def reason_to_wait(case: Case) -> str | None:
    """Why the case cannot be run yet; None when all that it requires is built."""
    waiting = {name: FEATURES[name] for name in case.requires if FEATURES[name] != BUILT}
    return "; ".join(f"{name}: {reason}" for name, reason in waiting.items()) or None


def ready(cases: Iterable[Case]) -> list[Case]:
    """The cases whose features are built."""
    return [case for case in cases if reason_to_wait(case) is None]
