"""The tools of one run: who was offered, under which name, and what is not allowed."""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from woollama.core.canonical import NOTHING
from woollama.core.errors import InferenceError, RequestError
from woollama.core.tools import (
    FunctionTools,
    ToolProvider,
    ToolSpec,
    object_schema,
    wire_names,
)

__all__ = ["ToolSource", "Toolset", "offer_tools"]

ToolSource = ToolProvider | Iterable[Callable[..., Any]]
"""Where a run's tools come from: a provider, or just functions."""

_log = logging.getLogger(__name__)


class Toolset:
    """The allowed tools of one run. What is not in it is never dispatched.

    Attributes:
        schemas: what the model is offered, OpenAI's function tools under their wire names.
        missing: allowed names that nobody has.
    """

    def __init__(
        self,
        provider: ToolProvider | None,
        specs: Sequence[ToolSpec],
        missing: tuple[str, ...] = (),
    ) -> None:
        """Names the tools for the wire; ``specs`` are allowed, each name once."""
        names = wire_names(spec.name for spec in specs)
        self.missing = missing
        self._provider = provider
        self._by_wire = {names[spec.name]: spec for spec in specs}
        self.schemas: tuple[dict[str, Any], ...] = tuple(
            _named(spec.schema, wire) for wire, spec in self._by_wire.items()
        )

    @property
    def wire_names(self) -> tuple[str, ...]:
        """The names the model knows."""
        return tuple(self._by_wire)

    def find(self, wire: str) -> ToolSpec | None:
        """The tool that the model calls by this name; None is not allowed."""
        return self._by_wire.get(wire)

    def dispatch(self, spec: ToolSpec, args: dict[str, Any]) -> Any:
        """What the provider's ``dispatch`` returns for a tool of this set."""
        if self._provider is None:
            raise AssertionError("a tool without a provider")
        return self._provider.dispatch(spec.own_name, args)


def offer_tools(source: ToolSource | None, allow: Sequence[str]) -> Toolset:
    """The tools of a run: those of ``source`` that the list names, and no others.

    Args:
        source: a ``ToolProvider``, an iterable of functions, or None.
        allow: the recipe's list, by the tools' own names.

    Raises:
        InferenceError: ``tools_for`` failed (500), or two tools have one name.
        RequestError: ``source`` is none of these.
    """
    provider = _provider(source)
    specs: dict[str, ToolSpec] = {}
    for spec in () if provider is None else _offered(provider, list(allow)):
        if spec.own_name not in allow and spec.name not in allow:
            _log.warning("tool %r is offered and not in the recipe's list: left out", spec.own_name)
            continue
        if spec.name in specs:
            raise _failed(f"two tools are named {spec.name!r}")
        specs[spec.name] = spec
    known = {name for spec in specs.values() for name in (spec.name, spec.own_name)}
    missing = tuple(name for name in allow if name not in known)
    if missing:
        _log.warning("tools of the recipe that nobody offers: %s", ", ".join(missing))
    return Toolset(provider, tuple(specs.values()), missing)


def _provider(source: object) -> ToolProvider | None:
    if source is None:
        return None
    if callable(getattr(source, "tools_for", None)) and callable(getattr(source, "dispatch", None)):
        return cast("ToolProvider", source)
    if isinstance(source, Iterable):
        functions = tuple(cast("Iterable[Any]", source))
        if all(callable(function) for function in functions):
            return FunctionTools(*functions)
    raise RequestError(
        "'tools' must be an object with 'tools_for' and 'dispatch', or a list of functions, not "
        f"{type(cast('object', source)).__name__}.",
        param="tools",
    )


def _offered(provider: ToolProvider, allow: list[str]) -> list[ToolSpec]:
    try:
        offers: Any = provider.tools_for(allow)
        if inspect.iscoroutine(offers):
            offers.close()
            raise TypeError("tools_for must not be async: it is called when a run is set up")
        return [_spec(offer) for offer in offers]
    except Exception as error:
        # Foreign code: whatever it raises is its failure to offer tools (core API, section 5).
        raise _failed(f"{type(error).__name__}: {error}") from error


def _failed(reason: str) -> InferenceError:
    return InferenceError(reason, "server_error", 500)


def _spec(offer: Any) -> ToolSpec:
    schema = offer.schema
    function = schema["function"]
    name = function["name"]
    if not isinstance(name, str) or not name:
        raise TypeError("a tool's schema must have a function with a name")
    if isinstance(offer, ToolSpec):
        return offer
    source = getattr(offer, "source_name", None)
    return ToolSpec(
        name,
        schema,
        source_name=source if isinstance(source, str) else None,
        output_schema=getattr(offer, "output_schema", None),
        annotations=getattr(offer, "annotations", None) or NOTHING,
        meta=getattr(offer, "meta", None) or NOTHING,
    )


def _named(schema: Mapping[str, Any], wire: str) -> dict[str, Any]:
    function = cast("Mapping[str, Any]", schema["function"])
    parameters = object_schema(function.get("parameters"))
    return {"type": "function", "function": {**function, "name": wire, "parameters": parameters}}
