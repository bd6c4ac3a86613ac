"""``inferencers.toml``: tables to providers, merged field by field over the built-in ones."""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec

from woollama.core.canonical import Capabilities
from woollama.core.config.files import Problem, config_dir, read_file, read_table, refuse
from woollama.core.errors import ConfigError
from woollama.core.providers.builtin import BUILTIN, builtin_providers
from woollama.core.providers.provider import Credential, Kind, ModelSettings, Provider
from woollama.core.wire import WireSettings

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "InferencerTable",
    "NAMED_TABLES",
    "check_inferencers",
    "provider_from_table",
    "read_inferencers",
]

_log = logging.getLogger(__name__)

NAMED_TABLES = (
    ("inferencers",),
    ("inferencers", "*", "models"),
    ("inferencers", "*", "models", "*", "prices", "**"),
    ("inferencers", "*", "headers"),
    ("inferencers", "*", "extra_body", "**"),
    ("inferencers", "*", "serves"),
    ("inferencers", "*", "virtual"),
)
"""The tables of ``inferencers.toml`` whose keys people choose."""

_NOT_BUILT = frozenset(
    {
        "management_url",
        "management_protocol",
        "parallel",
        "pool_max",
        "queue_max",
        "queue_timeout",
        "virtual",
    }
)
_WIRE_KEYS = frozenset(
    {
        "output_field",
        "stream_usage",
        "cache_control",
        "cache_key",
        "anthropic_version",
        "merge_system",
        "replay_reasoning",
        "schema_mode",
        "drop_params",
    }
)
_NO_PLACE: Mapping[Kind, frozenset[str]] = MappingProxyType(
    {
        "openai": frozenset({"anthropic_version"}),
        "anthropic": frozenset({"dialect", "cache_key", "output_field", "stream_usage"}),
        "ollama": frozenset(
            {
                "dialect",
                "output_field",
                "cache_key",
                "cache_control",
                "anthropic_version",
                "stream_usage",
            }
        ),
    }
)
_MODEL_NO_PLACE: Mapping[Kind, frozenset[str]] = MappingProxyType(
    {
        "openai": frozenset({"num_ctx", "keep_alive"}),
        "anthropic": frozenset({"dialect", "seed", "num_ctx", "keep_alive"}),
        "ollama": frozenset({"dialect", "cache_control"}),
    }
)


_Count = Annotated[int, msgspec.Meta(ge=1)]


class CapabilityTable(msgspec.Struct, forbid_unknown_fields=True):
    """``[inferencers.<name>.capabilities]``: what the provider's models accept beside text."""

    vision: bool = False
    audio: bool = False
    structured: bool = False


class ModelTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """``[inferencers.<name>.models."<id>"]``: what is declared of one model."""

    dialect: str | None = None
    efforts: list[str] | None = None
    effort: str | None = None
    vision: bool | None = None
    audio: bool | None = None
    structured: bool | None = None
    max_output_tokens: _Count | None = None
    context: _Count | None = None
    num_ctx: _Count | None = None
    keep_alive: str | int | None = None
    temperature: float | None = None
    seed: int | None = None
    cache_control: bool | None = None
    prices: dict[str, Any] | None = None
    capabilities: CapabilityTable | None = None


class KeyTable(msgspec.Struct, forbid_unknown_fields=True):
    """``key = { env, place, hosts }``: a credential in full."""

    env: str
    place: str | None = None
    hosts: list[str] = []


