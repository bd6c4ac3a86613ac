"""The plugin ``local``: models in GGUF files, run by llama.cpp in child processes of ours."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import anyio.to_thread

from woollama.core.providers import Provider
from woollama.server.local.config import LocalConfig
from woollama.server.local.models import LocalModel, declared_settings, find_models
from woollama.server.local.residents import Residents
from woollama.server.local.transport import PLACEHOLDER_URL, LocalTransport
from woollama.server.plugins.contract import Plugin, PluginContext, ProvidedProvider
from woollama.server.supervision import ChildEvent

__all__ = ["LoadingNotice", "LocalPlugin"]


class LocalPlugin(Plugin):
    """Brings the provider ``local``. A model is loaded by the first request that names it."""

    name = "local"
    api_version = 1
    summary = "Models in GGUF files, run by llama.cpp in child processes."
    config_type = LocalConfig

    def providers(self, context: PluginContext) -> Sequence[ProvidedProvider]:
        """The one provider, with a transport that starts what it needs (RU-52)."""
        config = _section(context)
        provider = Provider(
            "local", PLACEHOLDER_URL, discover=True, model_settings=declared_settings(config)
        )
        residents = Residents(context.tasks, config, on_event=LoadingNotice(context.notice))
        transport = LocalTransport(context.transport, residents, _finder(context))
        return (ProvidedProvider(provider=provider, transport=transport),)

    async def setup(self, context: PluginContext) -> None:
        """Looks for models where the section says they are; opens none.

        Raises:
            ConfigError: the section names a directory that is not there, or a model without a file.
        """
        await anyio.to_thread.run_sync(_finder(context))


class LoadingNotice:
    """An observer of children that tells a person which model is being loaded."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        """``notice`` gets one line while something loads, and ``""`` when nothing does any more."""
        self._notice = notice
        self._loading: list[str] = []

    def __call__(self, event: ChildEvent) -> None:
        """Take note of what happened to one child."""
        if event.state == "starting":
            self._loading.append(event.name)
        elif event.name in self._loading:
            self._loading.remove(event.name)
        else:
            return
        self._notice(f"Loading {self._loading[-1]} …" if self._loading else "")


def _section(context: PluginContext) -> LocalConfig:
    return context.config if isinstance(context.config, LocalConfig) else LocalConfig()


def _finder(context: PluginContext) -> Callable[[], Mapping[str, LocalModel]]:
    return partial(find_models, _section(context), config_dir=context.config_dir)
