"""P-62: the page of the configuration covers every file and every key, with its default."""

import logging
from collections.abc import Collection, Mapping
from typing import Any, cast

import msgspec
import pytest

from tests.docs.blocks import ROOT
from tests.docs.tables import tables_of
from woollama.core.config.files import Problem
from woollama.core.errors import ConfigError
from woollama.core.providers.configured import (
    CapabilityTable,
    InferencerTable,
    KeyTable,
    ModelTable,
    provider_from_table,
)
from woollama.core.providers.provider import Provider
from woollama.core.recipes import PatternsTable, RecipeTable, VariableTable
from woollama.core.retries import Retries
from woollama.core.transport import Timeouts
from woollama.core.wire import WireSettings
from woollama.server.local.config import LocalConfig, ModelConfig
from woollama.server.mcp.entries import McpEntry
from woollama.server.mcp.exports import Exports
from woollama.server.settings import SECTIONS, PluginSettings

PAGE = "docs/reference/configuration.md"
TABLES = tables_of(PAGE)
KINDS = ("openai", "ollama", "anthropic")
NOT_BUILT = {
    "management_protocol": "device",
    "management_url": "http://127.0.0.1:1",
    "parallel": 2,
    "pool_max": 2,
    "queue_max": 2,
    "queue_timeout": 1.0,
    "virtual": {"a": "b"},
}
# A value of each key that differs from its default.
SAMPLES: Mapping[str, Any] = {
    "anthropic_version": "2026-10-21",
    "api_key_env": "SOME_KEY",
    "audio": True,
    "base_url": "http://127.0.0.1:1/v1",
    "cache_control": True,
    "cache_key": "k",
    "capabilities": {"vision": True},
    "context": 4096,
    "dialect": "responses",
    "discover": True,
    "drop_params": ["seed"],
    "effort": "low",
    "efforts": ["low"],
    "extra_body": {"a": 1},
    "headers": {"x-a": "b"},
    "keep_alive": "5m",
    "key": {"env": "SOME_KEY"},
    "max_output_tokens": 100,
    "merge_system": True,
    "model_patterns": ["a*"],
    "models": ["a"],
    "num_ctx": 4096,
    "output_field": "max_completion_tokens",
    "prices": {"input": 1},
    "provider": None,  # set by each test
    "relay": False,
    "replay_reasoning": True,
    "schema_mode": "inline",
    "seed": 1,
    "serves": {"chat": ["*"]},
    "stream_usage": False,
    "structured": True,
    "temperature": 0.5,
    "think_tags": True,
    "vision": True,
}


def _fields(shape: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(shape)}


