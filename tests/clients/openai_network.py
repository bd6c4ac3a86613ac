"""OpenAI's own client, whose network is a strict fake."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import httpx2
from openai import OpenAI

from woollama.core.testing.fake import Fake, FakeRequest

__all__ = ["client_of"]


class _Body(httpx2.SyncByteStream):
    def __init__(self, chunks: tuple[bytes, ...]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


@contextmanager
def client_of(fake: Fake, key: str = "k") -> Generator[OpenAI]:
    """The package's own client, which does not retry."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        got = FakeRequest(
            method=request.method,
            path=request.url.path,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=request.content,
        )
        reply = fake.answer(got)
        return httpx2.Response(reply.status, headers=reply.headers, stream=_Body(reply.chunks))

    network = httpx2.Client(transport=httpx2.MockTransport(answer))
    with OpenAI(
        api_key=key, base_url="http://peer.test/v1", http_client=network, max_retries=0
    ) as client:
        yield client
