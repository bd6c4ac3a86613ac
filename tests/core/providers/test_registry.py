"""The registry: what it takes, what it refuses, how a name is resolved."""

from collections.abc import Mapping
from typing import Any

import pytest

from woollama.core import ModelRegistry, Provider, provider_names
from woollama.core.errors import ConfigError, RequestError, UnknownModel
from woollama.core.providers.builtin import BUILTIN, builtin_providers

NAMES = ["ollama", "anthropic", "openai", "groq", "together", "openrouter"]
X = Provider("x", "http://h/v1")


def test_the_built_in_names_are_in_their_order() -> None:
    assert NAMES == provider_names()
    assert NAMES == list(ModelRegistry.builtin({}).all())


@pytest.mark.parametrize(
    ("name", "base_url", "variable"),
    [
        ("ollama", "http://localhost:11434/v1", None),
        ("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ("together", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
        ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ],
)
def test_a_built_in_has_its_address_and_its_variable(
    name: str, base_url: str, variable: str | None
) -> None:
    provider = ModelRegistry.builtin({}).get(name)
    assert provider is not None
    assert (base_url, variable) == (provider["base_url"], provider["api_key_env"])
    assert {} == provider["extra_body"]  # RU-14


@pytest.mark.parametrize("provider", BUILTIN, ids=lambda provider: provider.name)
def test_a_built_in_provider_passes_every_check(provider: Provider) -> None:
    provider.check()


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://h:9", "http://h:9/v1"),
        ("http://h:9/", "http://h:9/v1"),
        ("http://h:9/v1", "http://h:9/v1"),
        ("http://h:9/v1/", "http://h:9/v1"),
        (" http://h:9 ", "http://h:9/v1"),
        ("", "http://localhost:11434/v1"),
    ],
)
def test_ollamas_address_comes_from_its_variable(value: str, url: str) -> None:
    ollama, *others = builtin_providers({"WOOLLAMA_OLLAMA_URL": value})
    assert url == ollama.base_url
    assert list(BUILTIN[1:]) == others


def test_ollamas_variable_is_read_from_the_process_at_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_OLLAMA_URL", "http://other:1")
    assert "http://other:1/v1" == ModelRegistry.builtin().all()["ollama"].base_url


def test_ollamas_variable_may_be_wrong_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WOOLLAMA_OLLAMA_URL", "nonsense")
    with pytest.raises(ConfigError, match="WOOLLAMA_OLLAMA_URL: base_url 'nonsense' is no address"):
        ModelRegistry.builtin()


def test_a_registry_of_nothing_is_empty() -> None:
    assert [] == ModelRegistry().names()
    assert {} == ModelRegistry(None).all()
    assert None is ModelRegistry(inferencers={}).get("openai")


@pytest.mark.parametrize(
    "given",
    [[X], {"x": X}, {"x": {"base_url": "http://h/v1"}}],
    ids=["providers", "by name", "tables"],
)
def test_a_registry_takes_providers_in_three_forms(given: Any) -> None:
    assert {"x": X} == ModelRegistry(given).all()


def test_the_key_of_a_mapping_names_the_provider() -> None:
    registry = ModelRegistry({"work": X, "home": X})
    assert ["home", "work"] == registry.names()
    assert "work" == registry.all()["work"].name


def test_two_providers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="Two providers have the name 'x'"):
        ModelRegistry([X, X])


def test_a_bad_table_is_refused_when_the_registry_is_made() -> None:
    with pytest.raises(ConfigError, match="base_ulr: unknown key; did you mean 'base_url'"):
        ModelRegistry({"x": {"base_ulr": "http://h/v1"}})


def test_adding_takes_a_name_and_an_address() -> None:
    registry = ModelRegistry()
    registry.add("x", "http://h/v1/", api_key_env="K", extra_body={"a": 1})
    assert Provider("x", "http://h/v1/", "K", {"a": 1}) == registry.get("x")


