"""OpenAI's own client, whose network is a strict fake."""

from collections.abc import Generator
from contextlib import contextmanager

import httpx2
from openai import OpenAI

from tests.clients.fake_network import network_of
from woollama.core.testing.fake import Fake

__all__ = ["client_of"]


@contextmanager
def client_of(fake: Fake, key: str = "k") -> Generator[OpenAI]:
    """The package's own client, which does not retry."""
    network = httpx2.Client(transport=network_of(fake))
    with OpenAI(
        api_key=key, base_url="http://peer.test/v1", http_client=network, max_retries=0
    ) as client:
        yield client
