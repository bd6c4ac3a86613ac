"""`complete` and its siblings: every row of the core API, sections 1, 2, 6 and 7."""

import contextlib
import gc
import inspect
import json
import pickle
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

import woollama.core
from tests.core.chat_upstream import (
    DONE,
    HI,
    STREAM,
    body_of,
    completion,
    delta,
    event,
    says,
    streams,
)
from woollama.core import (
    DeltaStream,
    InferenceError,
    ModelRegistry,
    ModelSettings,
    Provider,
    Retries,
    Timeouts,
    complete,
    complete_response,
    complete_stream,
    complete_sync,
    provider_names,
)
from woollama.core.errors import (
    ProviderError,
    ReplyError,
    RequestError,
    TransportError,
    TruncatedReply,
)
from woollama.core.testing.fake import FakeTransport, say
from woollama.core.testing.fakes.ollama import OllamaFake
from woollama.core.testing.upstream import Exchange, chunked, head, serve, serve_in_thread, whole

SECRET = "sk-s3cret-0123456789"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ModelRegistry.builtin({}).all().values():
        if provider.api_key_env:
            monkeypatch.delenv(provider.api_key_env, raising=False)
    monkeypatch.delenv("WOOLLAMA_OLLAMA_URL", raising=False)


async def ask(script: Any, model: str = "openai/m", **how: Any) -> str:
    with anyio.fail_after(5):
        async with serve(script) as upstream:
            given: dict[str, Any] = {"api_key": "k", "base_url": upstream.url, **how}
            return await complete(model, HI, **given)


async def fails(script: Any, **how: Any) -> InferenceError:
    with pytest.raises(InferenceError) as caught:
        await ask(script, **how)
    return caught.value


def fails_on_the_call(*arguments: Any, **how: Any) -> InferenceError:
    """What the call itself raises, before anything is awaited, on every way in."""
    found: list[InferenceError] = []
    for function in (complete, complete_response, complete_stream, complete_sync):
        with pytest.raises(InferenceError) as caught:
            function(*arguments, **how)
        found.append(caught.value)
    assert 1 == len({str(error) for error in found})
    return found[0]


def test_the_signature_is_the_one_that_callers_know() -> None:
    for function in (complete, complete_sync, complete_stream, complete_response):
        parameters = inspect.signature(function).parameters
        assert ["model", "messages"] == list(parameters)[:2]
        known = ("options", "params", "api_key", "base_url")
        assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in known)
        assert all(parameters[name].default is None for name in known)


async def test_the_text_of_a_reply_is_returned() -> None:
    assert "Paris" == await ask(says())


async def test_the_request_has_the_headers_that_servers_know() -> None:
    async with serve(says()) as upstream:
        await complete("openai/m", HI, api_key=SECRET, base_url=upstream.url)
        (got,) = upstream.requests
    assert ("application/json", "*/*", f"Bearer {SECRET}") == (
        got.headers["content-type"],
        got.headers["accept"],
        got.headers["authorization"],
    )


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1//"])
async def test_the_address_loses_its_last_slash(end: str) -> None:
    async with serve(says()) as upstream:
        await complete("openai/m", HI, api_key="k", base_url=upstream.origin + end)
        assert "/v1/chat/completions" == upstream.requests[0].path


async def test_the_model_is_split_at_the_first_slash() -> None:
    async with serve(says()) as upstream:
        await complete("openai/a/b:c", HI, api_key="k", base_url=upstream.url)
        assert "a/b:c" == body_of(upstream.exchanges[0])["model"]


async def test_the_body_is_model_and_messages_and_what_was_given_and_nothing_else() -> None:
    messages = [{"role": "user", "content": "hi", "name": "me"}]
    params = {"temperature": 0.2, "user": None, "logit_bias": {"1": 2}}
    async with serve(says()) as upstream:
        await complete("groq/m", messages, params=params, api_key="k", base_url=upstream.url)
        got = body_of(upstream.exchanges[0])
    expected = {"model": "m", "messages": messages, "temperature": 0.2, "logit_bias": {"1": 2}}
    assert expected == got


