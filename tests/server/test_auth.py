"""Who may ask: server/auth.py, behind real servers."""

from pathlib import Path
from typing import Any

import pytest

from tests.server.at_the_door import Kind, served
from tests.server.calling import call

HOSTS = ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:9665", "[::1]", "[::1]:80"]
FOREIGN = [
    "evil.example",
    "evil.example:9665",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "[fe80::1]",
    "user@127.0.0.1",
]


@pytest.fixture(params=["hypercorn", "uvicorn"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


async def test_h01_a_host_that_is_not_ours_is_refused(kind: Kind) -> None:
    async with served(kind=kind) as door:
        for host in HOSTS:
            assert 200 == (await door.ask(host=host)).status, host
        for host in FOREIGN:
            reply = await door.ask("POST", "/v1/chat/completions", host=host, body=b"{}")
            assert 403 == reply.status, host
            assert "permission_error" == reply.error["type"]
            assert "hosts" in reply.error["message"]
            assert reply.headers["x-request-id"].startswith("req_")


async def test_configured_hosts_and_the_bound_one_are_ours() -> None:
    async with served(hosts=("LLM.lan", "10.0.0.9"), pretend="box.lan") as door:
        for host in ("llm.lan", "llm.lan.:80", "10.0.0.9:1", "box.lan", "127.0.0.1"):
            assert 200 == (await door.ask(host=host)).status, host
        for host in ("other.lan", "10.0.0.8"):
            assert 403 == (await door.ask(host=host)).status, host


async def test_when_every_address_is_listened_on_any_address_is_ours_and_no_name() -> None:
    async with served(token="t", pretend="0.0.0.0") as door:
        for host, status in (("192.168.1.5:80", 200), ("[fe80::1]", 200), ("evil.example", 403)):
            assert status == (await door.ask(host=host, x_api_key="t")).status, host


async def test_a_host_header_is_needed_once(kind: Kind) -> None:
    async with served(kind=kind) as door:
        assert 400 == (await door.raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")).status
        assert 200 == (await door.raw(b"GET / HTTP/1.0\r\n\r\n")).status
        twice = b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        assert 400 == (await door.raw(twice)).status


async def test_h02_an_origin_that_is_not_ours_is_refused_for_simple_posts_too(kind: Kind) -> None:
    async with served(kind=kind) as door:
        for origin in ("https://evil.example", "null", "http://localhost.evil.example", "file://"):
            reply = await door.ask(
                "POST", "/v1/x", origin=origin, content_type="text/plain", body=b"{}"
            )
            assert 403 == reply.status, origin
            assert "origins" in reply.error["message"]
            assert "access-control-allow-origin" not in reply.headers
        for origin in ("http://127.0.0.1:1", "http://localhost:5173", "https://[::1]"):
            reply = await door.ask("POST", "/v1/x", origin=origin, body=b"{}")
            assert 200 == reply.status, origin
            assert "access-control-allow-origin" not in reply.headers


async def test_a_page_of_the_same_host_is_no_stranger() -> None:
    async with served(token="t", hosts=("box.lan",), pretend="0.0.0.0") as door:
        same = await door.ask(host="box.lan:80", origin="http://box.lan:80", x_api_key="t")
        other = await door.ask(host="box.lan:80", origin="http://box.lan:81", x_api_key="t")
        assert (200, 403) == (same.status, other.status)


async def test_configured_origins_get_cors_headers_with_every_answer(kind: Kind) -> None:
    origin = "https://app.example"
    async with served(kind=kind, token="t", origins=(origin,)) as door:
        for key, status in (("t", 200), ("wrong", 401)):
            reply = await door.ask(origin=origin, x_api_key=key)
            assert status == reply.status
            assert origin == reply.headers["access-control-allow-origin"]
            assert "x-request-id" in reply.headers["access-control-expose-headers"]
            assert "origin" == reply.headers["vary"]
        assert "access-control-allow-origin" not in (await door.ask(x_api_key="t")).headers
        assert 403 == (await door.ask(origin="https://b.example", x_api_key="t")).status


async def test_a_preflight_of_a_configured_origin_is_answered_before_the_token(
    kind: Kind,
) -> None:
    origin = "https://app.example"
    async with served(kind=kind, token="t", origins=(origin,)) as door:
        reply = await door.ask(
            "OPTIONS",
            "/v1/chat/completions",
            origin=origin,
            access_control_request_method="POST",
            access_control_request_headers="authorization, content-type",
            access_control_request_private_network="true",
        )
        assert (204, b"") == (reply.status, reply.body)
        assert origin == reply.headers["access-control-allow-origin"]
        assert "authorization, content-type" == reply.headers["access-control-allow-headers"]
        assert "POST" in reply.headers["access-control-allow-methods"]
        assert "true" == reply.headers["access-control-allow-private-network"]


async def test_no_other_preflight_is_answered() -> None:
    async with served(token="t", origins=("https://app.example",)) as door:
        asked: dict[str, Any] = {"access_control_request_method": "POST"}
        foreign = await door.ask("OPTIONS", "/v1/x", origin="https://b.example", **asked)
        local = await door.ask("OPTIONS", "/v1/x", origin="http://localhost:1", **asked)
        plain = await door.ask("OPTIONS", "/v1/x", origin="https://app.example")
        assert (403, 401, 401) == (foreign.status, local.status, plain.status)
        assert "access-control-allow-methods" not in local.headers
    async with served(origins=("https://app.example",)) as door:
        rebound = await door.ask(
            "OPTIONS", "/v1/x", host="evil.example", origin="https://app.example", **asked
        )
        assert 403 == rebound.status


async def test_all_origins_can_be_let_in() -> None:
    async with served(origins=("*",)) as door:
        for origin in ("https://any.example", "null"):
            assert origin == (await door.ask(origin=origin)).headers["access-control-allow-origin"]


async def test_with_a_token_every_tcp_client_shows_it(kind: Kind) -> None:
    async with served(kind=kind, token="s3cret") as door:
        good: tuple[dict[str, Any], ...] = (
            {"authorization": "Bearer s3cret"},
            {"authorization": "bearer s3cret"},
            {"authorization": "BEARER  s3cret "},
            {"x_api_key": "s3cret"},
            {"x_api_key": "s3cret", "authorization": "Bearer other"},
        )
        bad: tuple[dict[str, Any], ...] = (
            {},
            {"authorization": "Bearer S3CRET"},
            {"authorization": "Bearer"},
            {"authorization": "Bearer s3cret2"},
            {"authorization": "Basic s3cret"},
            {"authorization": "s3cret"},
            {"x_api_key": ""},
            {"x_api_key": "Bearer s3cret"},
        )
        for headers in good:
            assert 200 == (await door.ask("GET", "/v1/models", **headers)).status, headers
        for headers in bad:
            reply = await door.ask("GET", "/v1/models", **headers)
            assert 401 == reply.status, headers
            assert "Bearer" == reply.headers["www-authenticate"]
            assert "authentication_error" == reply.error["type"]
            assert "invalid_api_key" == reply.error["code"]
            assert "s3cret" not in reply.raw.decode()


async def test_probes_need_no_token_and_have_the_other_rules(kind: Kind) -> None:
    async with served(kind=kind, token="t") as door:
        for method, path in (("GET", "/healthz"), ("GET", "/readyz"), ("HEAD", "/")):
            assert 200 == (await door.ask(method, path)).status, path
            assert 403 == (await door.ask(method, path, host="evil.example")).status
        for method, path in (("GET", "/"), ("POST", "/healthz"), ("GET", "/healthz/x")):
            assert 401 == (await door.ask(method, path)).status, path


async def test_the_unix_socket_is_asked_for_nothing(kind: Kind, tmp_path: Path) -> None:
    async with served(kind=kind, token="t", uds=tmp_path / "s") as door:
        reply = await door.ask("GET", "/v1/models", unix=True, host="any", origin="https://x.y")
        assert (200, b"GET /v1/models 0") == (reply.status, reply.body)
        assert 401 == (await door.ask("GET", "/v1/models")).status


@pytest.mark.parametrize("client", [None, ("10.0.0.1", 1), ("", 0)])
async def test_a_missing_peer_address_is_no_unix_socket(client: tuple[str, int] | None) -> None:
    """Only the runner's own mark says so; a peer that has gone again has no address either."""
    assert 401 == (await call(client=client)).status
    assert 401 == (await call(client=client, state={})).status
    assert 200 == (await call(client=client, state={"woollama.unix": True})).status
    assert 200 == (await call(client=("::ffff:127.0.0.1", 1))).status


async def test_h11_a_declared_length_over_the_limit_is_refused_unread(kind: Kind) -> None:
    head = (
        b"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 5368709120\r\n\r\n"
    )
    async with served(kind=kind) as door:
        reply = await door.raw(head + b'{"model":"up/m","messages":[')
        assert 413 == reply.status
        assert "close" == reply.headers["connection"]
        assert "request_too_large" == reply.error["code"]
        assert "33554432 bytes" in reply.error["message"]
    async with served(kind=kind, body_limit_bytes=5) as door:
        assert 200 == (await door.ask("POST", "/x", body=b"12345")).status
        assert 413 == (await door.ask("POST", "/x", body=b"123456")).status
    async with served(kind=kind, body_limit_bytes=5, token="t") as door:
        assert 401 == (await door.ask("POST", "/x", body=b"123456")).status


async def test_who_asks_for_a_web_socket_gets_the_answer_to_a_plain_request(kind: Kind) -> None:
    asked: dict[str, Any] = {
        "connection": "Upgrade, close",
        "upgrade": "websocket",
        "sec_websocket_version": "13",
        "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    async with served(kind=kind) as door:
        assert 200 == (await door.ask(**asked)).status
        assert 403 == (await door.ask(origin="https://evil.example", **asked)).status


async def test_a_web_socket_of_another_server_is_closed() -> None:
    assert b"" == (await call(type="websocket", scheme="ws")).raw