def _printed(value: object) -> str:
    """A default as the page writes it."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        assert not value
        return "{}"
    if isinstance(value, tuple | frozenset | list):
        return msgspec.json.encode(sorted(cast("Collection[Any]", value))).decode()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value).decode()


def _defaults(shape: type[msgspec.Struct]) -> dict[str, str]:
    return {
        field.encode_name: "required"
        if field.required
        else _printed(
            field.default_factory()
            if field.default_factory is not msgspec.NODEFAULT
            else field.default
        )
        for field in msgspec.structs.fields(shape)
    }


def _rows(heading: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in TABLES[heading]}


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_p_62_the_daemons_settings_are_there_with_their_defaults(section: str) -> None:
    expected = _defaults(SECTIONS[section])
    if section == "timeouts":
        defaults = msgspec.structs.asdict(Timeouts())
        expected = {
            key: _printed(value if value is not None else 0) for key, value in defaults.items()
        }
    if section == "retries":
        expected = {
            key: _printed(value) for key, value in msgspec.structs.asdict(Retries()).items()
        }
    rows = _rows(f"[{section}]" if section else "Before the first table")
    assert expected == {key: row[0] for key, row in rows.items()}


def test_p_62_plugins_and_their_sections_are_there() -> None:
    assert {"enabled": _defaults(PluginSettings)["enabled"]} == {
        key: row[0] for key, row in _rows("[plugins]").items()
    }
    assert _defaults(LocalConfig) == {key: row[0] for key, row in _rows("[plugins.local]").items()}
    rows = _rows('[plugins.local.models."<name>"]')
    assert _defaults(ModelConfig) == {key: row[0] for key, row in rows.items()}


def test_p_62_every_key_of_a_provider_is_there_with_its_default() -> None:
    rows = _rows("[inferencers.<name>]")
    assert _fields(InferencerTable) == set(rows) | set(NOT_BUILT)

    provider, wire = Provider("x", "http://x"), WireSettings()
    values = {**msgspec.structs.asdict(provider), **msgspec.structs.asdict(wire)}
    values |= {
        "base_url": "required",
        "capabilities": None,
        "dialect": "compatible",
        "extra_body": {},
        "headers": provider.extra_headers,
        "provider": provider.kind,
    }
    expected = {
        key: values[key] if values[key] == "required" else _printed(values[key]) for key in rows
    }
    assert expected == {key: row[1] for key, row in rows.items()}


@pytest.mark.parametrize(
    ("heading", "shape"),
    [
        ("key", KeyTable),
        ("capabilities", CapabilityTable),
        ("[recipes.<name>]", RecipeTable),
        ("[recipes.<name>.variables.<variable>]", VariableTable),
        ("[patterns]", PatternsTable),
        ("mcpServers.<name>", McpEntry),
        ("export", Exports),
    ],
)
def test_p_62_the_small_tables_are_there(heading: str, shape: type[msgspec.Struct]) -> None:
    assert _defaults(shape) == {key: row[0] for key, row in _rows(heading).items()}


def test_p_62_every_key_of_a_model_is_there() -> None:
    assert _fields(ModelTable) == set(_rows('[inferencers.<name>.models."<id>"]'))


def _taken(kind: str, table: Mapping[str, Any]) -> bool:
    try:
        provider_from_table("x", {"base_url": "http://x/v1", **table, "provider": kind})
    except ConfigError as error:
        refusal = error.message
    else:
        return True
    assert "no place" in refusal, refusal
    return False


@pytest.mark.parametrize("key", sorted(_rows("[inferencers.<name>]")))
def test_a_key_of_a_provider_has_its_place_in_the_kinds_that_the_page_says(key: str) -> None:
    taken = [kind for kind in KINDS if _taken(kind, {key: SAMPLES[key]})]
    printed = _rows("[inferencers.<name>]")[key][0]
    assert taken == (list(KINDS) if printed == "all" else printed.split(", "))


@pytest.mark.parametrize("key", sorted(_fields(ModelTable)))
def test_a_key_of_a_model_has_its_place_in_the_kinds_that_the_page_says(key: str) -> None:
    table = {key: SAMPLES[key]} | ({"efforts": ["low"]} if key == "effort" else {})
    taken = [kind for kind in KINDS if _taken(kind, {"models": {"m": table}})]
    printed = _rows('[inferencers.<name>.models."<id>"]')[key][0]
    assert taken == (list(KINDS) if printed == "all" else printed.split(", "))


def test_keys_of_features_that_are_not_built_load_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RU-5."""
    with caplog.at_level(logging.WARNING):
        provider_from_table("x", {"base_url": "http://x/v1", **NOT_BUILT})
    assert 1 == len(caplog.messages)
    text = (ROOT / PAGE).read_text("utf-8").partition('id="not-built"')[2].partition("\n\n")[0]
    for key in NOT_BUILT:
        assert key in caplog.messages[0]
        assert f"`{key}`" in text


def test_a_problem_names_its_file_and_its_place() -> None:
    problem = Problem("inferencers.toml", "inferencers.x.base", "unknown key")
    assert "inferencers.toml: inferencers.x.base: unknown key" == str(problem)
