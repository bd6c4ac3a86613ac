"""A provider: a reachable inference service, how it is spoken to, which key it takes."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from woollama.core.canonical import NOTHING, Capabilities, Value
from woollama.core.errors import ConfigError
from woollama.core.providers.addresses import check_address, host_of
from woollama.core.providers.keys import name_of_place, place_key
from woollama.core.wire import Dialect, WireSettings

__all__ = ["Credential", "Inferencer", "Kind", "ModelSettings", "Provider"]

Kind = Literal["openai", "ollama", "anthropic"]

_RESERVED_NAME = "woollama"  # of recipes and patterns
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Credential(Value, frozen=True, kw_only=True):
    """Where a key comes from and where it may go (promise P-7).

    Attributes:
        env: the environment variable that holds it.
        place: ``bearer``, or a header's name; must be where the dialect reads it. None is there.
        hosts: the only hosts that get it; empty is the host of the provider's ``base_url``.
    """

    env: str
    place: str | None = None
    hosts: tuple[str, ...] = ()


class ModelSettings(Value, frozen=True, kw_only=True):
    """What an operator declares of one model (RU-4). None and empty are: not declared.

    Attributes:
        dialect: only when the provider sets none (A-6).
        efforts: the efforts the model takes; ``effort`` is the one sent unless a request names one.
        vision, audio, structured: what it accepts, over the provider's capabilities.
        max_output_tokens: its output cap.
        context: its context size in tokens, for people and lists.
        num_ctx, keep_alive: Ollama's.
        temperature, seed: sent when a request names none.
        prices: free form, for people and lists.
    """

    dialect: str | None = None
    efforts: tuple[str, ...] = ()
    effort: str | None = None
    vision: bool | None = None
    audio: bool | None = None
    structured: bool | None = None
    max_output_tokens: int | None = None
    context: int | None = None
    num_ctx: int | None = None
    keep_alive: str | int | None = None
    temperature: float | None = None
    seed: int | None = None
    cache_control: bool | None = None
    prices: Mapping[str, Any] = NOTHING


class _Positional(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields that callers give by position (RU-21)."""

    name: str
    base_url: str
    api_key_env: str | None = None
    extra_body: Mapping[str, Any] = NOTHING
    models: tuple[str, ...] = ()
    discover: bool = False
    model_patterns: tuple[str, ...] = ()
    capabilities: Capabilities = Capabilities()


