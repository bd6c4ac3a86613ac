"""The stream of ``/chat``: P-43, and the faults that a client of fabric must survive."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.server.fabric.transcripts import TRANSCRIPTS, parts
from woollama.core.canonical import Delta, Finish, Start, TextDelta, Usage, UsageDelta
from woollama.core.errors import (
    ProviderError,
    ReplyError,
    RequestError,
    TruncatedReply,
    WoollamaError,
)
from woollama.server.fabric.stream import ChatDecoder

START = Start("1", None, 7)


def decoder() -> ChatDecoder:
    return ChatDecoder("p", new_id=lambda: "1", now=lambda: 7.9)


def body_of(name: str) -> bytes:
    return b"".join(parts(TRANSCRIPTS[name]["answer"].encode())[2])


def frames(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def content(text: str) -> dict[str, Any]:
    return {"type": "content", "format": "markdown", "content": text}


COMPLETE = {"type": "complete", "format": "plain"}


def read(*chunks: bytes) -> tuple[list[Delta], WoollamaError | None]:
    """The deltas of an answer, and what ended it early."""
    reading = decoder()
    found: list[Delta] = []
    try:
        for chunk in chunks:
            found.extend(reading.feed(chunk))
            if reading.done:
                break
        found.extend(reading.finish())
    except WoollamaError as error:
        return found, error
    return found, None


def test_a_good_answer_is_its_texts_its_usage_and_an_end() -> None:
    usage = Usage(prompt_tokens=12, completion_tokens=3, total_tokens=15)
    expected = [
        START,
        TextDelta("Hello"),
        TextDelta(" <world>\n"),
        UsageDelta(usage),
        Finish("stop"),
    ]
    assert (expected, None) == read(body_of("T8"))


def test_an_error_behind_text_comes_after_the_text() -> None:
    """T9: it is inside a 200, and ``complete`` follows it."""
    found, error = read(body_of("T9"))
    assert [START, TextDelta("partial ")] == found
    assert isinstance(error, ProviderError)
    assert ("fabric: upstream exploded", "Error: upstream exploded") == (
        error.message,
        error.payload,
    )


def test_p_43_a_missing_variable_in_a_200_is_the_callers_fault() -> None:
    """T10."""
    found, error = read(body_of("T10"))
    assert [] == found
    assert isinstance(error, RequestError)
    assert (400, "variables.lang_code") == (error.status, error.param)
    assert "The pattern 'p' needs a value for 'lang_code'." == error.message


def test_no_prompt_is_no_answer() -> None:
    """T12."""
    assert isinstance(read(body_of("T12"))[1], TruncatedReply)


def test_an_old_fabric_answers_in_one_piece() -> None:
    old = frames(content("Hello <world>\n"), {**COMPLETE, "content": ""})
    assert ([START, TextDelta("Hello <world>\n"), Finish("stop")], None) == read(old)


def test_complete_alone_is_no_success() -> None:
    """Up to v1.4.448 an error is kept silent."""
    for body in (frames(COMPLETE), frames({"type": "content", "format": "markdown"}, COMPLETE)):
        found, error = read(body)
        assert [] == found
        assert isinstance(error, ReplyError)
        assert "ended without an answer" in error.message


def test_a_stream_without_complete_was_cut() -> None:
    found, error = read(frames(content("Hello")))
    assert [START, TextDelta("Hello")] == found
    assert isinstance(error, TruncatedReply)


def test_a_delta_without_content_and_unknown_types_are_skipped() -> None:
    body = frames({"type": "content"}, {"type": "novelty", "content": "?"}, content("x"), COMPLETE)
    assert ([START, TextDelta("x"), Finish("stop")], None) == read(body)


def test_a_last_frame_without_its_blank_line_counts() -> None:
    body = frames(content("x"), COMPLETE)
    assert ([START, TextDelta("x"), Finish("stop")], None) == read(body.removesuffix(b"\n\n"))
    found, error = read(frames(content("x")).removesuffix(b"\n\n"))
    assert [] == found
    assert isinstance(error, TruncatedReply)


def test_the_last_of_several_usages_counts() -> None:
    first, second = ({"type": "usage", "usage": {"input_tokens": n}} for n in (1, 2))
    found, _ = read(frames(content("x"), first, second, COMPLETE))
    assert UsageDelta(Usage(prompt_tokens=2)) == found[-2]


def test_what_follows_the_end_does_not_count() -> None:
    body = frames(content("x"), COMPLETE, content("y"), {"type": "error", "content": "Error: z"})
    assert ([START, TextDelta("x"), Finish("stop")], None) == read(body)


def test_a_line_of_a_mebibyte_is_one_delta() -> None:
    text = "x" * 1024 * 1024
    body = frames(content(text), COMPLETE)
    chunks = [body[at : at + 4096] for at in range(0, len(body), 4096)]
    assert ([START, TextDelta(text), Finish("stop")], None) == read(*chunks)


@pytest.mark.parametrize("body", [b"<html>It works!</html>", b"{}", b"data: {not json}\n\n"])
def test_what_is_no_stream_of_fabrics_is_told(body: bytes) -> None:
    assert isinstance(read(body)[1], ReplyError)


def test_the_content_type_is_not_looked_at() -> None:
    """It is ``text/readystream`` in most versions: nothing here asks for it."""
    source = Path(__file__).parents[3] / "packages/woollama-server/src/woollama/server/fabric"
    assert "event-stream" not in (source / "stream.py").read_text()


ANSWERS = [body_of(name) for name in ("T8", "T9", "T10", "T12")]


@settings(deadline=None)
@given(st.sampled_from(ANSWERS), st.lists(st.integers(0, 400), max_size=8))
def test_any_cut_of_the_bytes_gives_the_same(body: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    chunks = [body[a:b] for a, b in pairwise(places)]
    found, error = read(*chunks)
    whole, expected = read(body)
    assert whole == found
    assert type(expected) is type(error)
    assert str(expected) == str(error)
