"""`inferencers.toml`: what merges over a built-in, what is refused, and where it says so."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from woollama.core.canonical import Capabilities
from woollama.core.errors import ConfigError
from woollama.core.providers import Credential, ModelRegistry, ModelSettings, Provider
from woollama.core.providers.builtin import BUILTIN
from woollama.core.providers.configured import check_inferencers, provider_from_table
from woollama.core.wire import WireSettings

BASE = 'base_url = "http://h:1/v1"\n'


def load(tmp_path: Path, text: str, **environ: str) -> ModelRegistry:
    path = tmp_path / "inferencers.toml"
    path.write_text(text, "utf-8")
    return ModelRegistry.from_config(path, environ)


def one(tmp_path: Path, name: str, text: str, **environ: str) -> Provider:
    provider = load(tmp_path, f"[inferencers.{name}]\n{text}", **environ).get(name)
    assert provider is not None
    return provider


def refused(tmp_path: Path, text: str, **environ: str) -> list[str]:
    """The problems, without the file's name that each begins with."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **environ)
    assert 400 == caught.value.status
    file = f"{tmp_path / 'inferencers.toml'}: "
    lines = str(caught.value).splitlines()
    assert all(line.startswith(file) for line in lines)
    return [line.removeprefix(file) for line in lines]


def test_a_missing_file_leaves_the_built_in_providers(tmp_path: Path) -> None:
    registry = ModelRegistry.from_config(tmp_path / "none.toml", {})
    assert {provider.name: provider for provider in BUILTIN} == registry.all()


def test_the_file_is_found_in_the_configuration_directory_and_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WOOLLAMA_CONFIG_DIR", str(tmp_path))
    path = tmp_path / "inferencers.toml"
    path.write_text(f"[inferencers.a]\n{BASE}")
    assert "a" in ModelRegistry.from_config().names()
    path.write_text(f"[inferencers.b]\n{BASE}")
    assert "a" not in ModelRegistry.from_config().names()


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("", "base_url", "https://api.openai.com/v1"),
        ('base_url = ""', "base_url", "https://api.openai.com/v1"),
        ('base_url = "http://x/v1/"', "base_url", "http://x/v1/"),
        ("", "api_key_env", "OPENAI_API_KEY"),
        ('api_key_env = "MINE"', "api_key_env", "MINE"),
        ('api_key_env = ""', "api_key_env", None),
        ("api_key_env = false", "api_key_env", None),
        ("api_key_env = 3", "api_key_env", None),
        ("extra_body = {}", "extra_body", {}),
        ("extra_body = { a = { b = 1 } }", "extra_body", {"a": {"b": 1}}),
        ("models = []", "models", ()),
        ('models = ["m", "n"]', "models", ("m", "n")),
        ('model_patterns = ["gpt-*"]', "model_patterns", ("gpt-*",)),
        ("", "discover", False),
        ("discover = true", "discover", True),
        ('headers = { "X-A" = "1" }', "extra_headers", {"X-A": "1"}),
        ("relay = false", "relay", False),
        ("think_tags = true", "think_tags", True),
        ('serves = { embedding = ["e-*"] }', "serves", {"embedding": ("e-*",)}),
        ("capabilities = { vision = true }", "capabilities", Capabilities(True)),
        ('provider = "anthropic"', "kind", "anthropic"),
        ('dialect = "responses"', "dialect", "responses"),
        ("", "settings", WireSettings(output_field="max_completion_tokens")),
        ('output_field = "max_tokens"', "settings", WireSettings(output_field="max_tokens")),
    ],
)
def test_a_field_merges_over_a_built_in(
    tmp_path: Path, text: str, field: str, expected: object
) -> None:
    name = "openai"
    if "anthropic" in text:
        name = "groq"  # whose settings its new kind has a place for
    assert expected == getattr(one(tmp_path, name, text), field)


def test_a_key_of_another_kind_than_the_built_ins_is_inherited_as_well(tmp_path: Path) -> None:
    provider = one(tmp_path, "ollama", "discover = false")
    assert ("ollama", "http://localhost:11434/v1", False) == (
        provider.kind,
        provider.base_url,
        provider.discover,
    )