async def test_lackpys_call_puts_params_at_the_top_and_adds_nothing() -> None:
    async with serve(says()) as upstream:
        text = await complete(
            "groq/m",
            HI,
            options=None,
            params={"temperature": 0.6},
            api_key="k",
            base_url=upstream.url,
        )
        got = body_of(upstream.exchanges[0])
    assert ("Paris", {"model": "m", "messages": HI, "temperature": 0.6}) == (text, got)


async def test_params_may_replace_any_field() -> None:
    other = [{"role": "user", "content": "other"}]
    params = {"model": "x", "messages": other, "stream": False}
    async with serve(says()) as upstream:
        await complete("openai/m", HI, params=params, api_key="k", base_url=upstream.url)
        got = body_of(upstream.exchanges[0])
    assert {"model": "x", "messages": other} == got


async def test_messages_may_be_any_iterable() -> None:
    async with serve(says()) as upstream:
        messages = (message for message in HI)
        await complete("openai/m", messages, api_key="k", base_url=upstream.url)
        assert HI == body_of(upstream.exchanges[0])["messages"]


async def test_an_api_key_is_sent_even_where_none_is_needed() -> None:
    fake = OllamaFake([say("hi")])
    await complete("ollama/m", HI, api_key="k", transport=FakeTransport(fake))
    assert "Bearer k" == fake.requests[0].headers["authorization"]


async def test_an_empty_api_key_is_none() -> None:
    fake = OllamaFake([say("hi")])
    await complete("ollama/m", HI, api_key="", transport=FakeTransport(fake))
    assert "authorization" not in fake.requests[0].headers


async def test_the_key_comes_from_its_variable_at_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    async with serve(says()) as upstream:
        await complete("groq/m", HI, base_url=upstream.url)
        assert f"Bearer {SECRET}" == upstream.requests[0].headers["authorization"]


@pytest.mark.parametrize("stream", [False, True])
async def test_ru_13_ollama_is_asked_natively_with_options(*, stream: bool) -> None:
    fake = OllamaFake([say("hello you")])
    how: Any = {
        "options": {"num_ctx": 4096},
        "params": {"temperature": 0.2, "max_tokens": 9},
        "transport": FakeTransport(fake),
    }
    if stream:
        text = "".join([piece async for piece in complete_stream("ollama/q", HI, **how)])
    else:
        text = await complete("ollama/q", HI, **how)
    (got,) = fake.requests
    options = {"num_ctx": 4096, "temperature": 0.2, "num_predict": 9}
    assert ("hello you", "/api/chat", options, stream) == (
        text,
        got.path,
        got.json()["options"],
        got.json()["stream"],
    )


async def test_ru_18_options_are_refused_elsewhere() -> None:
    error = await fails(says(), options={"num_ctx": 1})
    assert (400, "options", "unsupported_parameter") == (error.status, error.param, error.kind)


async def test_options_none_puts_nothing_on_the_wire() -> None:
    async with serve(says()) as upstream:
        await complete("openai/m", HI, options=None, api_key="k", base_url=upstream.url)
        assert "options" not in body_of(upstream.exchanges[0])


NO_CHOICES: list[Any] = []


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (NO_CHOICES, ""),
        ([{"message": {"content": None}}], ""),
        ([{"message": {"content": ""}}], ""),
        ([{"message": {"content": None, "refusal": "no"}}], ""),
        ([{"message": {"tool_calls": [{"id": "1", "function": {"name": "f"}}]}}], ""),
        ([{"index": 0}], ""),
        (
            [
                {
                    "message": {
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
                    }
                }
            ],
            "ab",
        ),
    ],
)
async def test_a_reply_without_text_is_an_empty_answer(choices: Any, text: str) -> None:
    assert text == await ask(says(completion(choices=choices)))


