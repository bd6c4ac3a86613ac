"""A strict fake in the place of a client package's network."""

import httpx
import httpx2

from woollama.core.testing.fake import Fake, FakeReply, FakeRequest

__all__ = ["httpx_network", "network_of"]


def network_of(fake: Fake) -> httpx2.MockTransport:
    """For packages on httpx2; the pieces of a body arrive as the fake says them."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        reply = _reply(fake, request)
        return httpx2.Response(reply.status, headers=reply.headers, content=iter(reply.chunks))

    return httpx2.MockTransport(answer)


def httpx_network(fake: Fake) -> httpx.MockTransport:
    """The same for packages on httpx."""

    def answer(request: httpx.Request) -> httpx.Response:
        reply = _reply(fake, request)
        return httpx.Response(reply.status, headers=reply.headers, content=iter(reply.chunks))

    return httpx.MockTransport(answer)


def _reply(fake: Fake, request: httpx2.Request | httpx.Request) -> FakeReply:
    return fake.answer(
        FakeRequest(
            method=request.method,
            path=request.url.path,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=request.content,
        )
    )
