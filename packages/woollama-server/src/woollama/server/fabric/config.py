"""The section ``fabric`` of ``mcp.json``."""

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from woollama.core.canonical import NOTHING, Value
from woollama.core.errors import ConfigError

__all__ = ["Exposed", "FabricConfig", "with_environment"]

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Exposed = Literal["contents", "writes", "config", "youtube", "other"]
"""A group of fabric's routes that is closed unless it is named."""


class FabricConfig(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``fabric`` in ``mcp.json``. Without ``url`` and ``managed`` fabric is switched off.

    Attributes:
        url: where a fabric server is; wins over ``managed``.
        managed: whether woollama starts ``fabric --serve`` itself, and ends it.
        command: fabric's program; a name on ``PATH`` (``~/.local/bin`` first) or a path. Images go
            through it in both modes.
        address: where a managed fabric listens, ``127.0.0.1:PORT``; by default a free port.
        default_model: what patterns run on when a call names no model; with it, each is the model
            ``woollama/<name>``.
        api_key_env: the variable with fabric's API key; none by default.
        env: variables for a managed fabric and for the program, beside those it gets anyway.
        timeout_s: how long fabric may be silent while it answers.
        start_timeout_s: how long a managed fabric may take to start.
        vision_timeout_s: how long the program may take for one image.
        refresh_s: how long the list of patterns is used before it is asked for again; 0 asks at
            each look.
        drop_params: parameters to leave out, since fabric has no words for them.
        expose: groups of routes below ``/fabric`` to open, beside those that are always open.
    """

    url: Text | None = None
    managed: bool = False
    command: Text = "fabric"
    address: Text | None = None
    default_model: Text | None = None
    api_key_env: Text | None = None
    env: Mapping[str, str] = NOTHING
    timeout_s: Seconds = 300.0
    start_timeout_s: Seconds = 25.0
    vision_timeout_s: Seconds = 300.0
    refresh_s: Annotated[float, msgspec.Meta(ge=0)] = 60.0
    drop_params: tuple[str, ...] = ()
    expose: tuple[Exposed, ...] = ()

    def __post_init__(self) -> None:
        """Refuses addresses that are none."""
        if self.url is not None:
            _check_url(self.url)
        if self.address is not None:
            _check_address(self.address)

    def __repr__(self) -> str:
        """Without ``env``, which can hold keys."""
        return f"FabricConfig(url={self.url!r}, managed={self.managed!r})"


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"url {url!r} is no address; write http://127.0.0.1:8080")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("url must hold neither credentials nor a query; see api_key_env")


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    advice = "write 127.0.0.1:PORT"
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"address {address!r} has no port from 1 to 65535; {advice}")
    try:
        loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        # fabric asks its clients for nothing and reads files for them.
        raise ValueError(
            f"address {address!r} is not on this machine; {advice}, or start fabric yourself and "
            "set url"
        )


_VARIABLES = MappingProxyType(
    {
        "WOOLLAMA_FABRIC_REFRESH_SECS": "refresh_s",
        "WOOLLAMA_FABRIC_VISION_TIMEOUT_SECS": "vision_timeout_s",
    }
)
"""Variables that stand over keys of the section."""


def with_environment(config: FabricConfig, environ: Mapping[str, str]) -> FabricConfig:
    """The section with what the environment says over it.

    Raises:
        ConfigError: a variable is no number of seconds.
    """
    changes: dict[str, Any] = {}
    for variable, key in _VARIABLES.items():
        text = environ.get(variable, "").strip()
        if not text:
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not (seconds > 0 or (seconds == 0 and key == "refresh_s")) or seconds == float("inf"):
            raise ConfigError(f"environment: {variable}: {text!r} is no number of seconds")
        changes[key] = seconds
    return msgspec.structs.replace(config, **changes) if changes else config
