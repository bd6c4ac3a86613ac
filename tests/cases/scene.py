"""All that a check may look at: what clients and upstreams saw, and the product."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cases.product import Product
from tests.cases.replies import Reply
from tests.cases.schema import Case, Check
from tests.cases.script_player import Received, ScriptPlayer

__all__ = ["Scene"]


@dataclass(kw_only=True)
class Scene:
    """One run of a case.

    Attributes:
        folder: the fresh directory.
        words: what the words of the case's texts stand for.
        started: whether the product came up.
        replies: what the clients got, in the order of the steps.
        marks: memory and descriptors by label.
        problems: what could not be done of the steps.
    """

    case: Case
    folder: Path
    upstreams: Mapping[str, ScriptPlayer]
    words: Mapping[str, str]
    product: Product
    started: bool
    replies: list[Reply] = field(default_factory=list[Reply])
    marks: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    problems: list[str] = field(default_factory=list[str])

    def reply(self, check: Check) -> Reply:
        """The reply that the check means.

        Raises:
            LookupError: there is none.
        """
        return self.replies[check.step]

    def requests(self, check: Check) -> list[Received]:
        """What the upstream got that the check means; without a name, the first."""
        return self.upstreams[check.upstream or next(iter(self.upstreams))].requests

    def request(self, check: Check) -> Received:
        """The request that the check means.

        Raises:
            LookupError: there were fewer.
        """
        return self.requests(check)[check.n]