class Provider(_Positional, frozen=True, kw_only=True):
    """A reachable inference service. ``Inferencer`` is the same class by its older name.

    Attributes:
        name: what stands before the first ``/`` of a model name.
        base_url: where its API begins, usually ending in ``/v1``; kept as given.
        api_key_env: the variable that holds the key; None needs none. Short for ``key``.
        extra_body: fields under every body of this provider; the request's own win (RU-14).
        models: the models to list without asking.
        discover: whether to ask the provider for its list.
        model_patterns: globs; of what was discovered only matches are listed.
        capabilities: what its models accept unless one declares otherwise.
        kind: whose API it is: ``openai``, ``ollama`` or ``anthropic``.
        dialect: how kind ``openai`` is spoken; empty is ``compatible``.
        key: the credential in full; wins over ``api_key_env``.
        extra_headers: sent with every request; their values never show in a ``repr``.
        relay: whether bytes pass when both sides speak the same dialect (RU-15).
        think_tags: whether ``<think>`` text inside content is thinking (C-10).
        serves: capability (``chat``, ``embedding`` …) to globs of models that have it (RU-46).
        model_settings: what is declared of single models.
        settings: what changes the wire bodies.
    """

    kind: Kind = "openai"
    dialect: str = ""
    key: Credential | None = None
    extra_headers: Mapping[str, str] = NOTHING
    relay: bool = True
    think_tags: bool = False
    serves: Mapping[str, tuple[str, ...]] = NOTHING
    model_settings: Mapping[str, ModelSettings] = NOTHING
    settings: WireSettings = WireSettings()

    def __repr__(self) -> str:
        """Name, address and kind: headers and bodies may hold secrets."""
        url = re.sub(r"//[^/]*@", "//", self.base_url)
        return f"Provider({self.name!r}, {url!r}, kind={self.kind!r})"

    def __getitem__(self, key: str) -> Any:
        """The fields that callers of the dict-like registry index (core API, section 1)."""
        if key in self.keys():
            return getattr(self, key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        """The keys, as of a dict."""
        return iter(self.keys())

    def keys(self) -> tuple[str, ...]:
        """What ``provider[key]`` answers; ``dict(provider)`` takes them all."""
        return ("name", "base_url", "api_key_env", "extra_body")

    @property
    def credential(self) -> Credential | None:
        """The key's source, whichever way it was declared; None when no key is needed."""
        if self.key is not None:
            return self.key
        return Credential(env=self.api_key_env) if self.api_key_env else None

    def dialect_for(self, model: str) -> Dialect:
        """The dialect of one model: the provider's, or its own where the provider sets none.

        Raises:
            ConfigError: there is no such dialect, or it may not be set here (A-5, A-6).
        """
        own = self.model_settings.get(model)
        name = own.dialect if own is not None and own.dialect else self.dialect
        if self.kind != "openai":
            if name:
                raise ConfigError(
                    f"Provider {self.name!r} is of kind {self.kind!r}, which has no dialects: "
                    f"remove dialect = {name!r}."
                )
            name = self.kind
        elif own is not None and own.dialect and self.dialect:
            raise ConfigError(
                f"Model {self.name}/{model} may not set the dialect {own.dialect!r}: its provider "
                f"sets {self.dialect!r} for all its models."
            )
        from woollama.core.wire.dialects import DIALECTS  # loaded by the first that is spoken

        dialect = DIALECTS.get(name or "compatible")
        if dialect is None or (dialect.family != self.kind):
            known = sorted(d.name for d in DIALECTS.values() if d.family == self.kind)
            raise ConfigError(
                f"Provider {self.name!r}: there is no dialect {name!r} of kind {self.kind!r}; "
                f"known are {', '.join(known)}."
            )
        return dialect

    def check(self) -> None:
        """What a registry refuses when a provider is added.

        Raises:
            ConfigError: a name or an address that cannot be used, an unknown dialect, a key in a
                place its dialect does not read, a header that cannot be sent, an undeclared effort.
        """
        self._check_name()
        check_address(self.base_url, owner=f"Provider {self.name!r}")
        if self.key is not None and not self.key.env:
            raise ConfigError(f"Provider {self.name!r}: the key's 'env' must name a variable.")
        for name, value in self.extra_headers.items():
            if not _HEADER_NAME.fullmatch(name) or not (value.isascii() and value.isprintable()):
                raise ConfigError(
                    f"Provider {self.name!r}: the header {name!r} cannot be sent: a name or value "
                    "holds characters that no header can carry."
                )
        for model in ("", *self.model_settings):
            dialect = self.dialect_for(model)
            place = self.key.place if self.key is not None else None
            expected = name_of_place(dialect.key_place)
            if place is not None and place.lower() != expected:
                raise ConfigError(
                    f"Provider {self.name!r}: the dialect {dialect.name!r} reads its key from "
                    f"{expected!r}, not from {place!r}."
                )
        for model, own in self.model_settings.items():
            if own.effort is not None and own.effort not in own.efforts:
                raise ConfigError(
                    f"Model {self.name}/{model}: effort {own.effort!r} is not among its efforts "
                    f"{list(own.efforts)}."
                )

    def _check_name(self) -> None:
        if not self.name or "/" in self.name:
            raise ConfigError(f"A provider's name may not be empty or hold '/': {self.name!r}.")
        if self.name == _RESERVED_NAME:
            raise ConfigError(
                f"The name {self.name!r} is reserved for recipes and patterns: choose another."
            )

    def has_capability(self, model: str, capability: str) -> bool | None:
        """Whether ``serves`` says that a model does a thing; None when it does not say.

        A model declared for something else only is a no.
        """
        if not self.serves:
            return None
        from fnmatch import fnmatchcase

        found = {
            name
            for name, globs in self.serves.items()
            if any(fnmatchcase(model, glob) for glob in globs)
        }
        return None if not found else capability in found

    def headers(self, api_key: str | None = None) -> dict[str, str]:
        """The headers of a request, the key in its place.

        Raises:
            ConfigError: a key is needed and neither the argument nor its variable gives one.
        """
        headers = {"content-type": "application/json", **self.own_headers()}
        place = self.dialect_for("").key_place
        return place_key(place, headers, self.find_key(api_key), owner=self.name)

    def own_headers(self) -> dict[str, str]:
        """``extra_headers`` with their names in lower case, as everywhere."""
        return {name.lower(): value for name, value in self.extra_headers.items()}

    def chat_url(self) -> str:
        """Where chat requests of the provider's dialect go."""
        base = self.base_url.rstrip("/")
        match self.dialect_for("").name:
            case "responses":
                return f"{base}/responses"
            case "anthropic":
                return f"{base}/messages"
            case "ollama":
                return f"{base.removesuffix('/v1')}/api/chat"
            case _:
                return f"{base}/chat/completions"

    def find_key(self, api_key: str | None = None, *, url: str | None = None) -> str | None:
        """The key to send: the caller's own, else the one in the variable, read now.

        Args:
            api_key: the caller's; empty is none.
            url: where the request goes; None is the provider's own address.

        Raises:
            ConfigError: a key is needed and there is none, or it may not go to this host (A-15).
        """
        given = (api_key or "").strip()
        credential = self.credential
        if given or credential is None:
            return given or None
        host = host_of(url or self.base_url)
        hosts = [name.lower() for name in credential.hosts] or [host_of(self.base_url)]
        if host not in hosts:
            raise ConfigError(
                f"The key of provider {self.name!r} may go to {', '.join(map(str, hosts))} only, "
                f"not to {host!r}."
            )
        key = os.environ.get(credential.env, "").strip()
        if not key:
            raise ConfigError(
                f"Provider {self.name!r} needs a key: set the environment variable "
                f"{credential.env}.",
                code="missing_api_key",
            )
        return key


Inferencer = Provider