async def test_a_reply_without_choices_is_an_error_without_payload() -> None:
    error = await fails(says({"id": "x", "object": "y"}))
    assert (502, "server_error", None) == (error.status, error.type, error.payload)
    assert "choices" in error.message


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        ({"error": {"message": "no", "code": "c"}}, {"error": {"message": "no", "code": "c"}}),
        ({"detail": "no"}, {"detail": "no"}),
        (b"<html>no</html>", "<html>no</html>"),
    ],
)
@pytest.mark.parametrize("status", [400, 401, 404, 418, 429, 500, 503])
async def test_a_refusal_keeps_the_providers_status_and_payload(
    status: int, body: Any, payload: Any
) -> None:
    error = await fails(says(body, status=status))
    assert isinstance(error, ProviderError)
    assert (status, status, payload) == (error.status, error.peer_status, error.payload)


async def test_a_refusal_carries_what_the_caller_needs_to_ask_again() -> None:
    headers = {
        "Retry-After": "7",
        "X-Request-Id": "r-1",
        "X-RateLimit-Remaining-Requests": "0",
        "Set-Cookie": "a=b",
    }
    error = await fails(says({"error": {"message": "slow down"}}, status=429, headers=headers))
    assert ("rate_limit", 7.0, "r-1", True) == (
        error.kind,
        error.retry_after,
        error.request_id,
        error.retryable,
    )
    assert {
        "retry-after": "7",
        "x-request-id": "r-1",
        "x-ratelimit-remaining-requests": "0",
    } == error.headers


async def test_an_unreachable_provider_is_named() -> None:
    with pytest.raises(TransportError) as caught:
        await complete("openai/m", HI, api_key="k", base_url="http://127.0.0.1:1/v1")
    error = caught.value
    assert (502, "connect", None) == (error.status, error.kind, error.payload)
    assert error.message.startswith("Provider 'openai': http://127.0.0.1:1 cannot be reached")
    assert error.message == error.args[0]


async def test_a_time_limit_is_told() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    error = await fails(script, timeouts=Timeouts(first_byte=0.05))
    assert ("timeout", 504) == (error.kind, error.status)
    assert error.message.startswith("Provider 'openai': ")


@pytest.mark.parametrize("body", [b"<html>", b'{"choices": [', b"", b"\xff"])
async def test_a_body_that_is_not_understood_is_an_error(body: bytes) -> None:
    error = await fails(says(body))
    assert isinstance(error, ReplyError)
    assert (502, "server_error") == (error.status, error.type)


async def test_an_error_object_in_a_200_is_an_error() -> None:
    error = await fails(
        says({"error": {"message": "no", "type": "t"}}, headers={"x-request-id": "r"})
    )
    assert isinstance(error, ProviderError)
    assert ("no", "t", "r") == (error.message, error.type, error.request_id)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_refused_and_the_key_goes_nowhere(status: int) -> None:
    async with serve(says()) as elsewhere:
        headers = {"location": f"{elsewhere.url}/chat/completions"}
        error = await fails(says(b"", status=status, headers=headers))
        assert [] == elsewhere.requests
    assert ("redirect", 502, status, False) == (
        error.kind,
        error.status,
        error.peer_status,
        error.retryable,
    )
    assert elsewhere.url in error.message


def everything(error: BaseException | None) -> str:
    """All that a log may print of an error and of those behind it."""
    shown = ""
    while error is not None:
        shown += f"{error!r}{error}{vars(error)}"
        error = error.__cause__ or error.__context__
    return shown


ECHO = {"error": {"message": f"Bad key {SECRET}.", "code": SECRET, "x": [{"y": f"<{SECRET}>"}]}}