class InferencerTable(msgspec.Struct, omit_defaults=True):
    """``[inferencers.<name>]``: one provider. What is missing is inherited from the built-in.

    ``provider`` is the kind of API. ``models`` is a list of names, or a table of model tables.
    """

    base_url: str | None = None
    provider: Kind | None = None
    dialect: str | None = None
    api_key_env: str | None = None
    key: KeyTable | None = None
    headers: dict[str, str] | None = None
    extra_body: dict[str, Any] | None = None
    models: list[str] | dict[str, Any] | None = None
    discover: bool | None = None
    model_patterns: list[str] | None = None
    capabilities: CapabilityTable | None = None
    serves: dict[str, list[str]] | None = None
    relay: bool | None = None
    think_tags: bool | None = None
    output_field: str | None = None
    stream_usage: bool | None = None
    cache_control: bool | None = None
    cache_key: str | None = None
    anthropic_version: Literal["2023-06-01", "2026-10-21"] | None = None
    merge_system: bool | None = None
    replay_reasoning: bool | None = None
    schema_mode: Literal["as_is", "inline", "normalize"] | None = None
    drop_params: list[str] | None = None
    management_url: str | None = None
    management_protocol: str | None = None
    parallel: int | None = None
    pool_max: int | None = None
    queue_max: int | None = None
    queue_timeout: float | None = None
    virtual: dict[str, str] | None = None


def read_inferencers(path: "Path | None", environ: Mapping[str, str]) -> tuple[Provider, ...]:
    """The built-in providers with the file put over them; a missing file changes nothing.

    Raises:
        ConfigError: everything that is wrong in the file, by place.
    """
    path = path if path is not None else config_dir(environ) / "inferencers.toml"
    providers, problems = check_inferencers(path, environ)
    if problems:
        raise refuse(problems)
    return providers


def check_inferencers(
    path: "Path", environ: Mapping[str, str]
) -> tuple[tuple[Provider, ...], list[Problem]]:
    """As ``read_inferencers``, but the problems are returned beside what could be read."""
    problems: list[Problem] = []
    known = BUILTIN
    tree: Mapping[str, Any] = {}
    file = str(path)
    try:
        known = builtin_providers(environ)
    except ConfigError as error:
        problems.append(Problem("", "", error.message))
    try:
        tree = read_file(path, environ, named=NAMED_TABLES)
    except ConfigError as error:
        problems.append(Problem("", "", error.message))
    providers = {provider.name: provider for provider in known}
    problems.extend(
        Problem(file, key, "unknown table; providers are [inferencers.<name>]")
        for key in tree
        if key != "inferencers"
    )
    tables = tree.get("inferencers", {})
    if not isinstance(tables, Mapping):
        problems.append(Problem(file, "inferencers", "must be a table"))
        tables = {}
    for name, raw in cast("Mapping[str, Any]", tables).items():
        place = f"inferencers.{name}"
        provider, found = _provider(name, raw, providers.get(name), file=file, place=place)
        problems.extend(found)
        if provider is not None:
            providers[name] = provider
    return tuple(providers.values()), problems


def provider_from_table(name: str, table: Mapping[str, Any]) -> Provider:
    """A provider from a mapping with the keys of an ``[inferencers.<name>]`` table.

    Raises:
        ConfigError: everything that is wrong in it.
    """
    provider, problems = _provider(name, table, None, file="", place=f"inferencers.{name}")
    if provider is None or problems:
        raise refuse(problems)
    return provider


def _provider(
    name: str, raw: object, base: Provider | None, *, file: str, place: str
) -> tuple[Provider | None, list[Problem]]:
    table, problems = read_table(_tolerant(raw), InferencerTable, file=file, place=place)
    if table is None:
        return None, problems
    kind = table.provider or (base.kind if base is not None else "openai")
    given = {key for key, value in msgspec.structs.asdict(table).items() if value is not None}
    problems = [
        Problem(file, f"{place}.{key}", f"a provider of kind {kind!r} has no place for it; remove")
        for key in sorted(given & _NO_PLACE[kind])
    ]
    models, found = _models(table, kind, file=file, place=place)
    problems.extend(found)
    if not (table.base_url or (base is not None and base.base_url)):
        problems.append(Problem(file, place, "needs the key 'base_url'"))
    if table.key is not None and table.api_key_env is not None:
        problems.append(Problem(file, place, "sets both 'key' and 'api_key_env': keep one"))
    if problems:
        return None, problems
    waiting = sorted(given & _NOT_BUILT)
    if waiting:
        _log.warning("%s: %s: not built yet, ignored: %s", file, place, ", ".join(waiting))
    provider = _merged(name, table, base, kind, models)
    try:
        provider.check()
    except ConfigError as error:
        return None, [Problem(file, place, error.message)]
    return provider, []


