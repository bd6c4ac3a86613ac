"""What a tool gave back, whole: nothing is left out before it is rendered for one model."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from woollama.core.canonical.value import NOTHING, Value

__all__ = ["ToolResult"]


class ToolResult(Value, frozen=True, kw_only=False):
    """The result of a tool call, lossless.

    Attributes:
        blocks: content blocks in MCP's shapes (``text``, ``image``, ``audio``, ``resource``,
            ``resource_link`` or one nobody knows yet), as mappings or as objects of an SDK; kept
            as a tuple. A string is taken as one text block.
        structured: JSON beside the blocks; None is none.
        is_error: whether the tool failed.
        meta: what the tool says about the result; for the embedder, never for the model.
    """

    blocks: Sequence[Any] = ()
    structured: Any = None
    is_error: bool = False
    meta: Mapping[str, Any] = NOTHING

    def __post_init__(self) -> None:
        """Makes the blocks a tuple."""
        given: Any = self.blocks
        if isinstance(given, str):
            given = ({"type": "text", "text": given},)
        msgspec.structs.force_setattr(self, "blocks", tuple(given or ()))