def test_adding_takes_a_provider_and_replaces_one_of_its_name_wholly() -> None:
    registry = ModelRegistry()
    registry.add("x", "http://old/v1", api_key_env="K")
    registry.add(X)
    assert X == registry.get("x")


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        (("x",), {}, "needs a base_url"),
        (("x", ""), {}, "needs a base_url"),
        ((X, "http://other/v1"), {}, "is given whole"),
        ((X,), {"api_key_env": "K"}, "is given whole"),
        ((X,), {"extra_body": {}}, "is given whole"),
        (("woollama", "http://h/v1"), {}, "reserved"),
        (("a/b", "http://h/v1"), {}, "may not be empty or hold '/'"),
        (("", "http://h/v1"), {}, "may not be empty or hold '/'"),
        (("x", "h/v1"), {}, "is no address"),
    ],
)
def test_adding_what_cannot_work_is_refused(
    arguments: tuple[Any, ...], named: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelRegistry().add(*arguments, **named)


def test_names_are_sorted_and_all_is_a_copy() -> None:
    registry = ModelRegistry([Provider("b", "http://h"), Provider("a", "http://h")])
    registry.all().clear()
    assert ["a", "b"] == registry.names()
    assert ["b", "a"] == list(registry.all())


def test_a_provider_answers_like_the_dict_it_was() -> None:
    provider = Provider("x", "http://h/v1", "K", {"a": 1})
    expected = {"name": "x", "base_url": "http://h/v1", "api_key_env": "K", "extra_body": {"a": 1}}
    assert expected == dict(provider)
    assert expected == {**provider}
    assert "base_url" in provider
    with pytest.raises(KeyError):
        _ = provider["kind"]


def test_ru_21_a_target_unpacks_and_the_model_keeps_its_slashes() -> None:
    provider, model = ModelRegistry([X]).resolve("x/a/b:c")
    assert (X, "a/b:c") == (provider, model)


@pytest.mark.parametrize("model", ["nope/m", "nope", "", "/m", "X/m"])
def test_an_unknown_provider_is_refused_with_the_known_ones(model: str) -> None:
    registry = ModelRegistry([X, Provider("openai", "http://h")])
    with pytest.raises(UnknownModel, match="known providers are x, openai") as caught:
        registry.resolve(model)
    assert (404, "not_found", "model", "model_not_found") == (
        caught.value.status,
        caught.value.kind,
        caught.value.param,
        caught.value.code,
    )


def test_a_slip_in_a_providers_name_is_noticed() -> None:
    registry = ModelRegistry([Provider("openai", "http://h")])
    with pytest.raises(UnknownModel, match="Did you mean 'openai'"):
        registry.resolve("opnai/gpt-x")


def test_an_empty_registry_says_that_it_knows_none() -> None:
    with pytest.raises(UnknownModel, match="known providers are none"):
        ModelRegistry().resolve("x/m")


@pytest.mark.parametrize("model", ["x", "x/"])
def test_a_provider_without_a_model_is_refused(model: str) -> None:
    with pytest.raises(RequestError, match="write x/<model>") as caught:
        ModelRegistry([X]).resolve(model)
    assert (400, "model") == (caught.value.status, caught.value.param)


def test_a_target_is_made_once_until_a_provider_is_added() -> None:
    registry = ModelRegistry([Provider("a", "http://127.0.0.1/v1")])
    first = registry.resolve("a/m")
    assert first is registry.resolve("a/m")
    registry.add(Provider("a", "http://127.0.0.2/v1"))
    assert "http://127.0.0.2/v1" == registry.resolve("a/m").provider.base_url


def test_not_every_name_that_somebody_asked_for_is_kept() -> None:
    registry = ModelRegistry([Provider("a", "http://127.0.0.1/v1")])
    first = registry.resolve("a/0")
    for number in range(5000):
        assert f"{number}" == registry.resolve(f"a/{number}").model
    assert first is not registry.resolve("a/0")
