"""A provider: its dialect, its key, its headers, and what never shows."""

from collections.abc import Mapping
from typing import Any

import pytest

from woollama.core import Credential, Inferencer, ModelSettings, Provider
from woollama.core.canonical import Capabilities
from woollama.core.errors import ConfigError
from woollama.core.providers.addresses import check_address
from woollama.core.providers.keys import name_of_place, place_key
from woollama.core.wire import DIALECTS, Bearer, Header, NoKey

SECRET = "sk-s3cret-0123456789"
URL = "http://h:1/v1"


def test_ru_21_the_first_eight_fields_are_positional() -> None:
    provider = Provider("n", URL, "K", {"a": 1}, ("m",), True, ("g*",), Capabilities(True))
    assert ("n", URL, "K", {"a": 1}, ("m",), True, ("g*",), Capabilities(True)) == (
        provider.name,
        provider.base_url,
        provider.api_key_env,
        provider.extra_body,
        provider.models,
        provider.discover,
        provider.model_patterns,
        provider.capabilities,
    )
    assert Inferencer is Provider


def test_a_field_of_ours_is_keyword_only() -> None:
    assert "ollama" == Provider("n", URL, kind="ollama").kind


@pytest.mark.parametrize(
    ("fields", "dialect", "url"),
    [
        ({}, "compatible", "http://h:1/v1/chat/completions"),
        ({"dialect": "compatible"}, "compatible", "http://h:1/v1/chat/completions"),
        ({"dialect": "responses"}, "responses", "http://h:1/v1/responses"),
        ({"dialect": "cerebras"}, "cerebras", "http://h:1/v1/chat/completions"),
        ({"kind": "ollama"}, "ollama", "http://h:1/api/chat"),
        ({"kind": "anthropic"}, "anthropic", "http://h:1/v1/messages"),
    ],
)
def test_kind_and_dialect_together_name_the_dialect(
    fields: Mapping[str, Any], dialect: str, url: str
) -> None:
    provider = Provider("n", f"{URL}/", **fields)
    provider.check()
    assert (dialect, url) == (provider.dialect_for("m").name, provider.chat_url())


