"""One line for each request, and nothing that users write: server/logs.py and log_output.py."""

import io
import logging
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.server.at_the_door import Kind, echo, served
from tests.server.calling import call
from woollama.core.errors import ProviderError
from woollama.server.log_output import open_logging
from woollama.server.logs import RequestLog, request_log
from woollama.server.sections import ServerSettings
from woollama.server.tracebacks import describe_exception

PROMPT = "what-the-user-wrote"
REPLY = "what-the-model-said"
KEY = "sk-secret-key"
LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info req_[0-9a-f]{20} POST /v1/chat/completions 200 "
    r"model=up/m provider=up first=\d+\.\dms total=\d+\.\dms tokens=3\+4\n"
)


async def chat(scope: Scope, receive: Receive, send: Send) -> None:
    """What a route tells the log."""
    await receive()
    log = request_log(scope)
    log.model, log.provider = "up/m", "up"
    log.count(3, 4)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": REPLY.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def failing(error: Exception) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise error

    return app


async def logged(app: ASGIApp, *, server: ServerSettings | None = None, **scope: Any) -> str:
    stream = io.StringIO()
    with open_logging(server if server is not None else ServerSettings(), stream):
        await call(app, method="POST", **scope)
    return stream.getvalue()


def at(path: str) -> dict[str, Any]:
    return {"path": path, "raw_path": path.encode()}


CHAT = at("/v1/chat/completions")


async def test_a_request_is_one_line() -> None:
    line = await logged(chat, **CHAT)
    assert LINE.fullmatch(line), line


async def test_a_request_is_one_json_object() -> None:
    line = await logged(chat, server=ServerSettings(log_format="json"), **CHAT)
    assert 1 == line.count("\n")
    fields = msgspec.json.decode(line)
    assert {"time", "level", "logger", "id", "first_byte_ms", "total_ms"} <= set(fields)
    expected = {
        "method": "POST",
        "path": "/v1/chat/completions",
        "status": 200,
        "model": "up/m",
        "provider": "up",
        "prompt_tokens": 3,
        "completion_tokens": 4,
    }
    assert expected == {key: fields[key] for key in expected}


async def test_ids_are_unique_and_sent_to_the_client() -> None:
    ids = [(await call(chat)).headers["x-request-id"] for _ in range(3)]
    assert 3 == len(set(ids))


async def test_a_failure_is_told_by_its_kind_and_the_peers_id() -> None:
    error = ProviderError(
        f"refused: {PROMPT}", kind="rate_limit", status=429, request_id="peer 1\n"
    )
    line = await logged(failing(error), **CHAT)
    assert " 429 " in line
    assert "error=rate_limit" in line
    assert r"peer='peer\x201\n'" in line
    assert PROMPT not in line


async def test_a_server_error_is_a_warning() -> None:
    level = ServerSettings(log_level="warning")
    assert "" == await logged(chat, server=level, **CHAT)
    line = await logged(failing(ProviderError("x", status=502)), server=level, **CHAT)
    assert " warning req_" in line
    assert " 502 " in line


async def test_probes_are_told_only_when_debugging() -> None:
    for path in ("/healthz", "/readyz", "/"):
        assert "" == await logged(chat, **at(path))
        assert "" != await logged(chat, server=ServerSettings(log_level="debug"), **at(path))


