"""The tool seam: what a tool is, what it gives back, and who brings tools."""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from woollama.core.canonical import NOTHING, ToolResult, Value

__all__ = ["BlockingCall", "Offer", "PreparedTools", "ToolProvider", "ToolResult", "ToolSpec"]


class ToolSpec(Value, frozen=True, kw_only=False):
    """A tool as it is offered.

    Attributes:
        name: what the model calls it by; letters, digits, ``_`` and ``-``, at most 64. Another name
            is mapped to such a one on its way to a model (``names.wire_names``).
        schema: OpenAI's ``{"type": "function", "function": {"name", "description",
            "parameters"}}``, as the tool gave it.
        source_name: the tool's own name (``server.tool``), which recipes list and ``dispatch``
            gets; None is ``name``.
        output_schema: the JSON Schema of its ``structured`` results.
        annotations: MCP's hints (``readOnlyHint`` …).
        meta: whatever else is known. It, ``annotations`` and ``output_schema`` are for the
            embedder and never go to a model (promise P-4).
    """

    name: str
    schema: Mapping[str, Any]
    source_name: str | None = None
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = NOTHING
    meta: Mapping[str, Any] = NOTHING

    @property
    def own_name(self) -> str:
        """The tool's own name: ``source_name``, else ``name``."""
        return self.source_name if self.source_name is not None else self.name


class Offer(Protocol):
    """What ``tools_for`` gives: a ``ToolSpec``, or anything with a ``schema`` like its."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """OpenAI's function tool."""
        ...


class ToolProvider(Protocol):
    """A source of tools. Any object with these two methods is one (core API, section 5)."""

    def tools_for(self, allow: list[str], /) -> Iterable[Offer]:
        """The tools among ``allow``; called once, when a run is set up.

        What is offered beyond ``allow`` is left out: the recipe's list decides, never the provider.
        """
        ...

    def dispatch(self, name: str, args: dict[str, Any], /) -> Any:
        """Runs a tool. Called on the event loop, several calls at once.

        Args:
            name: the tool's own name.
            args: what the model gave.

        Returns:
            A ``ToolResult`` (or an object with ``blocks``), a string for one text block, or a
            mapping for a structured result; or an awaitable of one of these.

        Raises:
            Exception: any; the model is told and the run goes on.
        """
        ...


@runtime_checkable
class PreparedTools(Protocol):
    """What a ``ToolProvider`` may have beside: a way to wait for tools that are just coming."""

    async def prepare(self, allow: Iterable[str], /) -> None:
        """Waits, not for long, until ``tools_for`` can say what it has of ``allow``."""
        ...


class BlockingCall:
    """What ``dispatch`` returns for work that would block the loop (RU-42).

    The orchestrator runs it in a worker thread.
    """

    def __init__(self, run: Callable[[], Any]) -> None:
        """``run`` returns what ``dispatch`` may return."""
        self.run = run

    def __await__(self) -> Generator[Any, None, Any]:
        """Awaited by hand, it runs in place and blocks meanwhile."""
        yield from ()
        return self.run()
