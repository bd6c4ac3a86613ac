"""woollama.core: a model name and messages in, a reply out, whatever language the server speaks.

The names below are the whole public interface for programs that embed it. Importing it loads no
server, no HTTP library and no TLS, reads no file, and keeps no state.
"""

from woollama.core.canonical import Capabilities
from woollama.core.errors import InferenceError
from woollama.core.inference import (
    DeltaStream,
    complete,
    complete_response,
    complete_stream,
    complete_sync,
)
from woollama.core.orchestrator import EventIter, orchestrate, orchestrate_events
from woollama.core.patterns import Pattern, PatternBackend, PatternCall
from woollama.core.providers import (
    Credential,
    Inferencer,
    ModelRegistry,
    ModelSettings,
    Provider,
    provider_names,
)
from woollama.core.recipes import Recipe, make_recipe
from woollama.core.retries import Retries
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
from woollama.core.transport import Timeouts, Transport

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


def _show_public_names() -> None:
    # Tracebacks, pickles and docs show the public name, not the module it is written in.
    for name in __all__:
        value = globals()[name]
        if getattr(value, "__module__", "").startswith("woollama.core."):
            value.__module__ = __name__


_show_public_names()
