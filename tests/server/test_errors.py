"""What a client is told when something goes wrong: server/errors.py."""

import logging

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.server.at_the_door import Kind, served
from tests.server.calling import call
from woollama.core.errors import (
    ProviderError,
    RequestError,
    TransportError,
    UnknownModel,
    WoollamaError,
)
from woollama.server.errors import EXCEPTION_HANDLERS, error_response
from woollama.server.logs import request_log

SECRET = "the-prompt-of-the-user"


def raising(error: BaseException, *, late: bool = False) -> ASGIApp:
    """An application that fails, before its reply begins or in the middle of it."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        if late:
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        raise error

    return app


@pytest.fixture(params=["hypercorn", "uvicorn"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


async def test_one_of_our_errors_is_openais_object_with_its_status() -> None:
    reply = await call(raising(UnknownModel("no model 'x'", param="model", hint="Try 'y'.")))
    assert 404 == reply.status
    expected = {
        "message": "no model 'x' Try 'y'.",
        "type": "invalid_request_error",
        "param": "model",
        "code": None,
    }
    assert expected == reply.error
    assert str(len(reply.body)) == reply.headers["content-length"]


async def test_what_the_peer_said_about_trying_again_is_passed_on() -> None:
    error = ProviderError(
        "slow down",
        kind="rate_limit",
        status=429,
        retry_after=1.2,
        headers={"X-RateLimit-Reset": "9", "content-length": "77", "x-request-id": "peer-1"},
    )
    reply = await call(raising(error))
    assert (429, "rate_limit_error") == (reply.status, reply.error["type"])
    assert "2" == reply.headers["retry-after"]
    assert "9" == reply.headers["x-ratelimit-reset"]
    assert "peer-1" == reply.headers["x-request-id"]
    assert reply.headers["x-woollama-request-id"].startswith("req_")
    assert 1 == reply.raw.lower().count(b"content-length:")


async def test_an_unexpected_exception_is_a_500_that_says_nothing_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reply = await call(raising(KeyError(SECRET)))
    assert (500, "server_error") == (reply.status, reply.error["type"])
    assert "internal_error" == reply.error["code"]
    assert SECRET not in reply.raw.decode()
    assert "Traceback" not in reply.raw.decode()
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    text = record.getMessage()
    assert text.startswith(f"{reply.headers['x-request-id']} failed unexpectedly:")
    assert reply.headers["x-request-id"] in reply.error["message"]
    assert "in app" in text
    assert text.endswith("KeyError")
    assert SECRET not in caplog.text


async def test_a_group_of_one_is_its_member_and_of_more_is_unexpected() -> None:
    one = ExceptionGroup("", [ExceptionGroup("", [RequestError("bad")])])
    assert (400, "bad") == ((reply := await call(raising(one))).status, reply.error["message"])
    two = ExceptionGroup("", [RequestError("bad"), RequestError("worse")])
    assert 500 == (await call(raising(two))).status


@pytest.mark.parametrize("error", [ConnectionError("left"), ClientDisconnect()])
async def test_a_client_that_left_is_told_nothing_and_is_no_fault(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert b"" == (await call(raising(error))).raw
    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_broken_connection_of_our_own_is_a_fault() -> None:
    assert 500 == (await call(raising(ConnectionResetError(104, "reset")))).status


@pytest.mark.parametrize("error", [RequestError("late"), ValueError(SECRET)])
async def test_after_the_reply_has_begun_the_connection_is_closed_unfinished(
    kind: Kind, error: Exception
) -> None:
    async with served(raising(error, late=True), kind=kind) as door:
        reply = await door.ask(connection="keep-alive")
        assert 200 == reply.status
        assert reply.body.endswith(b"data: 1\n\n\r\n"), "no terminating chunk"
        assert 1 == reply.answers


async def test_before_the_reply_the_connection_stays_usable(kind: Kind) -> None:
    async with served(raising(RequestError("bad")), kind=kind) as door:
        head = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n".encode()
        reply = await door.raw(head + b"\r\n" + head + b"Connection: close\r\n\r\n")
        assert 2 == reply.answers


def starlette_app() -> Starlette:
    async def fine(_request: Request) -> Response:
        return PlainTextResponse("fine")

    async def ours(_request: Request) -> Response:
        raise TransportError("down", kind="timeout", status=504)

    async def broken(_request: Request) -> Response:
        raise LookupError(SECRET)

    async def left(_request: Request) -> Response:
        raise ConnectionError("left")

    async def reset(_request: Request) -> Response:
        raise ConnectionResetError(SECRET)

    routes = [
        Route("/fine", fine, methods=["POST"]),
        Route("/ours", ours),
        Route("/broken", broken),
        Route("/left", left),
        Route("/reset", reset),
    ]
    return Starlette(routes=routes, exception_handlers=EXCEPTION_HANDLERS)


async def test_an_unknown_route_is_an_error_object() -> None:
    reply = await call(starlette_app(), path="/v1/nothing", raw_path=b"/v1/nothing")
    assert (404, "unknown_url") == (reply.status, reply.error["code"])
    assert "There is no '/v1/nothing' here; the OpenAI API begins at /v1." == reply.error["message"]


async def test_a_wrong_method_is_an_error_object_that_keeps_allow() -> None:
    reply = await call(starlette_app(), path="/fine", raw_path=b"/fine")
    assert (405, "method_not_allowed") == (reply.status, reply.error["code"])
    assert "POST" == reply.headers["allow"]
    assert "'/fine' does not take GET" in reply.error["message"]


async def test_routes_raise_as_everything_else_does(caplog: pytest.LogCaptureFixture) -> None:
    reply = await call(starlette_app(), path="/ours", raw_path=b"/ours")
    assert (504, "down") == (reply.status, reply.error["message"])
    for path in ("/broken", "/reset"):
        reply = await call(starlette_app(), path=path, raw_path=path.encode())
        assert (500, "internal_error") == (reply.status, reply.error["code"])
        assert SECRET not in reply.raw.decode()
    assert SECRET not in caplog.text
    assert 2 == sum("failed unexpectedly" in record.getMessage() for record in caplog.records)
    assert 499 == (await call(starlette_app(), path="/left", raw_path=b"/left")).status


async def test_any_other_http_exception_keeps_its_words() -> None:
    async def teapot(_request: Request) -> Response:
        raise HTTPException(418, "short and stout")

    app = Starlette(routes=[Route("/v1/models", teapot)], exception_handlers=EXCEPTION_HANDLERS)
    reply = await call(app)
    assert (418, "short and stout") == (reply.status, reply.error["message"])


def test_an_error_response_is_the_same_in_starlettes_words() -> None:
    error = WoollamaError("busy", kind="overloaded", status=503, retry_after=5)
    response = error_response(error)
    assert (503, "5") == (response.status_code, response.headers["retry-after"])
    assert "application/json" == response.headers["content-type"]
    assert "busy" == msgspec.json.decode(response.body)["error"]["message"]


async def test_a_lifespan_passes_the_door() -> None:
    seen: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    await call(app, type="lifespan")
    assert ["lifespan"] == seen


async def test_without_the_logging_layer_a_route_still_has_a_log_to_fill() -> None:
    scope = {"type": "http", "method": "GET", "path": "/"}
    log = request_log(scope)
    log.model = "m"
    assert log is request_log(scope)
