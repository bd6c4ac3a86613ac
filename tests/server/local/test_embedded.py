"""The plugin ``local`` by its contract."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from woollama.core.errors import ConfigError
from woollama.core.providers import ModelRegistry, ModelSettings
from woollama.core.scopes import open_tasks
from woollama.core.transport import Timeouts
from woollama.core.transport.http import HttpTransport
from woollama.server.local import plugin
from woollama.server.local.config import LocalConfig, ModelConfig
from woollama.server.local.embedded import LoadingNotice, LocalPlugin
from woollama.server.local.models import BUNDLED_MODEL
from woollama.server.plugins.contract import PLUGIN_API_VERSION, PluginContext
from woollama.server.plugins.loader import load_plugins
from woollama.server.supervision import ChildEvent, ChildState


@asynccontextmanager
async def context_of(
    config_dir: Path, config: LocalConfig | None = None
) -> AsyncGenerator[PluginContext]:
    transport = HttpTransport()
    async with open_tasks() as tasks:
        yield PluginContext(
            config=config,
            config_dir=config_dir,
            transport=transport,
            tasks=tasks,
            notice=lambda _line: None,
        )
    await transport.aclose()


def test_the_entry_point_gives_the_plugin() -> None:
    (entry,) = entry_points(group="woollama.plugins", name="local")
    made = entry.load()()
    assert isinstance(made, LocalPlugin)
    assert isinstance(plugin(), LocalPlugin)
    assert ("local", PLUGIN_API_VERSION, LocalConfig) == (
        made.name,
        made.api_version,
        made.config_type,
    )


def test_its_section_is_read_by_the_loader_and_a_wrong_key_is_named() -> None:
    (enabled,) = load_plugins(("local",), {"local": {"models": {"x": {"path": "x.gguf"}}}})
    assert LocalConfig(models={"x": ModelConfig(path="x.gguf")}) == enabled.config
    (enabled,) = load_plugins(("local",), {})
    assert LocalConfig() == enabled.config
    with pytest.raises(ConfigError, match=r"plugins\.local.*pfad"):
        load_plugins(("local",), {"local": {"models": {"x": {"pfad": "x.gguf"}}}})


async def test_ru_52_it_brings_a_provider_with_a_transport_of_its_own(tmp_path: Path) -> None:
    async with context_of(tmp_path) as context:
        (provided,) = LocalPlugin().providers(context)
        registry = ModelRegistry([provided.provider])
        target = registry.resolve(f"local/{BUNDLED_MODEL}")
        request = target.dialect.codec.models_request(provided.provider.base_url)
        assert provided.provider.discover
        assert provided.provider.credential is None
        async with provided.transport.open(request, timeouts=Timeouts()) as reply:
            body = b"".join([chunk async for chunk in reply.chunks])
        listed = [info.id for info in target.dialect.codec.decode_models(body)]
        assert BUNDLED_MODEL in listed


async def test_the_bundled_model_is_declared_with_temperature_zero(tmp_path: Path) -> None:
    config = LocalConfig(
        models={
            "big": ModelConfig(path="big.gguf", context=4096),
            "plain": ModelConfig(path="plain.gguf", temperature=0.5),
        }
    )
    async with context_of(tmp_path, config) as context:
        (provided,) = LocalPlugin().providers(context)
    assert {
        BUNDLED_MODEL: ModelSettings(context=8192, temperature=0.0),
        "big": ModelSettings(context=4096),
        "plain": ModelSettings(context=8192, temperature=0.5),
    } == provided.provider.model_settings


async def test_a_declared_setting_of_the_bundled_model_goes_over_ours(tmp_path: Path) -> None:
    config = LocalConfig(models={BUNDLED_MODEL: ModelConfig(context=1024)})
    async with context_of(tmp_path, config) as context:
        (provided,) = LocalPlugin().providers(context)
    declared = provided.provider.model_settings[BUNDLED_MODEL]
    assert ModelSettings(context=1024, temperature=0.0) == declared


async def test_setup_refuses_a_section_that_names_what_is_not_there(tmp_path: Path) -> None:
    async with context_of(tmp_path, LocalConfig(models_dir="nowhere")) as context:
        with pytest.raises(ConfigError, match=r"plugins\.local\.models_dir"):
            await LocalPlugin().setup(context)


async def test_setup_and_teardown_without_a_section_do_nothing(tmp_path: Path) -> None:
    async with context_of(tmp_path) as context:
        made = LocalPlugin()
        await made.setup(context)
        await made.teardown(context)


def event(name: str, state: ChildState) -> ChildEvent:
    return ChildEvent(name=name, state=state, pid=None, elapsed_s=0)


def test_a_person_is_told_what_is_loading_and_when_nothing_is() -> None:
    told: list[str] = []
    notice = LoadingNotice(told.append)
    notice(event("local/a", "starting"))
    notice(event("local/b", "starting"))
    notice(event("local/b", "ready"))
    notice(event("local/a", "failed"))
    notice(event("local/b", "ended"))
    assert ["Loading local/a …", "Loading local/b …", "Loading local/a …", ""] == told
