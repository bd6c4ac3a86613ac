"""Fixtures for the tests of plugins; opt-in.

In ``conftest.py``: ``pytest_plugins = ["woollama.server.testing.pytest_plugin"]``.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from woollama.server.testing.contract import check_plugin
from woollama.server.testing.served import Served, use_plugins

__all__ = ["plugin_check", "woollama_config_dir", "woollama_server"]


@pytest.fixture
def woollama_config_dir(tmp_path: Path) -> Path:
    """The configuration directory of the test's server."""
    folder = tmp_path / "woollama"
    folder.mkdir()
    return folder


@pytest.fixture
def woollama_server(
    woollama_config_dir: Path,
) -> Callable[..., AbstractAsyncContextManager[Served]]:
    """Runs servers in ``woollama_config_dir``, as ``use_plugins`` does."""
    return partial(use_plugins, folder=woollama_config_dir)


@pytest.fixture
def plugin_check() -> Callable[..., object]:
    """Checks the contract of a plugin, as ``check_plugin`` does."""
    return check_plugin
