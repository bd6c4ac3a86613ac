"""A server of these tests has its list of patterns before the test goes on."""

import pytest

from tests.server.fabric.rig import LIMIT_S
from woollama.server.fabric import entry


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fabric's program starts slowly on a busy machine; a daemon would go on without its list."""
    monkeypatch.setattr(entry, "SETTLE_S", LIMIT_S)
