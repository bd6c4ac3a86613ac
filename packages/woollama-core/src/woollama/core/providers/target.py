"""A target: provider + dialect + model, ready to be asked."""

from collections.abc import Iterator

import msgspec

from woollama.core.canonical import Capabilities, ChatRequest
from woollama.core.errors import CannotEncode, RequestError
from woollama.core.providers.addresses import check_address
from woollama.core.providers.keys import place_key
from woollama.core.providers.provider import ModelSettings, Provider
from woollama.core.wire import Dialect, WireRequest, WireSettings
from woollama.core.wire.refusals import asks_for_nothing

__all__ = ["Target", "check_effort"]

_NOT_DECLARED = ModelSettings()
_BEYOND_A_REPLY = ("n", "modalities")
"""What a provider would do, and a canonical reply, one message of text and calls, cannot hold."""


class Target:
    """One model of one provider. Unpacks as ``(provider, model)``.

    Attributes:
        provider: who is asked.
        model: the provider's own name of the model.
        dialect: how it is asked.
        declared: what the operator declared of this model.
    """

    __slots__ = ("_settings", "declared", "dialect", "model", "provider")

    def __init__(self, provider: Provider, model: str) -> None:
        """Looks the dialect and the model's settings up once."""
        self.provider: Provider = provider
        self.model: str = model
        self.dialect: Dialect = provider.dialect_for(model)
        self.declared: ModelSettings = provider.model_settings.get(model, _NOT_DECLARED)
        self._settings: WireSettings | None = None

    def __iter__(self) -> Iterator[Provider | str]:
        """``provider, model = target``."""
        return iter((self.provider, self.model))

    def __repr__(self) -> str:
        """The name it is asked for by."""
        return f"Target({self.name!r}, dialect={self.dialect.name!r})"

    @property
    def name(self) -> str:
        """``<provider>/<model>``."""
        return f"{self.provider.name}/{self.model}"

    @property
    def capabilities(self) -> Capabilities:
        """What the model accepts: its own declaration over its provider's."""
        base, own = self.provider.capabilities, self.declared
        return Capabilities(
            accepts_image_parts=_over(own.vision, base.accepts_image_parts),
            accepts_audio=_over(own.audio, base.accepts_audio),
            accepts_structured=_over(own.structured, base.accepts_structured),
        )

    @property
    def settings(self) -> WireSettings:
        """The provider's wire settings with the model's own put over them."""
        if self._settings is None:
            own = self.declared
            base = self.provider.settings
            changes = {
                "extra_body": self.provider.extra_body or None,
                "max_output_tokens": own.max_output_tokens,
                "num_ctx": own.num_ctx,
                "keep_alive": own.keep_alive,
                "cache_control": own.cache_control,
            }
            changes = {key: value for key, value in changes.items() if value is not None}
            self._settings = msgspec.structs.replace(base, **changes) if changes else base
        return self._settings

    def relays(self, dialect: str) -> bool:
        """Whether bytes of a client that speaks ``dialect`` may pass as they are (RU-15).

        Not when a setting asks for something that only decoding gives.
        """
        settings, provider = self.provider.settings, self.provider
        return (
            self.dialect.name == dialect
            and provider.relay
            and not provider.think_tags
            and not settings.merge_system
            and settings.schema_mode == "as_is"
        )

    def at(self, base_url: str | None) -> "Target":
        """The same target at another address, which a caller chose for one call.

        Raises:
            ConfigError: it is no address.
        """
        if not base_url:
            return self
        check_address(base_url, owner=f"The call to {self.name!r}")
        return Target(msgspec.structs.replace(self.provider, base_url=base_url), self.model)

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request under the provider's own model name, with the declared defaults filled in.

        Tool schemas are given the shape that the provider's ``schema_mode`` asks for.

        Raises:
            RequestError: the effort is none of those that the model declares (A-13).
            CannotEncode: a reply of more than one message, or not of text, is asked for (C-3).
        """
        self._check_reply(request)
        own = self.declared
        params = request.params
        effort = check_effort(self, params.reasoning_effort)
        changes = {
            "reasoning_effort": effort if params.reasoning_effort is None else None,
            "temperature": own.temperature if params.temperature is None else None,
            "seed": own.seed if params.seed is None else None,
        }
        changes = {key: value for key, value in changes.items() if value is not None}
        if changes:
            params = msgspec.structs.replace(params, **changes)
        tools = request.tools
        if tools and self.settings.schema_mode != "as_is":
            from woollama.core.tools.schemas import shape_tools  # few providers need it

            tools = shape_tools(tools, self.settings.schema_mode)
        return msgspec.structs.replace(request, model=self.model, params=params, tools=tools)

    def _check_reply(self, request: ChatRequest) -> None:
        for name in _BEYOND_A_REPLY:
            asked = getattr(request.params, name, None) or request.extra.get(name)
            dropped = name in self.settings.drop_params
            if asked is not None and not dropped and not asks_for_nothing(name, asked):
                raise CannotEncode(
                    f"The reply of {self.name} is read as one message of text and calls; "
                    f"{name!r} asks for more.",
                    param=name,
                    hint="Leave it out, or list it in the provider's drop_params.",
                )

    def encode(self, request: ChatRequest, *, stream: bool) -> WireRequest:
        """The wire request in the target's dialect, without a key.

        Raises:
            RequestError: see ``prepare`` and ``Codec.encode``; or a text holds what is no
                character, or something is nested too deeply.
        """
        try:
            return self.dialect.codec.encode(
                self.prepare(request),
                base_url=self.provider.base_url,
                stream=stream,
                settings=self.settings,
            )
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise RequestError(
                f"A text of the request holds {half!a}, half of a character, which cannot be sent.",
                hint="It comes from bytes that were not UTF-8.",
            ) from error
        except RecursionError as error:
            raise RequestError("The request is nested too deeply.") from error

    def authorize(self, wire: WireRequest, api_key: str | None = None) -> WireRequest:
        """The same request with the key in the dialect's place: the last act before the transport.

        Args:
            wire: without a key.
            api_key: the caller's own, instead of the configured one.

        Raises:
            ConfigError: a key is needed and there is none, or it may not go to this host (A-15).
        """
        own = self.provider.own_headers()
        key = self.provider.find_key(api_key, url=wire.url)
        if not own and key is None:
            return wire
        headers = {**wire.headers, **own}
        headers = place_key(self.dialect.key_place, headers, key, owner=self.provider.name)
        return msgspec.structs.replace(wire, headers=headers)


def _over(own: bool | None, base: bool) -> bool:
    return base if own is None else own


def check_effort(target: Target, asked: str | None) -> str | None:
    """The effort to send: the asked one, else the declared one, else None.

    Raises:
        RequestError: the model declares efforts and the asked one is none of them.
    """
    own = target.declared
    if asked is None:
        return own.effort
    if own.efforts and asked not in own.efforts:
        raise RequestError(
            f"{target.name} takes the efforts {', '.join(own.efforts)}, not {asked!r}.",
            param="reasoning_effort",
        )
    return asked