@pytest.mark.parametrize(
    "script",
    [
        says(ECHO, status=401, headers={"x-request-id": SECRET}),
        says(f"bad key {SECRET}".encode(), status=401),
        says(ECHO),
        says(f"<html>{SECRET}".encode()),
        streams(event(ECHO)),
        says(b"", status=307, headers={"location": f"http://h/?key={SECRET}"}),
    ],
    ids=["a refusal", "text", "a 200", "a page", "a stream", "a redirect"],
)
async def test_a_key_that_the_provider_echoes_goes_no_further(script: Any) -> None:
    error = await fails(script, api_key=SECRET)
    assert SECRET not in everything(error)
    if error.payload is not None:
        assert "***" in json.dumps(error.payload)


async def test_a_secret_header_that_the_provider_echoes_goes_no_further() -> None:
    async with serve(says({"error": f"who is {SECRET}?"}, status=403)) as upstream:
        provider = Provider("x", upstream.url, extra_headers={"X-Gateway-Token": SECRET})
        with pytest.raises(ProviderError, match=r"who is \*\*\*\?") as caught:
            await complete("x/m", HI, registry=ModelRegistry([provider]))
    assert SECRET not in everything(caught.value)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nope/m", "known providers are ollama, anthropic, openai, groq, together, openrouter"),
        ("opnai/m", "Did you mean 'openai'?"),
        ("openai", "names a provider and no model"),
        ("openai/", "names a provider and no model"),
        ("", "known providers are"),
        (None, "must be a string"),
        (7, "must be a string"),
    ],
)
def test_ru_32_a_model_that_cannot_be_asked_is_refused_by_the_call(model: Any, words: str) -> None:
    error = fails_on_the_call(model, HI, api_key="k")
    assert (400, "invalid_request_error", "invalid_request", "model") == (
        error.status,
        error.type,
        error.kind,
        error.param,
    )
    assert words in str(error)


@pytest.mark.parametrize("key", [None, "", " "])
def test_a_missing_key_is_named_by_the_call(key: str | None) -> None:
    error = fails_on_the_call("anthropic/m", HI, api_key=key)
    assert (400, "invalid_request_error") == (error.status, error.type)
    assert "ANTHROPIC_API_KEY" in str(error)


@pytest.mark.parametrize(
    ("messages", "how", "param"),
    [
        ("hi", {}, "messages"),
        (b"hi", {}, "messages"),
        (None, {}, "messages"),
        (7, {}, "messages"),
        ({"role": "user", "content": "hi"}, {}, "messages"),
        ([7], {}, "messages[0]"),
        ([{"role": "user"}], {}, "messages[0].content"),
        ([{"content": "hi"}], {}, "messages[0].role"),
        (HI, {"params": [1]}, "params"),
        (HI, {"params": {"temperature": "hot"}}, "temperature"),
        (HI, {"params": {"tools": "x"}}, "tools"),
        (HI, {"params": {"model": 7}}, "model"),
        (HI, {"params": {"stream": []}}, "stream"),
        (HI, {"options": "x"}, "options"),
    ],
)
def test_bad_input_is_refused_by_the_call(
    messages: Any, how: Mapping[str, Any], param: str
) -> None:
    error = fails_on_the_call("openai/m", messages, api_key="k", **how)
    assert isinstance(error, RequestError)
    assert (400, param) == (error.status, error.param)


@pytest.mark.parametrize("base_url", ["h:1", "http://", "http://me:s3cret@h/v1"])
def test_an_address_that_cannot_be_used_is_refused_by_the_call(base_url: str) -> None:
    error = fails_on_the_call("openai/m", HI, api_key="k", base_url=base_url)
    assert 400 == error.status
    assert "s3cret" not in everything(error)


def test_a_key_that_no_header_can_carry_is_refused_by_the_call() -> None:
    error = fails_on_the_call("openai/m", HI, api_key=f"{SECRET}\nx: y")
    assert SECRET not in everything(error)


@pytest.mark.parametrize(
    ("function", "stream"), [(complete, True), (complete_response, True), (complete_stream, False)]
)
def test_streaming_is_chosen_by_the_function(function: Any, *, stream: bool) -> None:
    with pytest.raises(RequestError, match="complete_stream streams, the others do not"):
        function("openai/m", HI, params={"stream": stream}, api_key="k")


