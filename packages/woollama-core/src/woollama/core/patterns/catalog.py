"""Ordered backends: the first that has a name answers for it."""

from collections.abc import Iterable, Sequence

from woollama.core.patterns.backend import Pattern, PatternBackend

__all__ = ["PatternCatalog"]


class PatternCatalog:
    """The patterns of several backends under one roof."""

    def __init__(self, backends: Iterable[PatternBackend] = ()) -> None:
        """Searches ``backends`` in their order."""
        self._backends = tuple(backends)

    def list(self) -> Sequence[Pattern]:
        """Every pattern once: of several by one name the first backend's."""
        found: dict[str, Pattern] = {}
        for backend in self._backends:
            for pattern in backend.list():
                found.setdefault(pattern.name, pattern)
        return tuple(found.values())

    def find(self, name: str) -> tuple[PatternBackend, Pattern] | None:
        """The pattern of this name and whose it is."""
        for backend in self._backends:
            pattern = backend.find(name)
            if pattern is not None:
                return backend, pattern
        return None
