"""What every command does first: settings, and the variables of ``.env`` for this process."""

import os
from collections.abc import Mapping
from typing import Any

from woollama.core.canonical import NOTHING
from woollama.server.environment import read_environment
from woollama.server.settings import Settings, load_settings

__all__ = ["begin"]


def begin(flags: Mapping[str, Any] = NOTHING) -> Settings:
    """The settings; from now on the process has the variables of ``<config dir>/.env``, too.

    Providers look for their keys in the process's environment when they are used (RU-3).

    Raises:
        ConfigError: everything that is wrong in the settings.
    """
    settings = load_settings(os.environ, flags)
    os.environ.update(read_environment(os.environ))
    return settings
