"""The mock upstream and the load client, alone and talking to each other."""

import asyncio
import json
import os

import anyio
import pytest

from tools.bench.load import measure, parse_options
from tools.bench.replies import chat_reply, stream_script
from tools.bench.reply_reader import ReplyReader, StampReader
from tools.bench.request import Request, take_request
from tools.bench.sample import Measured
from tools.bench.upstream import Upstream

PLAIN = b"POST /v1/x?q=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("sent", [PLAIN, CHUNKED])
def test_a_request_is_taken_when_it_is_whole_and_not_before(sent: bytes) -> None:
    assert [None] * len(sent) == [take_request(sent[:cut]) for cut in range(len(sent))]
    assert Request(path=b"/v1/x", body=b"hello", size=len(sent)) == take_request(sent + b"POST ")


def test_a_request_without_a_length_has_no_body() -> None:
    sent = b"GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n"

    assert Request(path=b"/v1/models", body=b"", size=len(sent)) == take_request(sent)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_reply_cut_anywhere_gives_the_same_body(native: bool, step: int) -> None:
    sent = chat_reply("chat", native=native)
    reader, body = ReplyReader(), b""
    for at in range(0, len(sent), step):
        assert not reader.done
        body += b"".join(reader.feed(sent[at : at + step]))

    assert (200, True, False) == (reader.status, reader.done, reader.closes)
    assert "chat" == json.loads(body)["model"]


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_stream_cut_anywhere_gives_the_same_stamps(step: int) -> None:
    script = stream_script("bench/stream-3-0ms", native=False, usage=True)
    sent = script.head + b"".join(script.chunk % at for at in (10, 20, 30)) + script.tail
    reader, stamps = ReplyReader(), StampReader()
    for at in range(0, len(sent), step):
        for part in reader.feed(sent[at : at + step]):
            stamps.feed(part, at_ns=100)

    assert [90, 80, 70] == stamps.lateness_ns
    assert (True, True, 100) == (reader.done, stamps.finished, stamps.first_ns)


def test_a_stream_without_its_end_is_not_finished() -> None:
    stamps = StampReader()
    stamps.feed(b'data: {"choices":[{"delta":{"content": "%019d "}}]}\n\n' % 5, at_ns=7)

    assert ([2], False) == (stamps.lateness_ns, stamps.finished)


def test_a_head_that_closes_and_names_no_length_ends_with_the_connection() -> None:
    reader = ReplyReader()

    parts = reader.feed(b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nno")

    assert [b"no"] == list(parts)
    assert (503, True, True, False) == (
        *(reader.status, reader.closes, reader.ends_with_connection),
        reader.done,
    )


async def run_load(*arguments: str) -> Measured:
    """One run of the load client against the mock, both on this loop."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with anyio.fail_after(5):
        async with server:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            given = ("--url", url, "--seconds", "2", "--grace", "1", "--pid", str(os.getpid()))
            return await measure(parse_options([*given, *arguments]))


async def test_a_chat_run_counts_what_was_answered() -> None:
    measured = await run_load("--scenario", "chat-4", "--requests", "20")

    assert ("", 1.0) == (measured.trouble, measured.values["served_share"])
    assert measured.values["rss_mb"] > 1


async def test_a_stream_run_counts_every_chunk() -> None:
    measured = await run_load("--scenario", "stream-2", "--requests", "4")

    chunks = measured.values["chunks_per_s"] / measured.values["requests_per_s"]
    assert ("", 1.0) == (measured.trouble, measured.values["served_share"])
    assert 200 == round(chunks)


async def test_streams_that_are_too_short_are_trouble() -> None:
    measured = await run_load("--scenario", "stream-2", "--requests", "4", "--model", "chat")

    assert ("4 chunks missing", 0.0) == (measured.trouble, measured.values["served_share"])


async def test_a_server_that_is_not_there_is_trouble() -> None:
    with anyio.fail_after(5):
        url = "http://127.0.0.1:9/v1/chat/completions"
        measured = await measure(parse_options(["--url", url, "--scenario", "chat-2"]))

    assert ("2 connect: ConnectionRefusedError", 0.0) == (
        *(measured.trouble, measured.values["served_share"]),
    )


async def test_ollamas_protocol_streams_unless_told_not_to() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    body = b'{"model": "stream-2-0ms", "messages": []}'
    with anyio.fail_after(5):
        async with server:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"POST /api/chat HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
            writer.write(head + body)
            answer, data = ReplyReader(), b""
            while not answer.done:
                data += b"".join(answer.feed(await reader.read(4096)))
            writer.close()
            await writer.wait_closed()

    lines = [json.loads(line) for line in data.splitlines()]
    assert [False, False, True] == [line["done"] for line in lines]
    assert "stop" == lines[-1]["done_reason"]
