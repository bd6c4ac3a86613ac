"""A target: what is declared fills in, what is asked is checked, and the key comes last."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woollama.core import ModelRegistry, ModelSettings, Provider
from woollama.core.canonical import Capabilities, ChatRequest, request_from_openai
from woollama.core.errors import CannotEncode, ConfigError, RequestError
from woollama.core.providers import Target
from woollama.core.wire import DIALECTS, WireSettings

SECRET = "sk-s3cret-0123456789"
URL = "http://h:1/v1"


def target(own: ModelSettings | None = None, **fields: Any) -> Target:
    settings = {"m": own} if own is not None else {}
    return Target(Provider("n", URL, model_settings=settings, **fields), "m")


def asked(**fields: Any) -> ChatRequest:
    messages = [{"role": "user", "content": "hi"}]
    return request_from_openai({"model": "any", "messages": messages, **fields})


def body_of(target: Target, **fields: Any) -> dict[str, Any]:
    return json.loads(target.encode(asked(**fields), stream=False).body)


def spoken(dialect: str, **fields: Any) -> Target:
    family = DIALECTS[dialect].family
    own = dialect if family == "openai" else ""
    return target(kind=family, dialect=own, **fields)


def test_the_request_goes_out_under_the_providers_name_of_the_model() -> None:
    assert "m" == body_of(target())["model"]


def test_what_is_declared_fills_in_what_is_not_asked() -> None:
    own = ModelSettings(efforts=("low",), effort="low", temperature=0, seed=7)
    body = body_of(target(own))
    assert ("low", 0, 7) == (body["reasoning_effort"], body["temperature"], body["seed"])


def test_what_is_asked_wins_over_what_is_declared() -> None:
    own = ModelSettings(efforts=("low", "high"), effort="low", temperature=0, seed=7)
    body = body_of(target(own), reasoning_effort="high", temperature=1, seed=1)
    assert ("high", 1, 1) == (body["reasoning_effort"], body["temperature"], body["seed"])


def test_a_13_a_model_that_declares_nothing_is_sent_nothing() -> None:
    assert {"model", "messages"} == set(body_of(target()))


def test_ru_17_an_effort_passes_when_the_model_declares_none() -> None:
    assert "max" == body_of(target(), reasoning_effort="max")["reasoning_effort"]


def test_ru_17_an_effort_outside_the_declared_ones_is_refused_with_their_list() -> None:
    with pytest.raises(RequestError, match="takes the efforts low, high, not 'max'") as caught:
        body_of(target(ModelSettings(efforts=("low", "high"))), reasoning_effort="max")
    assert (400, "reasoning_effort") == (caught.value.status, caught.value.param)


def test_ru_14_the_providers_extra_body_is_below_what_is_asked() -> None:
    body = body_of(target(extra_body={"temperature": 0, "top_k": 5}), temperature=1)
    assert (1, 5) == (body["temperature"], body["top_k"])


def test_the_models_settings_stand_over_the_providers() -> None:
    own = ModelSettings(cache_control=False, max_output_tokens=9, num_ctx=8, keep_alive=0)
    settings = target(own, settings=WireSettings(cache_control=True, cache_key="k")).settings
    assert (
        WireSettings(
            cache_control=False, cache_key="k", max_output_tokens=9, num_ctx=8, keep_alive=0
        )
        == settings
    )


def test_the_models_capabilities_stand_over_the_providers() -> None:
    base = Capabilities(True, False, True)
    own = ModelSettings(vision=False, audio=True)
    assert Capabilities(False, True, True) == target(own, capabilities=base).capabilities
    assert base == target(capabilities=base).capabilities


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"relay": False}, False),
        ({"think_tags": True}, False),
        ({"settings": WireSettings(merge_system=True)}, False),
        ({"settings": WireSettings(schema_mode="inline")}, False),
        ({"dialect": "responses"}, False),
        ({"kind": "ollama"}, False),
    ],
)
def test_ru_15_bytes_pass_only_where_nothing_has_to_be_decoded(
    fields: dict[str, Any], *, expected: bool
) -> None:
    assert expected is target(**fields).relays("compatible")


def test_a_call_may_choose_another_address() -> None:
    moved = target().at("http://other:2/v2/")
    assert "http://other:2/v2/chat/completions" == moved.encode(asked(), stream=False).url
    one = target()
    assert one is one.at(None)
    assert one is one.at("")


@pytest.mark.parametrize("url", ["other", "http://me:s3cret@h/v1"])
def test_a_call_may_not_choose_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match=r"The call to 'n/m': base_url") as caught:
        target().at(url)
    assert "s3cret" not in str(caught.value)


def test_the_key_is_put_in_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", SECRET)
    one = target(api_key_env="WOOLLAMA_TEST_KEY", extra_headers={"Authorization": "x", "X-A": "1"})
    wire = one.encode(asked(), stream=False)
    assert {"content-type": "application/json"} == wire.headers
    sent = one.authorize(wire)
    assert {
        "content-type": "application/json",
        "authorization": f"Bearer {SECRET}",
        "x-a": "1",
    } == sent.headers
    assert (wire.body, wire.url) == (sent.body, sent.url)


def test_an_operators_own_authorization_stays_where_no_key_is_needed() -> None:
    one = target(kind="ollama", extra_headers={"Authorization": "Basic x"})
    sent = one.authorize(one.encode(asked(), stream=False))
    assert "Basic x" == sent.headers["authorization"]


def test_a_15_a_request_to_another_host_is_not_authorized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", SECRET)
    one = target(api_key_env="WOOLLAMA_TEST_KEY")
    elsewhere = target().at("http://evil.test/v1").encode(asked(), stream=False)
    with pytest.raises(ConfigError, match=r"may go to h only, not to 'evil\.test'"):
        one.authorize(elsewhere)


def test_p_60_an_authorized_request_shows_neither_key_nor_body() -> None:
    one = target()
    sent = one.authorize(one.encode(asked(user=SECRET), stream=False), SECRET)
    assert "WireRequest('POST', 'http://h:1/v1/chat/completions')" == repr(sent) == str(sent)
    assert SECRET not in repr(one)
    assert "Target('n/m', dialect='compatible')" == repr(one)
    assert SECRET not in repr(ModelRegistry([one.provider]))


TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


@given(
    st.sampled_from(sorted(DIALECTS)),
    TEXTS,
    TEXTS,
    TEXTS.map(lambda host: f"https://{host}.test/v1"),
)
def test_p_7_a_1_only_the_name_of_the_model_tells_two_configurations_apart(
    dialect: str, name: str, model: str, url: str
) -> None:
    kind: Any = DIALECTS[dialect].family
    own = dialect if kind == "openai" else ""
    first = Target(Provider("openai", "https://api.openai.com/v1", kind=kind, dialect=own), "gpt-5")
    second = Target(Provider(name, url, kind=kind, dialect=own), model)
    bodies = [body_of(one, temperature=0.5, max_tokens=9) for one in (first, second)]
    assert ["gpt-5", model] == [body.pop("model") for body in bodies]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize(
    ("name", "value"), [("n", 2), ("modalities", ["text", "audio"]), ("modalities", ["audio"])]
)
def test_c_3_what_a_reply_has_no_place_for_is_refused_by_name(
    dialect: str, name: str, value: Any
) -> None:
    with pytest.raises(CannotEncode, match=name) as caught:
        body_of(spoken(dialect), **{name: value})
    assert (name, 400) == (caught.value.param, caught.value.status)
    assert "drop_params" in str(caught.value)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize(("name", "value"), [("n", 1), ("n", None), ("modalities", ["text"])])
def test_c_3_what_asks_for_no_more_than_a_reply_is_no_fault(
    dialect: str, name: str, value: Any
) -> None:
    assert body_of(spoken(dialect), **{name: value})


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_c_3_what_a_reply_has_no_place_for_may_be_left_out(dialect: str) -> None:
    settings = WireSettings(drop_params=frozenset({"n"}))
    wire = spoken(dialect, settings=settings).encode(asked(n=2), stream=False)
    assert ("n",) == wire.dropped
    assert "n" not in json.loads(wire.body)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": "\ud83d"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a\udcff"}]}]},
        {"tools": [{"type": "function", "function": {"name": "f", "description": "\udcff"}}]},
    ],
)
def test_half_a_character_is_refused_and_not_met_by_the_encoder(
    dialect: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(RequestError, match="half of a character") as caught:
        body_of(spoken(dialect), **fields)
    assert "\\ud83d" in caught.value.message or "\\udcff" in caught.value.message
    assert str(caught.value).isprintable()


def test_half_a_character_in_the_arguments_of_a_call_is_refused() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": {"a": "\ud83d"}}}
    with pytest.raises(RequestError, match="half of a character") as caught:
        asked(messages=[{"role": "assistant", "tool_calls": [call]}])
    assert "messages[0].tool_calls[0]" == caught.value.param


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_what_is_nested_without_end_is_refused(dialect: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(RequestError, match="nested too deeply"):
        body_of(spoken(dialect), extra_body=deep)
