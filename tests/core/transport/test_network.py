"""Proxies by the environment, and the words for a failure."""

import pytest

from woollama.core.errors import TransportError
from woollama.core.transport import network
from woollama.core.transport.network import Routes, cut, is_loopback, no_address, proxy_for

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, "https://h.test/v1", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://h.test/v1", "http://p:1"),
        ({"https_proxy": "http://p:1"}, "https://h.test/v1", "http://p:1"),
        ({"HTTPS_PROXY": "https://p:1"}, "https://h.test/v1", "https://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "https://h.test/v1", "http://p:1"),
        ({"HTTPS_PROXY": ""}, "https://h.test/v1", None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://h.test/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://h.test/v1", "http://p:1"),
        ({"ALL_PROXY": "http://a:1", "HTTP_PROXY": "http://p:1"}, "http://h.test", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "h.test"}, "https://h.test/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".test"}, "https://h.test/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "h.test:8"}, "https://h.test:8/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "h.test:8"}, "https://h.test:9/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://h.test/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "other"}, "https://me@h.test", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:9/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://127.1.2.3/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:9/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://localhost:9/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://a.localhost:9/v1", None),
        ({"ALL_PROXY": "socks5://p:1"}, "http://localhost/v1", None),
    ],
)
def test_the_environment_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy == proxy_for(url)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "SOCKS4"])
def test_a_proxy_that_is_not_spoken_is_told(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://user:s3cret@p:1")
    with pytest.raises(TransportError, match=f"a {scheme} proxy") as caught:
        proxy_for("https://h.test/v1")
    assert "s3cret" not in str(caught.value)
    assert "h.test to NO_PROXY" in str(caught.value)


def test_a_route_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = Routes()
    assert None is routes.proxy("https://h.test/v1")
    monkeypatch.setenv("HTTPS_PROXY", "http://p:1")
    assert None is routes.proxy("https://h.test/v1")
    assert "http://p:1" == routes.proxy("https://h.test/v2")


def test_routes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_MOST_ROUTES", 2)
    routes = Routes()
    for n in range(5):
        assert None is routes.proxy(f"https://h{n}.test/v1")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost.evil.test", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_a_host_is_loopback_by_its_name_or_address(host: str, *, expected: bool) -> None:
    assert expected is is_loopback(host)


def test_a_failure_without_words_has_its_name() -> None:
    assert str(cut("http://h/v1", ValueError())).endswith("was complete: ValueError.")


@pytest.mark.parametrize(
    "url", ["http://me:s3cret@h/v1", "http://s3cret@[::1", "s3cret@h", "x://me:s3cret@h/?a=b"]
)
def test_a_failure_names_no_password(url: str) -> None:
    assert "s3cret" not in str(no_address(url))
    assert "s3cret" not in str(cut(url, ConnectionError("gone")))
