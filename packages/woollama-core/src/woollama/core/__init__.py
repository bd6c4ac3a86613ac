"""woollama.core: a model name and messages in, a reply out, whatever language the server speaks.

The names below are the whole public interface for programs that embed it. Importing it loads no
server, no HTTP library and no TLS, reads no file, and keeps no state.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from woollama.core.canonical import Capabilities
from woollama.core.errors import InferenceError
from woollama.core.inference import (
    DeltaStream,
    complete,
    complete_response,
    complete_stream,
    complete_sync,
)
from woollama.core.providers import (
    Credential,
    Inferencer,
    ModelRegistry,
    ModelSettings,
    Provider,
    provider_names,
)
from woollama.core.retries import Retries
from woollama.core.transport import Timeouts, Transport

if TYPE_CHECKING:
    from woollama.core.orchestrator import EventIter, orchestrate, orchestrate_events
    from woollama.core.patterns import Pattern, PatternBackend, PatternCall
    from woollama.core.recipes import Recipe, make_recipe
    from woollama.core.tools import (
        FunctionTools,
        ImageRenderer,
        Renderer,
        TextRenderer,
        ToolProvider,
        ToolResult,
        ToolSpec,
        render_tool_result,
        tool,
    )

__all__ = [
    "Capabilities",
    "Credential",
    "DeltaStream",
    "EventIter",
    "FunctionTools",
    "ImageRenderer",
    "Inferencer",
    "InferenceError",
    "ModelRegistry",
    "ModelSettings",
    "Pattern",
    "PatternBackend",
    "PatternCall",
    "Provider",
    "Recipe",
    "Renderer",
    "Retries",
    "TextRenderer",
    "Timeouts",
    "ToolProvider",
    "ToolResult",
    "ToolSpec",
    "Transport",
    "__version__",
    "complete",
    "complete_response",
    "complete_stream",
    "complete_sync",
    "make_recipe",
    "orchestrate",
    "orchestrate_events",
    "provider_names",
    "render_tool_result",
    "tool",
]

__version__ = "0.7.0"

__woollama__ = "router"
"""Tells this package from another project's of the same name (ruling RU-1)."""


# Half of this package serves those who run recipes: it is loaded by the first of these names.
_ON_FIRST_USE: Mapping[str, str] = MappingProxyType(
    {
        "EventIter": "orchestrator",
        "FunctionTools": "tools",
        "ImageRenderer": "tools",
        "Pattern": "patterns",
        "PatternBackend": "patterns",
        "PatternCall": "patterns",
        "Recipe": "recipes",
        "Renderer": "tools",
        "TextRenderer": "tools",
        "ToolProvider": "tools",
        "ToolResult": "tools",
        "ToolSpec": "tools",
        "make_recipe": "recipes",
        "orchestrate": "orchestrator",
        "orchestrate_events": "orchestrator",
        "render_tool_result": "tools",
        "tool": "tools",
    }
)


def __getattr__(name: str) -> Any:
    """A public name that is loaded by its first use."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _shown(getattr(import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name))


def __dir__() -> list[str]:
    """Every public name, loaded or not."""
    return sorted({*globals(), *__all__})


def _shown(value: Any) -> Any:
    # Tracebacks, pickles and docs show the public name, not the module it is written in.
    if getattr(value, "__module__", "").startswith(f"{__name__}."):
        value.__module__ = __name__
    return value


for _name in __all__:
    if _name not in _ON_FIRST_USE:
        _shown(globals()[_name])