def test_a_1_neither_an_address_nor_a_name_chooses_the_dialect() -> None:
    for url in ("https://api.anthropic.com/v1", "http://localhost:11434", "https://x.openai.com"):
        for name in ("anthropic", "ollama", "cerebras"):
            assert "compatible" == Provider(name, url).dialect_for(name).name


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dialect": "chat"}, "there is no dialect 'chat' of kind 'openai'; known are"),
        ({"dialect": "anthropic"}, "there is no dialect 'anthropic' of kind 'openai'"),
        ({"kind": "ollama", "dialect": "ollama"}, "which has no dialects"),
        ({"kind": "anthropic", "dialect": "compatible"}, "which has no dialects"),
        (
            {"kind": "ollama", "model_settings": {"m": ModelSettings(dialect="compatible")}},
            "which has no dialects",
        ),
        (
            {"model_settings": {"m": ModelSettings(dialect="nope")}},
            "there is no dialect 'nope' of kind 'openai'",
        ),
    ],
)
def test_a_5_an_unknown_dialect_is_refused(fields: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Provider("n", URL, **fields).check()


def test_a_6_a_model_may_set_its_dialect_where_its_provider_sets_none() -> None:
    own = {"m": ModelSettings(dialect="responses")}
    provider = Provider("n", URL, model_settings=own)
    provider.check()
    assert ("responses", "compatible") == (
        provider.dialect_for("m").name,
        provider.dialect_for("other").name,
    )
    with pytest.raises(ConfigError, match="Model n/m may not set the dialect 'responses'"):
        Provider("n", URL, dialect="compatible", model_settings=own).check()


@pytest.mark.parametrize(
    ("kind", "place", "good"),
    [
        ("openai", "bearer", True),
        ("openai", "Bearer", True),
        ("openai", "x-api-key", False),
        ("anthropic", "X-API-Key", True),
        ("anthropic", "bearer", False),
        ("ollama", "bearer", True),
        ("ollama", "x-api-key", False),
    ],
)
def test_p_7_a_place_that_the_dialect_does_not_read_is_refused(
    kind: Any, place: str, *, good: bool
) -> None:
    provider = Provider("n", URL, kind=kind, key=Credential(env="K", place=place))
    if good:
        provider.check()
        return
    with pytest.raises(ConfigError, match=r"reads its key from .*, not from"):
        provider.check()


def test_the_key_is_read_from_its_variable_at_use(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider("n", URL, "WOOLLAMA_TEST_KEY")
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", "first")
    assert "first" == provider.find_key()
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", " second\n")
    assert "second" == provider.find_key()


def test_the_credential_in_full_wins_over_the_short_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", "k")
    provider = Provider("n", URL, "OTHER", key=Credential(env="WOOLLAMA_TEST_KEY"))
    assert "k" == provider.find_key()


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("WOOLLAMA_TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("WOOLLAMA_TEST_KEY", value)
    with pytest.raises(ConfigError, match="set the environment variable WOOLLAMA_TEST_KEY") as got:
        Provider("n", URL, "WOOLLAMA_TEST_KEY").find_key("")
    assert (400, "missing_api_key") == (got.value.status, got.value.code)


def test_the_callers_key_comes_first_and_an_empty_one_is_none() -> None:
    provider = Provider("n", URL, "WOOLLAMA_TEST_KEY")
    assert "mine" == provider.find_key(" mine ")
    assert None is Provider("n", URL).find_key("")
    assert "mine" == Provider("ollama", URL, kind="ollama").find_key("mine")


@pytest.mark.parametrize(
    ("hosts", "url", "good"),
    [
        ((), "http://h:1/v1/chat/completions", True),
        ((), "http://other:1/v1/chat/completions", False),
        (("h",), "http://h:1/v1", True),
        (("H",), "http://h:1/v1", True),
        (("other.test", "h"), "http://H:9/v1", True),
        (("other.test",), "http://h:1/v1", False),
        (("h",), "http://h.evil.test/v1", False),
        (("h",), "http://x@h.evil.test/h", False),
    ],
)
def test_a_15_p_7_another_host_never_gets_the_key(
    monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...], url: str, *, good: bool
) -> None:
    monkeypatch.setenv("WOOLLAMA_TEST_KEY", SECRET)
    provider = Provider("n", URL, key=Credential(env="WOOLLAMA_TEST_KEY", hosts=hosts))
    if good:
        assert SECRET == provider.find_key(url=url)
        return
    with pytest.raises(ConfigError, match="may go to") as caught:
        provider.find_key(url=url)
    assert SECRET not in f"{caught.value!r}{caught.value}"


def test_headers_are_ready_to_send() -> None:
    provider = Provider("n", URL, extra_headers={"X-Title": "t", "Content-Type": "text/x"})
    assert {
        "content-type": "text/x",
        "x-title": "t",
        "authorization": "Bearer k",
    } == provider.headers("k")
    assert {
        "content-type": "application/json",
        "x-api-key": "k",
    } == Provider("n", URL, kind="anthropic").headers("k")


@pytest.mark.parametrize("key", ["a\nb", "a\r\nx: y", "schlüssel", "a\0b"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigError, match="no header can carry") as caught:
        Provider("n", URL).headers(key)
    assert key not in str(caught.value)


def test_a_key_has_a_place_for_every_dialect() -> None:
    for dialect in DIALECTS.values():
        assert name_of_place(dialect.key_place) in {"bearer", "x-api-key"}
    assert "none" == name_of_place(NoKey())


def test_a_key_is_put_in_its_place_and_nowhere_else() -> None:
    base = {"a": "b"}
    assert {"a": "b", "authorization": "Bearer k"} == place_key(Bearer(), base, "k", owner="n")
    assert {"a": "b", "x-k": "k"} == place_key(Header(name="x-k"), base, "k", owner="n")
    assert {"a": "b"} == place_key(NoKey(), base, "k", owner="n")
    assert {"a": "b"} == place_key(Bearer(), base, None, owner="n")
    assert {"a": "b"} == base


@pytest.mark.parametrize(
    ("model", "capability", "expected"),
    [
        ("e-1", "embedding", True),
        ("e-1", "chat", False),
        ("gpt-1", "chat", True),
        ("other", "chat", None),
    ],
)
def test_ru_46_serves_says_what_a_model_is_for(
    model: str, capability: str, *, expected: bool | None
) -> None:
    provider = Provider("n", URL, serves={"embedding": ("e-*",), "chat": ("gpt-*", "x")})
    assert expected is provider.has_capability(model, capability)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "localhost:11434",
        "ftp://h",
        "http://",
        "http://h:port",
        "http://h:99999",
        "http://[::1",
        "http://h/v1?x=1",
        "http://h/v1#x",
        "http://h/v1\n",
    ],
)
def test_an_address_that_cannot_carry_a_path_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is no address"):
        check_address(url, owner="x")


@pytest.mark.parametrize(
    "url", ["http://h", "https://h/v1/", "http://127.0.0.1:1/a/b", "http://[::1]:80/v1"]
)
def test_an_address_of_a_server_is_taken(url: str) -> None:
    check_address(url, owner="x")


@pytest.mark.parametrize("url", ["http://me:s3cret@h/v1", "http://s3cret@[::1", "x://s3cret@h"])
def test_a_password_in_an_address_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigError, match="may not hold a user or password") as caught:
        check_address(url, owner="x")
    assert "s3cret" not in str(caught.value)


def test_a_provider_shows_no_secret() -> None:
    provider = Provider(
        "n",
        f"http://me:{SECRET}@h/v1",
        extra_body={"token": SECRET},
        extra_headers={"x-key": SECRET},
    )
    assert "Provider('n', 'http://h/v1', kind='openai')" == repr(provider) == str(provider)
