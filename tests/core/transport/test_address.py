"""What a URL says, and the head of a request to it."""

import pytest

from woollama.core.errors import TransportError
from woollama.core.transport.address import address_of
from woollama.core.wire import WireRequest


@pytest.mark.parametrize(
    ("url", "place", "authority", "target"),
    [
        ("http://h/v1", (False, "h", 80), "h", "/v1"),
        ("https://h/v1", (True, "h", 443), "h", "/v1"),
        ("https://h:8443/v1", (True, "h", 8443), "h:8443", "/v1"),
        ("http://H.Test:80", (False, "h.test", 80), "h.test", "/"),
        ("http://[::1]:9/v1?a=1&b", (False, "::1", 9), "[::1]:9", "/v1?a=1&b"),
        ("http://u:p@h:9/v1#part", (False, "h", 9), "h:9", "/v1"),
        ("http://b\u00fccher.test/\u00f6", (False, "xn--bcher-kva.test", 80), None, "/%C3%B6"),
        ("http://h/a b/%20/~x", (False, "h", 80), "h", "/a%20b/%20/~x"),
    ],
)
def test_a_url_is_read(
    url: str, place: tuple[bool, str, int], authority: str | None, target: str
) -> None:
    address = address_of(url)
    assert (place, target) == (address.place, address.target)
    assert (authority or place[1]) == address.authority


def test_a_host_that_no_name_can_be_is_no_address() -> None:
    with pytest.raises(TransportError, match="is no address"):
        address_of("http://\u00fc" + "x" * 70 + "/v1")


def request(**headers: str) -> WireRequest:
    return WireRequest(method="POST", url="http://u:p@h/v1", headers=headers, body=b"{}")


def test_the_callers_headers_win_over_ours() -> None:
    head = address_of("http://u:p@h/v1").head(
        request(Accept="text/event-stream", authorization="x")
    )
    assert (
        b"POST /v1 HTTP/1.1\r\nhost: h\r\nAccept: text/event-stream\r\nauthorization: x\r\n"
        b"accept-encoding: identity\r\nuser-agent: woollama\r\ncontent-length: 2\r\n\r\n"
    ) == head


def test_only_a_request_that_can_have_a_body_says_how_long_it_is() -> None:
    address = address_of("http://h/v1")
    for method, expected in (("GET", False), ("POST", True), ("DELETE", True)):
        head = address.head(WireRequest(method=method, url="http://h/v1"))
        assert expected is (b"content-length: 0\r\n" in head)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", "a\x00b"), ("x", "a\nb"), ("x y", "a"), ("", "a"), ("x\r\ny", "a"), ("x", "\u20ac")],
)
def test_what_no_header_can_hold_is_refused(name: str, value: str) -> None:
    with pytest.raises(TransportError, match="cannot be sent"):
        address_of("http://h/v1").head(request(**{name: value}))


def test_a_refused_key_is_not_shown() -> None:
    with pytest.raises(TransportError) as caught:
        address_of("http://h/v1").head(request(authorization="Bearer sk-secret\n"))
    assert "'authorization'" in caught.value.message
    assert "sk-secret" not in caught.value.message
