"""Data URLs in and out."""

import pytest

from woollama.core.wire.data_urls import data_url, split_data_url


def test_a_data_url_is_its_media_type_and_its_base64() -> None:
    assert split_data_url("data:image/png;base64,iVBORw0=") == ("image/png", "iVBORw0=")


def test_the_scheme_and_the_media_type_are_read_in_any_case() -> None:
    assert split_data_url("DATA:Image/PNG;Base64,Ab=") == ("image/png", "Ab=")


def test_parameters_of_the_media_type_are_left_out() -> None:
    assert split_data_url("data:text/plain;charset=utf-8;base64,QQ==") == ("text/plain", "QQ==")


def test_a_media_type_that_is_not_given_is_empty() -> None:
    assert split_data_url("data:;base64,QQ==") == ("", "QQ==")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "data:",
        "data:image/png",
        "data:image/png;base64",
        "data:image/svg+xml,<svg/>",
        "data:base64,QQ==",
        "data:a;base64;b,QQ==",
        "https://example.org/a.png",
        "file:///etc/passwd",
        "iVBORw0KGgo=",
    ],
)
def test_what_holds_no_base64_is_none(url: str) -> None:
    assert split_data_url(url) is None


def test_a_data_url_is_taken_apart_as_it_was_put_together() -> None:
    assert split_data_url(data_url("image/webp", "UklGRg==")) == ("image/webp", "UklGRg==")
