"""What pattern backends raise while they are listed or searched, said once in the log."""

import logging

from woollama.core.patterns import PatternBackend
from woollama.server.tracebacks import describe_exception

__all__ = ["PatternFaults"]

_log = logging.getLogger(__name__)


class PatternFaults:
    """Gets the reports of a ``PatternCatalog``.

    Clients ask for lists again and again: the same fault is said once, until the backend works.
    """

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self._said: dict[str, set[type[Exception]]] = {}

    def __call__(self, backend: PatternBackend, error: Exception | None) -> None:
        """Logs what a backend raised, without its text; None: it gave its list."""
        if error is None:
            if self._said.pop(backend.id, None) is not None:
                _log.info("pattern backend %r gives its list again", backend.id)
            return
        said = self._said.setdefault(backend.id, set())
        # By its type: an exception that is kept and raised again has a longer traceback each time.
        if type(error) in said:
            return
        said.add(type(error))
        trace = describe_exception(error)
        _log.error("pattern backend %r failed; its patterns are left out:\n%s", backend.id, trace)