def test_extra_body_replaces_and_does_not_merge_deeper(tmp_path: Path) -> None:
    first = Provider("x", "http://h/v1", extra_body={"a": 1})
    registry = ModelRegistry([first])
    registry.add(provider_from_table("x", {"base_url": "http://h/v1", "extra_body": {"b": 2}}))
    assert {"b": 2} == registry.all()["x"].extra_body


def test_every_wire_setting_reaches_the_wire(tmp_path: Path) -> None:
    provider = one(
        tmp_path,
        "x",
        BASE
        + 'output_field = "f"\nstream_usage = false\ncache_control = true\ncache_key = "k"\n'
        + 'merge_system = true\nreplay_reasoning = true\nschema_mode = "inline"\n'
        + 'drop_params = ["seed"]\n',
    )
    assert (
        WireSettings(
            output_field="f",
            stream_usage=False,
            cache_control=True,
            cache_key="k",
            merge_system=True,
            replay_reasoning=True,
            schema_mode="inline",
            drop_params=frozenset({"seed"}),
        )
        == provider.settings
    )


def test_the_version_of_anthropics_api_can_be_chosen(tmp_path: Path) -> None:
    text = BASE + 'provider = "anthropic"\nanthropic_version = "2026-10-21"'
    assert "2026-10-21" == one(tmp_path, "x", text).settings.anthropic_version


def test_p_7_a_credential_can_be_written_in_full(tmp_path: Path) -> None:
    text = BASE + 'key = { env = "K", place = "bearer", hosts = ["h"] }'
    assert Credential(env="K", place="bearer", hosts=("h",)) == one(tmp_path, "x", text).credential


def test_models_can_be_tables_of_what_is_declared_of_them(tmp_path: Path) -> None:
    provider = one(
        tmp_path,
        "x",
        BASE
        + '[inferencers.x.models."a/b:c"]\n'
        + 'efforts = ["low", "high"]\neffort = "low"\nvision = true\nmax_output_tokens = 9\n'
        + 'context = 8\ntemperature = 0\nseed = -1\nprices = { _in = 1.5 }\ndialect = "responses"\n'
        + "[inferencers.x.models.d]\ncapabilities = { audio = true, vision = true }\n"
        + "vision = false\n",
    )
    assert ("a/b:c", "d") == provider.models
    assert {
        "a/b:c": ModelSettings(
            efforts=("low", "high"),
            effort="low",
            vision=True,
            max_output_tokens=9,
            context=8,
            temperature=0,
            seed=-1,
            prices={"_in": 1.5},
            dialect="responses",
        ),
        "d": ModelSettings(audio=True, vision=False, structured=False),
    } == provider.model_settings


def test_ollamas_models_have_ollamas_settings(tmp_path: Path) -> None:
    text = '[inferencers.ollama.models."q:1"]\nnum_ctx = 8192\nkeep_alive = "30m"'
    provider = load(tmp_path, text).get("ollama")
    assert provider is not None
    assert {"q:1": ModelSettings(num_ctx=8192, keep_alive="30m")} == provider.model_settings


def test_a_name_that_begins_with_an_underscore_is_a_name(tmp_path: Path) -> None:
    provider = one(tmp_path, "_x", 'base_url = "http://${HOST}/v1"\n_note = "${UNSET}"', HOST="h")
    assert "http://h/v1" == provider.base_url


def test_a_free_table_keeps_keys_with_an_underscore(tmp_path: Path) -> None:
    provider = one(tmp_path, "x", BASE + 'extra_body = { _a = { _b = "${V}" } }', V="v")
    assert {"_a": {"_b": "v"}} == provider.extra_body


