"""Bytes that pass: what settings change of a request, and nothing else (RU-15, RU-16)."""

import json
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.chat_upstream import DONE, delta, says, streams
from woollama.core import ModelSettings, Provider, Retries, Transport
from woollama.core.errors import CannotEncode, ProviderError, RequestError
from woollama.core.providers import Target
from woollama.core.relay import chat_fields, dropped_fields, open_relay, raw_body
from woollama.core.testing.upstream import Exchange, head, serve, whole
from woollama.core.transport.http import HttpTransport
from woollama.core.wire import WireSettings


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def transport() -> Any:
    transport = HttpTransport()
    yield transport
    await transport.aclose()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is empty; it must be a JSON object"),
        (b" \n", "is empty"),
        (b"{", "is not valid JSON"),
        (b'{"a": 1,}', "is not valid JSON"),
        (b"model=m", "is not valid JSON"),
        (b"[1]", "must be a JSON object: Expected `object`, got `array`"),
        (b'"x"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"a": "\xff"}', "is not valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1} {"b": 2}', "is not valid JSON"),
    ],
)
def test_a_body_that_is_no_object_is_refused_with_what_it_is(body: bytes, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        raw_body(body)
    assert words in caught.value.message
    assert 400 == caught.value.status


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_every_value_is_kept_as_it_came(body: dict[str, Any]) -> None:
    encoded = json.dumps(body).encode()
    assert body == json.loads(msgspec.json.encode(raw_body(encoded)))


def target(own: ModelSettings | None = None, **fields: Any) -> Target:
    models = {"m": own} if own is not None else {}
    settings = fields.pop("settings", WireSettings())
    provider = Provider("x", "http://h/v1", model_settings=models, settings=settings, **fields)
    return Target(provider, "m")


def sent(target: Target, **body: Any) -> dict[str, Any]:
    """The fields that are sent for a client's fields."""
    fields = chat_fields(target, raw_body(json.dumps(body).encode()))
    return json.loads(msgspec.json.encode(fields))


def test_without_settings_every_field_passes() -> None:
    body: dict[str, Any] = {
        "model": "x/m",
        "messages": [],
        "n": 2,
        "x_new": {"a": [1]},
        "temperature": None,
    }
    assert body == sent(target(), **body)


def test_ru_16_numbers_too_large_for_a_float_pass() -> None:
    body = b'{"seed": 123456789012345678901234567890, "x": 1e999, "y": 1.10}'
    assert body.replace(b": ", b":").replace(b", ", b",") == msgspec.json.encode(
        chat_fields(target(), raw_body(body))
    )


def test_ru_16_the_default_effort_is_added() -> None:
    one = target(ModelSettings(efforts=("low", "high"), effort="low"))
    assert "low" == sent(one)["reasoning_effort"]
    assert "low" == sent(one, reasoning_effort=None)["reasoning_effort"]
    assert "high" == sent(one, reasoning_effort="high")["reasoning_effort"]
    assert "reasoning_effort" not in sent(target(ModelSettings(efforts=("low",))))


def test_ru_16_an_effort_outside_the_list_is_refused_with_the_list() -> None:
    with pytest.raises(RequestError, match="takes the efforts low, high, not 'max'"):
        sent(target(ModelSettings(efforts=("low", "high"))), reasoning_effort="max")


def test_an_effort_that_is_no_text_is_refused_where_efforts_are_declared() -> None:
    with pytest.raises(RequestError, match="must be a string") as caught:
        sent(target(ModelSettings(efforts=("low",))), reasoning_effort=3)
    assert "reasoning_effort" == caught.value.param
    assert 3 == sent(target(), reasoning_effort=3)["reasoning_effort"]


@pytest.mark.parametrize(
    ("field", "body", "expected"),
    [
        ("max_tokens", {"max_tokens": 1}, {"max_tokens": 1}),
        ("max_tokens", {"max_completion_tokens": 1}, {"max_completion_tokens": 1}),
        ("max_completion_tokens", {"max_tokens": 1}, {"max_completion_tokens": 1}),
        (
            "max_completion_tokens",
            {"max_tokens": 1, "max_completion_tokens": 2},
            {"max_completion_tokens": 2},
        ),
        (
            "max_completion_tokens",
            {"max_tokens": 1, "max_completion_tokens": None},
            {"max_completion_tokens": 1},
        ),
        ("max_completion_tokens", {"max_tokens": None}, {}),
        ("cap", {"max_tokens": 1, "max_completion_tokens": 2}, {"cap": 2}),
        ("cap", {"max_tokens": 1}, {"cap": 1}),
        ("cap", {"max_tokens": 1, "cap": 3}, {"cap": 3}),
    ],
)
def test_ru_16_a_7_the_output_cap_goes_under_the_providers_name(
    field: str, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert expected == sent(target(settings=WireSettings(output_field=field)), **body)


def test_ru_16_what_is_declared_is_filled_in_under_the_clients_own() -> None:
    one = target(ModelSettings(temperature=0, seed=7), settings=WireSettings(cache_key="c"))
    expected = {"temperature": 0, "seed": 7, "prompt_cache_key": "c"}
    assert expected == sent(one)
    assert expected == sent(one, temperature=None, seed=None, prompt_cache_key=None)
    own = {"temperature": 1, "seed": 1, "prompt_cache_key": "mine"}
    assert own == sent(one, **own)


def test_ru_16_what_drop_params_lists_is_left_out_and_named() -> None:
    settings = WireSettings(drop_params=frozenset({"seed", "logit_bias", "options", "model"}))
    one = target(ModelSettings(seed=7), settings=settings)
    body = {"model": "x/m", "seed": 1, "logit_bias": {}, "options": {"a": 1}, "n": 1}
    assert {"model": "x/m", "n": 1} == sent(one, **body)
    assert ("seed", "logit_bias", "options") == dropped_fields(
        one, raw_body(json.dumps(body).encode())
    )


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_drop_params_may_name_the_output_cap_either_way(name: str) -> None:
    settings = WireSettings(
        output_field="max_completion_tokens", drop_params=frozenset({"max_completion_tokens"})
    )
    assert {} == sent(target(settings=settings), **{name: 9})


@pytest.mark.parametrize(("name", "value"), [("options", {"num_ctx": 1}), ("keep_alive", "5m")])
def test_ru_18_ollamas_own_fields_are_refused(name: str, value: Any) -> None:
    with pytest.raises(CannotEncode, match="has no place for") as caught:
        sent(target(), **{name: value})
    assert (name, 400) == (caught.value.param, caught.value.status)


@pytest.mark.parametrize("value", [None, {}, [], ""])
def test_ollamas_own_fields_that_ask_for_nothing_are_left_out(value: Any) -> None:
    assert {"n": 1} == sent(target(), options=value, keep_alive=value, n=1)


async def test_the_body_goes_out_with_the_targets_model_and_the_extra_body_below(
    transport: Transport,
) -> None:
    async with serve(says()) as upstream:
        provider = Provider("x", f"{upstream.url}/", extra_body={"top_k": 1, "n": 9})
        one = Target(provider, "a/m")
        fields = raw_body(b'{"model": "x/a/m", "n": 1, "z": 1.10}')
        async with open_relay(one, fields, "/chat/completions", transport=transport) as reply:
            assert 200 == reply.status
        (got,) = upstream.requests
    assert b'{"top_k":1,"n":1,"model":"a/m","z":1.10}' == got.body
    assert "/v1/chat/completions" == got.path


async def test_the_replys_bytes_pass(transport: Transport) -> None:
    events = [b": odd\r\n\r\n", delta("a")[:9], delta("a")[9:], DONE]
    async with serve(streams(*events)) as upstream:
        one = Target(Provider("x", upstream.url), "m")
        async with open_relay(one, {}, "/chat/completions", transport=transport) as reply:
            got = b"".join([chunk async for chunk in reply.chunks])
    assert b"".join(events) == got


async def test_a_refusal_is_raised_with_its_payload_and_headers(transport: Transport) -> None:
    payload = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}
    script = says(payload, status=429, headers={"retry-after": "3", "x-request-id": "r"})
    async with serve(script) as upstream:
        one = Target(Provider("x", upstream.url), "m")
        with pytest.raises(ProviderError) as caught:
            async with open_relay(one, {}, "/embeddings", transport=transport):
                pass
    assert (429, payload, {"retry-after": "3", "x-request-id": "r"}) == (
        caught.value.status,
        caught.value.payload,
        caught.value.headers,
    )


async def test_a_relay_is_tried_again_before_its_first_byte(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(whole(b"{}", status=503 if len(upstream.requests) < 2 else 200))

    async with serve(script) as upstream:
        one = Target(Provider("x", upstream.url), "m")
        again = Retries(attempts=2, first_wait_s=0)
        async with open_relay(one, {}, "/embeddings", transport=transport, retries=again) as reply:
            assert 200 == reply.status
        assert 2 == len(upstream.requests)


async def test_leaving_a_relay_closes_the_upstream_request(transport: Transport) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(head(headers={"content-length": "9"}) + b"part")
        await exchange.gone.wait()

    with anyio.fail_after(5):
        async with serve(script) as upstream:
            one = Target(Provider("x", upstream.url), "m")
            async with open_relay(one, {}, "/chat/completions", transport=transport) as reply:
                assert b"part" == await anext(aiter(reply.chunks))
            await upstream.connections[0].gone.wait()
