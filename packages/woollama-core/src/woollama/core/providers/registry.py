"""The registry: providers by name, model names to targets. A value its owner passes around."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from woollama.core.errors import ConfigError, RequestError, UnknownModel
from woollama.core.providers.builtin import BUILTIN, builtin_providers
from woollama.core.providers.configured import provider_from_table, read_inferencers
from woollama.core.providers.provider import Provider
from woollama.core.providers.target import Target

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ModelRegistry", "provider_names"]

_TARGETS_LIMIT = 1024
"""How many targets are kept; the names of models come from whoever asks."""


def provider_names() -> list[str]:
    """The names of the built-in providers, in their order."""
    return [provider.name for provider in BUILTIN]


class ModelRegistry:
    """Providers by name. Empty when made without any; reads no file unless asked to."""

    def __init__(
        self,
        inferencers: Mapping[str, Provider | Mapping[str, Any]] | Iterable[Provider] | None = None,
    ) -> None:
        """Holds the given providers.

        Args:
            inferencers: name to provider, or to a mapping with the keys of an ``[inferencers.x]``
                table; or just providers. The name of a mapping counts, not the provider's own.

        Raises:
            ConfigError: an unknown dialect or key, a missing ``base_url``, a name used twice.
        """
        self._providers: dict[str, Provider] = {}
        self._targets: dict[str, Target] = {}
        if isinstance(inferencers, Mapping):
            named = cast("Mapping[str, Provider | Mapping[str, Any]]", inferencers)
            for name, provider in named.items():
                self._put(_as_provider(name, provider))
            return
        for provider in inferencers or ():
            if provider.name in self._providers:
                raise ConfigError(f"Two providers have the name {provider.name!r}: rename one.")
            self._put(provider)

    @classmethod
    def builtin(cls, environ: Mapping[str, str] | None = None) -> "ModelRegistry":
        """The built-in providers, ``$WOOLLAMA_OLLAMA_URL`` honoured; no file is read.

        Raises:
            ConfigError: the variable holds no address.
        """
        registry = cls()
        # Not checked one by one: each call without a registry comes this way.
        registry._providers = {provider.name: provider for provider in builtin_providers(environ)}
        return registry

    @classmethod
    def from_config(
        cls, path: "Path | None" = None, environ: Mapping[str, str] | None = None
    ) -> "ModelRegistry":
        """The built-in providers with ``inferencers.toml`` put over them, read anew each time.

        Args:
            path: the file; None is the one in the configuration directory. It may be missing.
            environ: the environment; None is the process's own.

        Raises:
            ConfigError: anything wrong in the file, all of it at once.
        """
        environ = os.environ if environ is None else environ
        return cls(read_inferencers(path, environ))

    def add(
        self,
        provider: Provider | str,
        base_url: str | None = None,
        *,
        api_key_env: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a provider, or replaces the one of that name wholly.

        Either ``add(Provider(...))`` or ``add(name, base_url, api_key_env=…, extra_body=…)``.

        Raises:
            ConfigError: it cannot be used as it is; the message says why.
        """
        if not isinstance(provider, str):
            if base_url is not None or api_key_env is not None or extra_body is not None:
                raise ConfigError(
                    f"Provider {provider.name!r} is given whole: put the other arguments into it."
                )
        else:
            if not base_url:
                raise ConfigError(f"Provider {provider!r} needs a base_url.")
            provider = Provider(provider, base_url, api_key_env or None, extra_body or {})
        self._put(provider)

    def _put(self, provider: Provider) -> None:
        provider.check()
        self._providers[provider.name] = provider
        # Not emptied: whoever looks one up in another thread puts it into the old ones.
        self._targets = {}

    def get(self, name: str) -> Provider | None:
        """The provider of this name, None when there is none."""
        return self._providers.get(name)

    def names(self) -> list[str]:
        """The providers' names, sorted."""
        return sorted(self._providers)

    def all(self) -> dict[str, Provider]:
        """Name to provider, in the order of adding."""
        return dict(self._providers)

    def resolve(self, model: str) -> Target:
        """The target of ``<provider>/<model>``; the model may hold further slashes.

        Raises:
            UnknownModel: no such provider; the message lists those there are.
            RequestError: the name has no model.
        """
        targets = self._targets
        target = targets.get(model)
        if target is None:
            target = self._resolve(model)
            if len(targets) >= _TARGETS_LIMIT:
                targets.clear()
            targets[model] = target
        return target

    def _resolve(self, model: str) -> Target:
        name, slash, rest = model.partition("/")
        provider = self._providers.get(name)
        if provider is None:
            raise UnknownModel(self._unknown(model, name), param="model", code="model_not_found")
        if not slash or not rest:
            raise RequestError(
                f"{model!r} names a provider and no model: write {name}/<model>.", param="model"
            )
        return Target(provider, rest)

    def _unknown(self, model: str, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, self._providers, n=1)
        advice = f" Did you mean {near[0]!r}?" if near else ""
        known = ", ".join(self._providers) or "none"
        return f"No provider for the model {model!r}: known providers are {known}.{advice}"


def _as_provider(name: str, given: Provider | Mapping[str, Any]) -> Provider:
    if not isinstance(given, Mapping):
        return given if given.name == name else msgspec.structs.replace(given, name=name)
    return provider_from_table(name, given)
