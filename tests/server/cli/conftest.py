"""A shell with an empty home for each test of the command."""

from pathlib import Path

import pytest

from tests.server.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