def test_an_unset_variable_refuses_the_whole_file(tmp_path: Path) -> None:
    text = f'[inferencers.a]\n{BASE}\n[inferencers.b]\nbase_url = "${{B}}${{A}}"'
    assert ["unset variables: B, A; set each, or write ${NAME:-default}"] == refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[inferencers.x]\n", "inferencers.x: needs the key 'base_url'"),
        ("[inferencers]\nx = 1", "inferencers.x: must be a table, not a number"),
        ("inferencers = 3", "inferencers: must be a table"),
        ("[providers.x]", "providers: unknown table; providers are [inferencers.<name>]"),
        (
            f'[inferencers.x]\n{BASE}base_ulr = ""',
            "inferencers.x.base_ulr: unknown key; did you mean 'base_url'?",
        ),
        (
            f"[inferencers.x]\n{BASE}discover = 1",
            "inferencers.x.discover: expected `bool | null`, got `int`",
        ),
        (
            f'[inferencers.x]\n{BASE}models = ["a", 1]',
            "inferencers.x.models: expected `str`, got `int` (at [1])",
        ),
        (
            f"[inferencers.x]\n{BASE}extra_body = 1",
            "inferencers.x.extra_body: expected `object | null`, got `int`",
        ),
        (
            f'[inferencers.x]\n{BASE}provider = "openia"',
            "inferencers.x.provider: must be 'openai', 'ollama' or 'anthropic', not 'openia'",
        ),
        (
            f"[inferencers.x.models.m]\nnum_ctx = 0\n[inferencers.x]\n{BASE}",
            'inferencers.x.models."m".num_ctx: expected `int` >= 1',
        ),
        (
            f"[inferencers.x]\n{BASE}models.m = 1",
            'inferencers.x.models."m": must be a table, not a number',
        ),
        (
            f"[inferencers.x]\n{BASE}models.m = {{ effort = 'low', eforts = ['low'] }}",
            "inferencers.x.models.\"m\".eforts: unknown key; did you mean 'efforts'?",
        ),
        (
            f'[inferencers.x]\n{BASE}key = {{ env = "K" }}\napi_key_env = "K"',
            "inferencers.x: sets both 'key' and 'api_key_env': keep one",
        ),
    ],
)
def test_a_problem_is_told_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    assert [problem] == refused(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("woollama", BASE, "reserved"),
        ('"a/b"', BASE, "may not be empty or hold '/'"),
        ('""', BASE, "may not be empty or hold '/'"),
        ("x", 'base_url = "localhost:11434"', "is no address"),
        ("x", 'base_url = "ftp://h/v1"', "is no address"),
        ("x", 'base_url = "http://h/v1?key=s3cret"', "is no address"),
        ("x", 'base_url = "http://me:s3cret@h/v1"', "may not hold a user or password"),
        ("x", BASE + 'dialect = "chat"', "there is no dialect 'chat'"),
        ("x", BASE + 'dialect = "ollama"', "there is no dialect 'ollama' of kind 'openai'"),
        ("x", BASE + 'key = { env = "" }', "must name a variable"),
        ("x", BASE + 'key = { env = "K", place = "x-api-key" }', "reads its key from 'bearer'"),
        ("x", BASE + 'headers = { "a b" = "c" }', "cannot be sent"),
        ("x", BASE + 'headers = { a = "b\\nc" }', "cannot be sent"),
        ("x", BASE + 'models.m = { effort = "low" }', "is not among its efforts []"),
        (
            "x",
            BASE + 'dialect = "responses"\nmodels.m = { dialect = "compatible" }',
            "may not set the dialect",
        ),
    ],
)
def test_a_provider_that_cannot_work_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (problem,) = refused(tmp_path, f"[inferencers.{name}]\n{text}")
    assert words in problem
    assert problem.startswith(f"inferencers.{name.strip(chr(34))}: ")


OF_KIND: Mapping[str, Mapping[str, Any]] = {
    "openai": {"anthropic_version": "2023-06-01"},
    "anthropic": {
        "dialect": "compatible",
        "cache_key": "k",
        "output_field": "f",
        "stream_usage": True,
    },
    "ollama": {
        "dialect": "compatible",
        "cache_key": "k",
        "cache_control": True,
        "output_field": "f",
        "stream_usage": True,
        "anthropic_version": "2023-06-01",
    },
}
OF_MODEL: Mapping[str, Mapping[str, Any]] = {
    "openai": {"num_ctx": 1, "keep_alive": 1},
    "anthropic": {"dialect": "x", "seed": 1, "num_ctx": 1, "keep_alive": 1},
    "ollama": {"dialect": "x", "cache_control": True},
}


@pytest.mark.parametrize("kind", OF_KIND)
def test_n_17_ru_4_a_key_without_a_place_in_its_kind_is_refused(kind: str) -> None:
    table = {"base_url": "http://h/v1", "provider": kind, **OF_KIND[kind]}
    with pytest.raises(ConfigError) as caught:
        provider_from_table("x", table)
    assert [
        f"inferencers.x.{key}: a provider of kind {kind!r} has no place for it; remove"
        for key in sorted(OF_KIND[kind])
    ] == str(caught.value).splitlines()


