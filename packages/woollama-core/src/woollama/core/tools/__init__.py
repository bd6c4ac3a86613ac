"""The tool seam: what tools are, how they are named and shown to models, what they gave back."""

from woollama.core.tools.functions import FunctionTools, tool
from woollama.core.tools.names import EXPORT_LIMIT, MODEL_LIMIT, wire_name, wire_names
from woollama.core.tools.render import (
    ImageRenderer,
    Renderer,
    TextRenderer,
    render_content,
    render_tool_result,
)
from woollama.core.tools.schemas import SchemaMode, object_schema, shape_schema, shape_tools
from woollama.core.tools.spec import BlockingCall, Offer, ToolProvider, ToolResult, ToolSpec

__all__ = [
    "EXPORT_LIMIT",
    "MODEL_LIMIT",
    "BlockingCall",
    "FunctionTools",
    "ImageRenderer",
    "Offer",
    "Renderer",
    "SchemaMode",
    "TextRenderer",
    "ToolProvider",
    "ToolResult",
    "ToolSpec",
    "object_schema",
    "render_content",
    "render_tool_result",
    "shape_schema",
    "shape_tools",
    "tool",
    "wire_name",
    "wire_names",
]