async def test_a_whole_reply_is_a_chat_completion() -> None:
    async with serve(says()) as upstream:
        reply = await complete_response("openai/m", HI, api_key="k", base_url=upstream.url)
    assert {
        **completion(),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Paris"},
                "finish_reason": "stop",
                "native_finish_reason": "stop",
            }
        ],
    } == reply


async def test_a_registry_brings_other_providers() -> None:
    async with serve(says()) as upstream:
        own = ModelSettings(temperature=0)
        provider = Provider("mine", upstream.url, model_settings={"m": own})
        assert "Paris" == await complete("mine/m", HI, registry=ModelRegistry([provider]))
        (exchange,) = upstream.exchanges
    assert {"model": "m", "messages": HI, "temperature": 0} == body_of(exchange)
    assert "authorization" not in exchange.request.headers


async def test_an_omitted_registry_is_the_built_in_providers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serve(OllamaFake([say("hi")])) as upstream:
        monkeypatch.setenv("WOOLLAMA_OLLAMA_URL", upstream.origin)
        assert "hi" == await complete("ollama/m", HI)
        assert "/api/chat" == upstream.requests[0].path


async def test_retries_ask_again_before_the_first_byte() -> None:
    async def script(exchange: Exchange) -> None:
        busy = len(upstream.requests) < 3
        await exchange.send(whole(json.dumps(completion()).encode(), status=503 if busy else 200))

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            how: Any = {"api_key": "k", "base_url": upstream.url}
            with pytest.raises(ProviderError):
                await complete("openai/m", HI, **how)
            assert 1 == len(upstream.requests)
            again = Retries(attempts=3, first_wait_s=0)
            assert "Paris" == await complete("openai/m", HI, retries=again, **how)
            assert 3 == len(upstream.requests)


async def test_p_5_cancelling_closes_the_upstream_request() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.gone.wait()

    async def call() -> None:
        await complete("openai/m", HI, api_key="k", base_url=upstream.url)

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await upstream.wait_for(1)
                tasks.cancel_scope.cancel()
            await upstream.connections[0].gone.wait()


GOOD_STREAM = (delta("Par"), delta(""), delta("is"), delta(finish="stop"), DONE)


async def pieces(script: Any, **how: Any) -> tuple[list[str], InferenceError | None]:
    """What a stream yields, and the error it ends with."""
    found: list[str] = []
    with anyio.fail_after(5):
        async with serve(script) as upstream:
            stream = complete_stream("openai/m", HI, api_key="k", base_url=upstream.url, **how)
            try:
                async for piece in stream:
                    found += (piece,)
            except InferenceError as error:
                return found, error
    return found, None


async def test_a_stream_yields_each_text_that_is_not_empty() -> None:
    assert (["Par", "is"], None) == await pieces(streams(*GOOD_STREAM))


async def test_a_stream_is_asked_for_as_one() -> None:
    async with serve(streams(*GOOD_STREAM)) as upstream:
        stream = complete_stream(
            "openai/m", HI, params={"stream": True}, api_key="k", base_url=upstream.url
        )
        assert "Paris" == "".join([piece async for piece in stream])
        got = body_of(upstream.exchanges[0])
    assert (True, {"include_usage": True}) == (got["stream"], got["stream_options"])


@pytest.mark.parametrize(
    "stream",
    [
        b": hi\r\n\r\nevent: x\r\ndata:" + delta("ä")[6:-2] + b"\r\n\r\n" + DONE,
        delta("ä") + delta(finish="stop"),
        delta("ä") + DONE,
    ],
    ids=["odd lines", "no [DONE]", "no finish reason"],
)
async def test_a_stream_may_be_cut_anywhere(stream: bytes) -> None:
    single = [stream[at : at + 1] for at in range(len(stream))]
    assert (["ä"], None) == await pieces(streams(*single))


