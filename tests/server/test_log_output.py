"""How lines come to the stream: server/log_output.py."""

import io
import logging

import anyio

from woollama.server.log_output import open_logging
from woollama.server.sections import ServerSettings


class Writes(io.StringIO):
    """A stream that remembers what came together."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def write(self, text: str, /) -> int:
        self.pieces.append(text)
        return super().write(text)


async def test_lines_of_one_round_of_the_loop_are_written_together() -> None:
    stream, log = Writes(), logging.getLogger("woollama.test")
    with open_logging(ServerSettings(), stream):
        log.info("one")
        log.info("two")
        assert [] == stream.pieces
        await anyio.lowlevel.checkpoint()
        assert [2] == [piece.count("\n") for piece in stream.pieces]
        log.info("three")
    assert [2, 1] == [piece.count("\n") for piece in stream.pieces if piece]
    assert ["one", "two", "three"] == [line.split()[-1] for line in lines(stream)]


async def test_a_warning_is_written_at_once_behind_what_was_said_before() -> None:
    stream, log = Writes(), logging.getLogger("woollama.test")
    with open_logging(ServerSettings(), stream):
        log.info("one")
        log.warning("two")
        assert ["one", "two"] == [line.split()[-1] for line in lines(stream)]


def test_without_a_loop_each_line_is_written_at_once() -> None:
    stream, log = Writes(), logging.getLogger("woollama.test")
    with open_logging(ServerSettings(), stream):
        log.info("one")
        log.info("two")
        assert [1, 1] == [piece.count("\n") for piece in stream.pieces]


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()
