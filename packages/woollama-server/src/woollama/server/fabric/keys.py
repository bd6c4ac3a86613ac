"""fabric's API key in its place."""

from collections.abc import Mapping

import msgspec

from woollama.core.errors import ConfigError
from woollama.core.wire.codec import WireRequest
from woollama.server.fabric.config import FabricConfig

__all__ = ["key_of", "with_key"]


def key_of(config: FabricConfig, environ: Mapping[str, str]) -> str | None:
    """The key that the section names; None when it names none.

    Raises:
        ConfigError: the variable is not set, or holds what no header can.
    """
    name = config.api_key_env
    if name is None:
        return None
    key = environ.get(name, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"mcp.json: fabric.api_key_env: the variable {name!r} holds no key.",
            hint='Set it, or remove "api_key_env".',
        )
    return key


def with_key(request: WireRequest, key: str | None) -> WireRequest:
    """The request under our key: the last act before the transport."""
    if key is None:
        return request
    return msgspec.structs.replace(request, headers={**request.headers, "x-api-key": key})