async def test_an_answer_that_was_not_finished_is_said_to_be_cut_and_none_left() -> None:
    async def cut(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    assert (await logged(cut, **CHAT)).endswith(" cut\n")
    line = await logged(failing(ConnectionError("left")), **CHAT)
    assert " - " in line
    assert line.endswith(" left\n")
    fields = RequestLog("req", "GET", "/").fields()
    assert ("left", False) == (fields["outcome"], "status" in fields)


async def test_what_a_client_sends_cannot_break_a_line() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request_log(scope).model = "m\n2026 info forged " + "x" * 500
        await echo(scope, receive, send)

    line = await logged(app, **at("/v1/a b\r\nc"))
    assert 1 == line.count("\n")
    assert r"'/v1/a\x20b\r\nc'" in line
    assert len(line) < 600
    line = await logged(app, server=ServerSettings(log_format="json"), **CHAT)
    assert 1 == line.count("\n")


async def test_an_absolute_target_is_logged_as_its_path() -> None:
    target: dict[str, Any] = {"path": "http://127.0.0.1/v1/x", "raw_path": b"http://127.0.0.1/v1/x"}
    assert " POST /v1/x 200" in await logged(echo, **target)


async def test_token_counts_that_are_no_numbers_are_not_taken() -> None:
    log = RequestLog("req", "GET", "/")
    log.count("3", None)  # pyright: ignore[reportArgumentType] - what a provider may send
    assert "tokens" not in str(log)
    log.count(None, 7)
    assert "tokens=?+7" in str(log)


def speak(logger: logging.Logger, level: int) -> None:
    """What a library might say."""
    logger.setLevel(logging.DEBUG)
    logger.log(level, "sending %s with %s", PROMPT, KEY)
    logger.log(level, f"failed on {PROMPT} {KEY}")  # noqa: G004 - as libraries do
    try:
        raise ValueError(f"{PROMPT} {KEY}")
    except ValueError:
        logger.log(level, "it failed", exc_info=True)


@pytest.mark.parametrize(
    "name",
    ["httpcore2.http11", "hypercorn.error", "httpx2", "asyncio", "mcp.client", "uvicorn.error"],
)
@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR])
def test_p_60_no_library_puts_a_prompt_or_a_key_into_the_log(
    name: str, format: Any, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    logger = logging.getLogger(name)
    before = logger.level
    # A library that ran before in this process may have cut its logger off.
    for each in (logger, logging.getLogger(name.partition(".")[0])):
        monkeypatch.setattr(each, "propagate", True)
        monkeypatch.setattr(each, "disabled", False)
    monkeypatch.setattr(logger, "handlers", [])
    with open_logging(ServerSettings(log_format=format, log_level="debug"), stream):
        speak(logger, level)
    logger.setLevel(before)
    text = stream.getvalue()
    assert PROMPT not in text
    assert KEY not in text
    if level < logging.WARNING:
        assert "" == text
    else:
        assert f"{name} at test_logs:" in text
        assert "sending %s with %s" in text
        assert "the text is withheld, --log-bodies shows it" in text
        assert "in speak" in text, "the traceback's lines of code"
        assert "ValueError" in text


async def test_p_60_bodies_are_in_no_line_of_ours_at_any_level() -> None:
    stream = io.StringIO()
    with open_logging(ServerSettings(log_level="debug"), stream):
        async with served(chat) as door:
            reply = await door.ask(
                "POST", "/v1/chat/completions?key=" + KEY, body=PROMPT.encode(), x_api_key=KEY
            )
            assert REPLY.encode() in reply.body
        async with served(failing(KeyError(PROMPT))) as door:
            await door.ask("POST", "/v1/chat/completions", body=PROMPT.encode(), x_api_key=KEY)
    text = stream.getvalue()
    assert " 500 " in text
    for secret in (PROMPT, REPLY, KEY):
        assert secret not in text


@pytest.mark.parametrize("kind", ["hypercorn", "uvicorn"])
async def test_p_60_log_bodies_is_the_one_switch_and_says_so(kind: Kind) -> None:
    stream = io.StringIO()
    server = ServerSettings(log_bodies=True)
    with open_logging(server, stream):
        first = stream.getvalue()
        async with served(chat, kind=kind, log_bodies=True) as door:
            await door.ask("POST", "/v1/chat/completions", body=PROMPT.encode(), x_api_key=KEY)
    assert "--log-bodies: request and reply bodies are written to this log" in first
    text = stream.getvalue()
    assert f"request body: {PROMPT}" in text
    assert f"reply body: {REPLY}" in text
    assert KEY not in text, "keys are in no log, whatever the switch"


def test_log_bodies_shows_what_libraries_say_too() -> None:
    stream = io.StringIO()
    with open_logging(ServerSettings(log_bodies=True), stream):
        speak(logging.getLogger("httpcore2.http11"), logging.ERROR)
    assert f"ValueError: {PROMPT}" in stream.getvalue()
    assert f"sending {PROMPT}" in stream.getvalue()


async def test_logged_bodies_are_cut_to_size() -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 100_000})

    line = await logged_bodies(app)
    assert 64 * 1024 == line.count("x")


async def logged_bodies(app: ASGIApp) -> str:
    stream = io.StringIO()
    with open_logging(ServerSettings(log_bodies=True), stream):
        async with served(app, log_bodies=True) as door:
            await door.ask()
    return next(line for line in stream.getvalue().splitlines() if "reply body" in line)


def chained() -> BaseException:
    def fail() -> None:
        try:
            raise KeyError(PROMPT)
        except KeyError as error:
            raise RuntimeError(PROMPT) from error

    with pytest.raises(RuntimeError) as caught:
        fail()
    return caught.value


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (chained, ["KeyError", "RuntimeError"]),
        (lambda: ExceptionGroup(PROMPT, [ValueError(PROMPT)]), ["ValueError", "ExceptionGroup"]),
        (lambda: msgspec.ValidationError(PROMPT), ["msgspec.ValidationError"]),
    ],
)
def test_an_exception_is_described_by_types_and_lines_of_code(
    make: Callable[[], BaseException], names: list[str]
) -> None:
    text = describe_exception(make())
    assert PROMPT not in text
    lines = [line for line in text.splitlines() if not line.startswith(" ")]
    assert names == lines


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError(), ValueError()
    one.__cause__, two.__cause__ = two, one
    assert "ValueError\nValueError" == describe_exception(one)


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    stream = io.StringIO()
    with open_logging(ServerSettings(), stream):
        stream.close()
        logging.getLogger("woollama.x").warning("said to nobody")


def test_what_was_before_is_there_again() -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level, logging.getLogger("woollama").level
    with open_logging(ServerSettings(log_level="error"), io.StringIO()):
        assert logging.ERROR == logging.getLogger("woollama").level
    assert before == (root.handlers[:], root.level, logging.getLogger("woollama").level)


async def test_a_refusal_at_the_door_has_its_line() -> None:
    line = await logged(echo, client=("10.0.0.1", 1), **CHAT)
    assert " POST /v1/chat/completions 401 " in line
    assert "error=authentication" in line
