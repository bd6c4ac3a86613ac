"""What every test shares: the event loop that asynchronous tests run on."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """asyncio; a folder whose code also runs on trio overrides this with both."""
    return "asyncio"
