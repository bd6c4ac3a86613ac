"""P-60: neither a key nor what is said shows in a `repr`, an error or a log of any level."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

import anyio
import msgspec
import pytest

from tests.core.chat_upstream import DONE, completion, delta, says, streams
from woollama.core import (
    Credential,
    InferenceError,
    ModelRegistry,
    Provider,
    Retries,
    Timeouts,
    Transport,
    complete,
    complete_response,
    complete_stream,
)
from woollama.core.providers import Target
from woollama.core.testing.upstream import Script, serve
from woollama.core.transport.fast import FastTransport
from woollama.core.transport.http import HttpTransport

SECRET = "sk-s3cret-0123456789"
PROMPT = "what-nobody-may-read"
REPLY = "what-nobody-may-hear"
ASKED = [{"role": "user", "content": PROMPT}]


def provider(url: str = "http://h/v1") -> Provider:
    return Provider(
        "x",
        url,
        "WOOLLAMA_TEST_KEY",
        {"token": SECRET},
        key=Credential(env="WOOLLAMA_TEST_KEY"),
        extra_headers={"X-Gateway-Key": SECRET},
    )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", SECRET)


def test_no_public_object_shows_a_secret() -> None:
    one = provider()
    registry = ModelRegistry([one])
    target = registry.resolve("x/m")
    how: Any = {"registry": registry, "api_key": SECRET}
    asking = complete("x/m", ASKED, **how)
    answering = complete_response("x/m", ASKED, **how)
    shown: list[object] = [
        one,
        one.credential,
        registry,
        target,
        asking,
        answering,
        complete_stream("x/m", ASKED, **how),
        Timeouts(),
        Retries(),
        FastTransport(),
        HttpTransport(),
        InferenceError("m"),
    ]
    for value in shown:
        assert SECRET not in f"{value!r}{value}{value:}", type(value)
        assert PROMPT not in f"{value!r}{value}", type(value)
    for waiting in (asking, answering):
        cast("Coroutine[Any, Any, Any]", waiting).close()  # never awaited on purpose


REFUSED: list[dict[str, Any]] = [
    {"base_url": f"http://me:{SECRET}@h/v1"},
    {"extra_headers": {"x": f"{SECRET}\n"}},
    {"extra_body": {"token": SECRET}, "dialect": "nope"},
]


@pytest.mark.parametrize("changes", REFUSED, ids=["address", "header", "dialect"])
def test_a_registry_that_refuses_a_provider_shows_no_secret(changes: dict[str, Any]) -> None:
    with pytest.raises(InferenceError) as caught:
        ModelRegistry([msgspec.structs.replace(provider(), **changes)])
    assert SECRET not in f"{caught.value!r}{caught.value}"


def test_an_authorized_request_shows_its_address_only() -> None:
    target = Target(provider(), "m")
    wire = target.authorize(target.dialect.codec.models_request("http://h/v1"))
    assert SECRET in wire.headers.values()
    assert SECRET not in f"{wire!r}{wire}"


@pytest.mark.parametrize("make", [FastTransport, HttpTransport])
@pytest.mark.parametrize(
    "script",
    [
        says(completion(REPLY)),
        says({"error": {"message": f"no {SECRET}"}}, status=401),
        streams(delta(REPLY), end=False),
        streams(delta(REPLY, finish="stop"), DONE),
    ],
    ids=["a reply", "a refusal", "a cut stream", "a stream"],
)
async def test_no_log_of_any_library_holds_a_key_or_what_is_said(
    caplog: pytest.LogCaptureFixture, make: Callable[[], Transport], script: Script
) -> None:
    transport = make()
    with caplog.at_level(logging.DEBUG), anyio.fail_after(5):
        async with serve(script) as upstream:
            registry = ModelRegistry([provider(upstream.url)])
            stream = complete_stream("x/m", ASKED, registry=registry, transport=transport)
            async with stream:
                try:
                    async for _ in stream:
                        pass
                except InferenceError as error:
                    logging.getLogger("test").exception("failed: %r", error)
        await transport.aclose()
    logged = "\n".join(f"{record.getMessage()} {record.exc_text}" for record in caplog.records)
    for secret in (SECRET, PROMPT, REPLY):
        assert secret not in logged
