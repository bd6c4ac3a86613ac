"""The section ``[plugins.local]`` of ``woollama.toml``."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from woollama.core.canonical.value import NOTHING, Value

__all__ = ["LocalConfig", "ModelConfig", "default_models_dir"]

Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class ModelConfig(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.local.models."<name>"]``: a GGUF file, or settings for one that is found anyway.

    Attributes:
        path: the GGUF file; ``~`` is the home directory, a relative path starts at the
            configuration directory. Needed unless a file of this name is found without it.
        context: the context size in tokens. A longer prompt is refused, never cut.
        temperature: used when a request names none.
        max_tokens: the longest reply when a request names no limit, in tokens.
        template: a file with a Jinja chat template in place of the one inside the GGUF.
    """

    path: str | None = None
    context: Positive | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max_tokens: Positive | None = None
    template: str | None = None


class LocalConfig(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plugin's section; without one, the defaults.

    Attributes:
        models: models by the name behind ``local/``.
        models_dir: every ``*.gguf`` in it is a model named by its file; by default
            ``$XDG_DATA_HOME/woollama/models``, which need not exist.
        max_loaded: how many models are in memory at most; the one not used for the longest time
            makes room.
        threads: CPU threads for each model; by default one less than there are processors.
        parallel: requests that a model works on at the same time; they share its context.
        start_timeout_s: how long loading a model may take.
        busy_timeout_s: how long a request waits for another model to become idle and make room.
    """

    models: Mapping[str, ModelConfig] = NOTHING
    models_dir: str | None = None
    max_loaded: Positive = 1
    threads: Positive | None = None
    parallel: Positive = 1
    start_timeout_s: Seconds = 120.0
    busy_timeout_s: Seconds = 120.0


def default_models_dir() -> Path:
    """``$XDG_DATA_HOME/woollama/models``, else ``~/.local/share/woollama/models``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path("~/.local/share").expanduser()) / "woollama" / "models"