@pytest.mark.parametrize("kind", OF_MODEL)
def test_n_17_ru_4_a_models_key_without_a_place_in_its_kind_is_refused(kind: str) -> None:
    table = {"base_url": "http://h/v1", "provider": kind, "models": {"m": OF_MODEL[kind]}}
    with pytest.raises(ConfigError) as caught:
        provider_from_table("x", table)
    assert [
        f'inferencers.x.models."m".{key}: kind {kind!r} has no place for it; remove it'
        for key in sorted(OF_MODEL[kind])
    ] == str(caught.value).splitlines()


@pytest.mark.parametrize(("temperature", "good"), [(0, True), (1.0, True), (1.5, False)])
def test_n_17_anthropics_temperature_is_between_0_and_1(temperature: float, *, good: bool) -> None:
    table = {
        "base_url": "http://h/v1",
        "provider": "anthropic",
        "models": {"m": {"temperature": temperature}},
    }
    if good:
        assert provider_from_table("x", table).model_settings["m"].temperature == temperature
        return
    with pytest.raises(ConfigError, match="must be between 0 and 1"):
        provider_from_table("x", table)


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = (
        '[inferencers.a]\nbase_url = "http://h"\nmodls = []\ndiscover = "yes"\n'
        "[inferencers.b]\n[other]\n"
        f'[inferencers.c]\n{BASE}provider = "ollama"\ndialect = "compatible"\n'
        "[inferencers.c.models.m]\nseeed = 1\n"
    )
    assert [
        "other: unknown table; providers are [inferencers.<name>]",
        "inferencers.a.modls: unknown key; did you mean 'models'?",
        "inferencers.a.discover: expected `bool | null`, got `str`",
        "inferencers.b: needs the key 'base_url'",
        "inferencers.c.dialect: a provider of kind 'ollama' has no place for it; remove",
        "inferencers.c.models.\"m\".seeed: unknown key; did you mean 'seed'?",
    ] == refused(tmp_path, text)


def test_a_bad_table_does_not_hide_the_other_tables_problems(tmp_path: Path) -> None:
    assert [
        "other: unknown table; providers are [inferencers.<name>]",
        "inferencers: must be a table",
    ] == refused(tmp_path, "inferencers = 1\nother = 2")


def test_a_check_returns_what_could_be_read_beside_the_problems(tmp_path: Path) -> None:
    path = tmp_path / "inferencers.toml"
    path.write_text(f"[inferencers.good]\n{BASE}[inferencers.bad]\n")
    providers, problems = check_inferencers(path, {})
    assert [*(provider.name for provider in BUILTIN), "good"] == [p.name for p in providers]
    assert [f"{path}: inferencers.bad: needs the key 'base_url'"] == [str(p) for p in problems]


def test_a_file_that_does_not_parse_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "inferencers.toml"
    path.write_text("[[")
    providers, problems = check_inferencers(path, {})
    assert BUILTIN == providers
    (problem,) = problems
    assert str(problem).startswith(f"{path}: is not valid TOML: ")


def test_a_wrong_address_of_ollama_is_one_of_the_problems(tmp_path: Path) -> None:
    path = tmp_path / "inferencers.toml"
    path.write_text("[inferencers.bad]\n")
    providers, problems = check_inferencers(path, {"WOOLLAMA_OLLAMA_URL": "nonsense"})
    assert BUILTIN == providers
    assert [
        "WOOLLAMA_OLLAMA_URL: base_url 'nonsense' is no address to add a path to.",
        f"{path}: inferencers.bad: needs the key 'base_url'",
    ] == [str(problem) for problem in problems]


def test_ru_5_a_key_that_is_not_built_yet_loads_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = (
        BASE + 'management_url = "u"\nmanagement_protocol = "p"\nparallel = 1\npool_max = 1\n'
        'queue_max = 1\nqueue_timeout = 1.5\nvirtual = { _a = "m" }'
    )
    with caplog.at_level(logging.WARNING):
        assert "http://h:1/v1" == one(tmp_path, "x", text).base_url
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{tmp_path / 'inferencers.toml'}: inferencers.x: not built yet, ignored: "
        "management_protocol, management_url, parallel, pool_max, queue_max, queue_timeout, virtual"
    )