async def test_a_stream_raises_the_providers_refusal_at_its_first_piece() -> None:
    found, error = await pieces(says({"error": {"message": "no"}}, status=401))
    assert [] == found
    assert error is not None
    assert 401 == error.status


@pytest.mark.parametrize(
    ("events", "end", "kind"),
    [
        ([delta("Par")], False, "cut"),
        ([delta("Par")], True, "incomplete_stream"),
        (
            [delta("Par"), event({"error": {"message": "no"}}), delta("is"), DONE],
            True,
            "server_error",
        ),
        ([delta("Par"), event({"error": "no", "code": 429})], True, "rate_limit"),
        ([delta("Par"), b"data: {\n\n"], True, "incomplete_stream"),
        ([delta("Par"), b"data: garbage\n\n"], True, "bad_response"),
    ],
)
async def test_p_24_a_stream_that_breaks_raises_after_the_text_it_had(
    events: list[bytes], *, end: bool, kind: str
) -> None:
    found, error = await pieces(streams(*events, end=end))
    assert ["Par"] == found
    assert error is not None
    assert kind == error.kind
    assert error.status >= 429


async def test_r_14_a_reply_that_is_no_stream_is_told_with_its_label() -> None:
    found, error = await pieces(says(b"", headers={"content-type": "text/odd"}))
    assert [] == found
    assert isinstance(error, TruncatedReply)
    assert "Provider 'openai' sent it as text/odd." in str(error)


async def test_a_server_that_does_not_stream_is_understood() -> None:
    assert (["Paris"], None) == await pieces(says())


async def test_an_error_in_a_stream_carries_the_replys_headers() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={**STREAM, "x-request-id": "r-1"}))
        await exchange.send(chunked([event({"error": {"message": "no"}})]))

    _, error = await pieces(script)
    assert error is not None
    assert ("r-1", {"x-request-id": "r-1"}) == (error.request_id, error.headers)


async def test_nothing_is_sent_before_the_first_piece_is_asked_for() -> None:
    async with serve(streams(*GOOD_STREAM)) as upstream:
        stream = complete_stream("openai/m", HI, api_key="k", base_url=upstream.url)
        assert isinstance(stream, DeltaStream)
        assert stream is aiter(stream)
        await stream.aclose()
        assert [] == [piece async for piece in stream]
        assert [] == upstream.requests


async def _endless(exchange: Exchange) -> None:
    await exchange.send(head(headers=STREAM))
    await exchange.send(chunked([delta("Par")], end=False))
    await exchange.gone.wait()


async def test_leaving_a_stream_early_closes_the_upstream_request() -> None:
    with anyio.fail_after(5):
        async with serve(_endless) as upstream:
            how: Any = {"api_key": "k", "base_url": upstream.url}
            async with complete_stream("openai/m", HI, **how) as stream:
                assert "Par" == await anext(stream)
            await upstream.connections[0].gone.wait()
            with pytest.raises(StopAsyncIteration):
                await anext(stream)


async def test_closing_a_stream_closes_the_upstream_request() -> None:
    with anyio.fail_after(5):
        async with serve(_endless) as upstream:
            stream = complete_stream("openai/m", HI, api_key="k", base_url=upstream.url)
            assert "Par" == await anext(stream)
            await stream.aclose()
            await stream.aclose()
            await upstream.connections[0].gone.wait()


async def test_an_error_in_the_body_of_a_stream_closes_the_upstream_request() -> None:
    with anyio.fail_after(5):
        async with serve(_endless) as upstream:
            how: Any = {"api_key": "k", "base_url": upstream.url}
            with contextlib.suppress(KeyError):
                async with complete_stream("openai/m", HI, **how) as stream:
                    raise KeyError(await anext(stream))
            await upstream.connections[0].gone.wait()


