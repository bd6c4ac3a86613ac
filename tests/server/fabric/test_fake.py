"""The fake speaks as fabric's transcripts do."""

import re
from urllib.parse import urlsplit

import anyio
import pytest

from tests.server.fabric.fake.app import FakeFabric
from tests.server.fabric.fake.serving import serve
from tests.server.fabric.transcripts import TRANSCRIPTS, parts


@pytest.mark.parametrize("name", TRANSCRIPTS)
async def test_a_transcript_is_repeated_to_the_byte(name: str) -> None:
    transcript = TRANSCRIPTS[name]
    fake = FakeFabric(key="k1")
    with anyio.fail_after(10):
        async with serve(fake.app) as url:
            port = urlsplit(url).port
            assert port is not None
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                request = re.sub(r"127\.0\.0\.1:8080", f"127.0.0.1:{port}", transcript["request"])
                await stream.send(request.encode())
                received = b""
                try:
                    while True:
                        received += await stream.receive()
                except anyio.EndOfStream:
                    pass
    assert parts(transcript["answer"].encode()) == parts(received)
