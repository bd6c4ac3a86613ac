"""What a child of fabric gets of our environment: its own settings, and not ours."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["child_environment", "find_program"]

_NAMES = frozenset(
    {
        *("HOME", "LOGNAME", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ", "USER"),
        *("XDG_CONFIG_HOME", "SSL_CERT_DIR", "SSL_CERT_FILE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("CUSTOM_PATTERNS_DIRECTORY", "DEFAULT_MODEL", "DEFAULT_VENDOR"),
    }
)
_PREFIXES = ("FABRIC_", "OLLAMA_", "COVERAGE_")
_SUFFIXES = ("_API_BASE_URL", "_API_KEY", "_API_URL")
"""How fabric names the keys and addresses of its vendors."""


def child_environment(environ: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a fabric that we start.

    ``~/.local/bin``, where fabric installs itself, comes first in ``PATH``. The language is fixed:
    for one it does not know, fabric downloads a translation.

    Args:
        environ: ours; of it only names that fabric reads, and nothing of woollama's.
        own: what the section sets; wins.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if (name in _NAMES or name.startswith(_PREFIXES) or name.endswith(_SUFFIXES))
        and not name.startswith("WOOLLAMA_")
    }
    home = kept.get("HOME")
    places = [str(Path(home) / ".local" / "bin")] if home else []
    kept["PATH"] = os.pathsep.join([*places, *filter(None, [kept.get("PATH", os.defpath)])])
    return {**kept, "LANG": "en_US.UTF-8", **own}


def find_program(command: str, env: Mapping[str, str]) -> str | None:
    """The path of a program; None when there is none. Blocks for a moment.

    Args:
        command: a name that is looked for, or a path; ``~/`` is the home of ``env``.
        env: the environment it will have.
    """
    home = env.get("HOME", "")
    if home and command.startswith("~/"):
        command = str(Path(home) / command[2:])
    return shutil.which(command, path=env.get("PATH"))
