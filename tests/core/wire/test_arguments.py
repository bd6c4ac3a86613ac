"""Arguments of tool calls between text and object."""

import msgspec
import pytest

from woollama.core.wire.arguments import arguments_object, arguments_text


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"city":"Oslo"}',
        '{ "a" : [1, 2.50, 123456789012345678901234567890] }',
        '{"a":1,"a":2}',
        '{"é":"\\u00e9"}',
    ],
)
def test_an_object_goes_out_byte_for_byte(text: str) -> None:
    assert text.encode() == bytes(arguments_object(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "oops",
        "[1]",
        '"text"',
        "null",
        "7",
        '{"a":',
        '{"a":1e999}',
        '{"a":"\ud800"}',
        '{"a":' + "[" * 100_000,
    ],
    ids=lambda text: text[:12].encode("ascii", "replace").decode(),
)
def test_c_8_what_is_no_object_is_an_empty_one(text: str) -> None:
    assert b"{}" == bytes(arguments_object(text))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("oops", "oops"),
        ({}, "{}"),
        ({"stadt": "Köln", "n": 1}, '{"stadt":"Köln","n":1}'),
        ([1], "[1]"),
    ],
)
def test_what_a_server_wrote_becomes_text(value: object, text: str) -> None:
    assert text == arguments_text(value)


def test_an_object_fits_into_a_body() -> None:
    body = msgspec.json.encode({"arguments": arguments_object('{"a": 1}')})
    assert b'{"arguments":{"a": 1}}' == body
