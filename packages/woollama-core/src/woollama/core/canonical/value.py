"""The base of canonical values: immutable, keyword-only, quiet about what is not set."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

__all__ = ["NOTHING", "Value"]

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""The empty mapping that fields share as their default."""


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An immutable value; change one with ``msgspec.structs.replace``."""