def _tolerant(raw: object) -> object:
    # An api_key_env that is no string means: no key (core API, section 8).
    if not isinstance(raw, Mapping):
        return raw
    table = dict(cast("Mapping[str, Any]", raw))
    if "api_key_env" in table and not isinstance(table["api_key_env"], str):
        table["api_key_env"] = ""
    return table


def _models(
    table: InferencerTable, kind: Kind, *, file: str, place: str
) -> tuple[dict[str, ModelSettings], list[Problem]]:
    if not isinstance(table.models, dict):
        return {}, []
    settings: dict[str, ModelSettings] = {}
    problems: list[Problem] = []
    for model, raw in table.models.items():
        where = f'{place}.models."{model}"'
        own, found = read_table(raw, ModelTable, file=file, place=where)
        problems.extend(found)
        if own is None:
            continue
        given = {key for key, value in msgspec.structs.asdict(own).items() if value is not None}
        problems.extend(
            Problem(file, f"{where}.{key}", f"kind {kind!r} has no place for it; remove it")
            for key in sorted(given & _MODEL_NO_PLACE[kind])
        )
        if kind == "anthropic" and own.temperature is not None and not 0 <= own.temperature <= 1:
            problems.append(Problem(file, f"{where}.temperature", "must be between 0 and 1"))
        settings[model] = _model_settings(own)
    return settings, problems


def _model_settings(table: ModelTable) -> ModelSettings:
    fields = {
        key: value
        for key, value in msgspec.structs.asdict(table).items()
        if value is not None and key != "capabilities"
    }
    if table.capabilities is not None:
        declared = msgspec.structs.asdict(table.capabilities)
        fields = {**declared, **fields}
    if "efforts" in fields:
        fields["efforts"] = tuple(fields["efforts"])
    return ModelSettings(**fields)


def _merged(
    name: str,
    table: InferencerTable,
    base: Provider | None,
    kind: Kind,
    models: dict[str, ModelSettings],
) -> Provider:
    base = base if base is not None else Provider(name, table.base_url or "")
    wire = {
        key: value
        for key, value in msgspec.structs.asdict(table).items()
        if key in _WIRE_KEYS and value is not None
    }
    if table.drop_params is not None:
        wire["drop_params"] = frozenset(table.drop_params)
    settings: WireSettings = msgspec.structs.replace(base.settings, **wire)
    names = tuple(models) if models else tuple(table.models or ())
    return msgspec.structs.replace(
        base,
        base_url=table.base_url or base.base_url,
        kind=kind,
        dialect=base.dialect if table.dialect is None else table.dialect,
        api_key_env=base.api_key_env if table.api_key_env is None else table.api_key_env or None,
        key=_credential(table, base),
        extra_headers=table.headers or base.extra_headers,
        extra_body=table.extra_body or base.extra_body,
        models=names or base.models,
        discover=base.discover if table.discover is None else table.discover,
        model_patterns=tuple(table.model_patterns or base.model_patterns),
        capabilities=_capabilities(table.capabilities) or base.capabilities,
        serves=_globs(table.serves) or base.serves,
        relay=base.relay if table.relay is None else table.relay,
        think_tags=base.think_tags if table.think_tags is None else table.think_tags,
        model_settings=models or base.model_settings,
        settings=settings,
    )


def _credential(table: InferencerTable, base: Provider) -> Credential | None:
    if table.key is None:
        return base.key if table.api_key_env is None else None
    key = table.key
    return Credential(env=key.env, place=key.place, hosts=tuple(key.hosts))


def _capabilities(table: CapabilityTable | None) -> Capabilities | None:
    if table is None:
        return None
    return Capabilities(table.vision, table.audio, table.structured)


def _globs(table: dict[str, list[str]] | None) -> dict[str, tuple[str, ...]]:
    return {name: tuple(globs) for name, globs in (table or {}).items()}
