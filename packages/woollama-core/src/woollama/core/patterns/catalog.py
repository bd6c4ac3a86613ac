"""Ordered backends: the first that has a name answers for it."""

from collections.abc import Callable, Iterable, Sequence

from woollama.core.errors import InferenceError, WoollamaError
from woollama.core.patterns.backend import Pattern, PatternBackend

__all__ = ["PatternCatalog"]


def _untold(_backend: PatternBackend, _error: Exception | None) -> None:
    pass


class PatternCatalog:
    """The patterns of several backends under one roof.

    A backend is code of others: one that fails takes its own patterns away and nobody else's.
    """

    def __init__(
        self,
        backends: Iterable[PatternBackend] = (),
        *,
        report: Callable[[PatternBackend, Exception | None], None] = _untold,
    ) -> None:
        """Searches ``backends`` in their order.

        Args:
            backends: the systems of patterns.
            report: called after each list of a backend, with what it raised or None, and after each
                search that it failed.
        """
        self._backends = tuple(backends)
        self._report = report

    def list(self) -> Sequence[Pattern]:
        """Every pattern once: of several by one name the first backend's.

        Those of a backend that fails now are not in it.
        """
        found: dict[str, Pattern] = {}
        for backend in self._backends:
            for name, pattern in self._listed(backend).items():
                found.setdefault(name, pattern)
        return tuple(found.values())

    def find(self, name: str) -> tuple[PatternBackend, Pattern] | None:
        """The pattern of this name and whose it is.

        Raises:
            InferenceError: no backend has it, but one of them failed and cannot be asked; the
                message names that one.
        """
        failed: InferenceError | None = None
        for backend in self._backends:
            try:
                pattern = backend.find(name)
            except Exception as error:  # noqa: BLE001 - the other backends are asked all the same
                self._report(backend, error)
                failed = failed or _failure(backend, name, error)
                continue
            if pattern is not None:
                return backend, pattern
        if failed is not None:
            raise failed
        return None

    def _listed(self, backend: PatternBackend) -> dict[str, Pattern]:
        try:
            found = {pattern.name: pattern for pattern in backend.list()}
        except Exception as error:  # noqa: BLE001 - the other backends are listed all the same
            self._report(backend, error)
            return {}
        self._report(backend, None)
        return found


def _failure(backend: PatternBackend, name: str, error: Exception) -> InferenceError:
    """A sentence for whoever asked; of foreign code it has the type and not the text."""
    ours = isinstance(error, WoollamaError)
    failure = InferenceError(
        f"The pattern backend {backend.id!r} failed and cannot say whether it has {name!r}: "
        f"{error.message if ours else type(error).__name__}",
        error.kind if ours else None,
        error.status if ours else None,
    )
    failure.__cause__ = error
    return failure