async def test_p_5_cancelling_a_stream_closes_the_upstream_request() -> None:
    reading = anyio.Event()

    async def listen() -> None:
        how: Any = {"api_key": "k", "base_url": upstream.url}
        async with complete_stream("openai/m", HI, **how) as stream:
            async for _ in stream:
                reading.set()

    with anyio.fail_after(5):
        async with serve(_endless) as upstream:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await reading.wait()
                tasks.cancel_scope.cancel()
            await upstream.connections[0].gone.wait()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_stream_that_is_only_dropped_closes_the_upstream_request() -> None:
    """The plain `async for` of existing callers, left by `break`."""
    with anyio.fail_after(5):
        async with serve(_endless) as upstream:
            how: Any = {"api_key": "k", "base_url": upstream.url}
            async for _ in complete_stream("openai/m", HI, **how):
                break
            gc.collect()
            await upstream.connections[0].gone.wait()


async def test_a_time_limit_of_a_stream_never_cancels_its_reader() -> None:
    with anyio.fail_after(5):
        async with serve(_endless) as upstream:
            limits = Timeouts(whole=0.05)
            how: Any = {"api_key": "k", "base_url": upstream.url, "timeouts": limits}
            async with complete_stream("openai/m", HI, **how) as stream:
                assert "Par" == await anext(stream)
                await anyio.sleep(0.1)
                with pytest.raises(TransportError, match=r"did not finish within 0\.05 s"):
                    await anext(stream)


@pytest.mark.parametrize("late", [True, False])
async def test_the_connection_of_a_stream_that_ended_well_is_used_again(*, late: bool) -> None:
    done = anyio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers=STREAM))
        await exchange.send(chunked(GOOD_STREAM, end=not late))
        if late:
            await done.wait()
            await exchange.send(chunked([]))

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            for _ in range(2):
                how: Any = {"api_key": "k", "base_url": upstream.url}
                async for piece in complete_stream("openai/m", HI, **how):
                    if piece == "is":
                        done.set()
            assert [2] == [connection.requests for connection in upstream.connections]


async def test_a_server_that_does_not_close_behind_the_end_is_not_waited_for() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers=STREAM))
        await exchange.send(chunked(GOOD_STREAM, end=False))
        await exchange.gone.wait()

    with anyio.fail_after(5):
        assert (["Par", "is"], None) == await pieces(script)


def test_complete_sync_answers_without_a_loop() -> None:
    with serve_in_thread(says()) as upstream:
        for _ in range(2):
            text = complete_sync("openai/m", HI, api_key="k", base_url=upstream.url)
            assert "Paris" == text


async def test_p_5_complete_sync_refuses_inside_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="await complete"):
        complete_sync("openai/m", HI, api_key="k")


def test_the_names_of_the_built_in_providers_are_in_their_order() -> None:
    names = ["ollama", "anthropic", "openai", "groq", "together", "openrouter"]
    assert names == provider_names()


def test_ru_31_an_inference_error_is_made_by_position_and_by_keyword() -> None:
    by_position = InferenceError("m", "k", 418, {"a": 1})
    by_keyword = InferenceError(message="m", kind="k", status=418, payload={"a": 1})
    for error in (by_position, by_keyword):
        assert ("m", "k", 418, {"a": 1}) == (error.message, error.kind, error.status, error.payload)
        assert ("m", "k", 418, {"a": 1}) == error.args
        assert "m" == str(error)
    assert ("m",) == InferenceError("m").args
    assert ("server_error", 500) == (InferenceError("m").kind, InferenceError("m").status)


def test_an_inference_error_can_be_pickled_and_subclassed() -> None:
    class Mine(InferenceError):
        pass

    error = InferenceError("m", "k", 418, {"a": 1}, hint="h", headers={"x": "y"})
    again = pickle.loads(pickle.dumps(error))
    assert (error.args, vars(error)) == (again.args, vars(again))
    assert issubclass(Mine, Exception)
    assert "woollama.core" == InferenceError.__module__
    assert InferenceError is woollama.core.InferenceError
