"""What the architecture tests look at: the repository, and the graph of our imports."""

from pathlib import Path

import grimp
import pytest


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def imports() -> grimp.ImportGraph:
    """Every import in our source, `TYPE_CHECKING` ones included; foreign packages as one node."""
    return grimp.build_graph(
        "woollama.core", "woollama.server", include_external_packages=True, cache_dir=None
    )
