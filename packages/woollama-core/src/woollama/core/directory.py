"""The directory: a model name to what answers for it, and the list of near names."""

from collections.abc import Iterable
from difflib import get_close_matches

from woollama.core.canonical import Value
from woollama.core.errors import RequestError, UnknownModel
from woollama.core.patterns import Pattern, PatternBackend, PatternCatalog
from woollama.core.providers import ModelRegistry, Target

__all__ = ["OWN_NAMESPACE", "Directory", "FoundPattern", "near_names"]

OWN_NAMESPACE = "woollama"
"""What stands before the slash of a recipe's or pattern's model name."""

_NEAR = 3


class FoundPattern(Value, frozen=True, kw_only=False):
    """A pattern that a model name stands for, and its backend."""

    pattern: Pattern
    backend: PatternBackend


class Directory:
    """Resolves ``<provider>/<model>`` and ``woollama/<name>``."""

    def __init__(self, registry: ModelRegistry, catalog: PatternCatalog | None = None) -> None:
        """Looks names up in both."""
        self.registry = registry
        self.catalog: PatternCatalog = catalog if catalog is not None else PatternCatalog()

    def find(self, model: str, *, known: Iterable[str] = ()) -> Target | FoundPattern:
        """What answers for a model name.

        Args:
            model: as the client wrote it.
            known: names that are on offer now, to name near ones in the refusal.

        Raises:
            UnknownModel: nothing does; the message lists near names.
            RequestError: the name has no model, or a pattern has none to run on.
        """
        namespace, _, name = model.partition("/")
        if namespace != OWN_NAMESPACE:
            return self._target(model, known)
        found = self.catalog.find(name)
        if found is None:
            raise UnknownModel(
                f"There is no recipe or pattern {name!r}.{near_names(model, self._own_names())}",
                param="model",
                code="model_not_found",
            )
        backend, pattern = found
        if pattern.model is None:
            raise RequestError(
                f"The pattern {name!r} names no model to run on, so it is no model itself. Give it "
                "one, or run it on /w1 with a model.",
                param="model",
            )
        return FoundPattern(pattern, backend)

    def _target(self, model: str, known: Iterable[str]) -> Target:
        try:
            return self.registry.resolve(model)
        except UnknownModel as error:
            error.hint = near_names(model, known).strip() or None
            raise

    def _own_names(self) -> list[str]:
        return [
            f"{OWN_NAMESPACE}/{pattern.name}"
            for pattern in self.catalog.list()
            if pattern.model is not None
        ]


def near_names(model: str, known: Iterable[str]) -> str:
    """A sentence with the names nearest to ``model``; empty when none is near."""
    names = list(known)
    near = get_close_matches(model, names, n=_NEAR, cutoff=0.5)
    if not near:
        # The same model under another provider is the likeliest slip.
        wanted = model.partition("/")[2] or model
        near = [name for name in names if name.partition("/")[2] == wanted][:_NEAR]
    return f" Near names: {', '.join(near)}." if near else ""
