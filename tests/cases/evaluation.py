"""What a check's function is."""

from collections.abc import Callable
from typing import TypeAlias

from tests.cases.scene import Scene
from tests.cases.schema import Check

__all__ = ["Evaluate"]

Evaluate: TypeAlias = Callable[[Scene, Check], str | None]
"""Says what is wrong, None when nothing is.

It raises ``LookupError`` when what the check looks at is not there.
"""
