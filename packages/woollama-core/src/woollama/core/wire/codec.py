"""What a dialect is: a codec, where it keeps the key, and the values that pass between.

A codec does no I/O and sees no secret, no clock and no randomness; ids and the time are handed in.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol

from woollama.core.canonical import NOTHING, ChatRequest, Delta, Value
from woollama.core.errors import ProviderError

__all__ = [
    "JSON_HEADERS",
    "Bearer",
    "Codec",
    "Decoder",
    "Dialect",
    "Family",
    "Header",
    "KeyPlace",
    "ModelInfo",
    "NoKey",
    "WireRequest",
    "WireSettings",
]

Family = Literal["openai", "anthropic", "ollama"]

JSON_HEADERS: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})
"""The headers of a request whose body is JSON."""


class Bearer(Value, frozen=True, kw_only=True, tag="bearer"):
    """The key goes into ``Authorization: Bearer``."""


class Header(Value, frozen=True, kw_only=True, tag="header"):
    """The key goes into a header of its own, ``name`` in lower case."""

    name: str


class NoKey(Value, frozen=True, kw_only=True, tag="none"):
    """The dialect reads no key."""


KeyPlace = Bearer | Header | NoKey


class WireRequest(Value, frozen=True, kw_only=True):
    """What is to be sent; it never holds a key before ``Target.authorize``.

    Attributes:
        method: ``POST`` or ``GET``.
        url: absolute.
        headers: names in lower case.
        body: the JSON bytes; empty for a GET.
        dropped: the parameters left out because the provider's ``drop_params`` says so.
    """

    method: str
    url: str
    headers: Mapping[str, str] = NOTHING
    body: bytes = b""
    dropped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Method and address: the headers may hold a key, the body what somebody said."""
        return f"WireRequest({self.method!r}, {self.url!r})"


class WireSettings(Value, frozen=True, kw_only=True):
    """What an operator set for a provider or model that changes its wire bodies (RU-4).

    Attributes:
        output_field: the chat field that carries the output cap (A-7).
        stream_usage: whether a stream is asked to report usage.
        cache_control: ask the server to cache the prompt.
        cache_key: sent as ``prompt_cache_key`` when the request names none (A-8).
        anthropic_version: the value of the ``anthropic-version`` header.
        merge_system: send all system messages as one, in front (OC-41).
        replay_reasoning: send opaque reasoning back to the dialect it came from (RU-12).
        schema_mode: ``inline`` resolves ``$ref`` in tool schemas, ``normalize`` also names types.
        drop_params: parameters to leave out where the dialect has no words for them.
        extra_body: fields under every body; encoded fields win over them (C-4).
        max_output_tokens: the model's own output cap.
        num_ctx: Ollama's context size when the request names none.
        keep_alive: Ollama's ``keep_alive`` when the request names none.
    """

    output_field: str = "max_tokens"
    stream_usage: bool = True
    cache_control: bool = False
    cache_key: str | None = None
    anthropic_version: str = "2023-06-01"
    merge_system: bool = False
    replay_reasoning: bool = False
    schema_mode: Literal["as_is", "inline", "normalize"] = "as_is"
    drop_params: frozenset[str] = frozenset()
    extra_body: Mapping[str, Any] = NOTHING
    max_output_tokens: int | None = None
    num_ctx: int | None = None
    keep_alive: str | int | None = None


class ModelInfo(Value, frozen=True, kw_only=True):
    """One entry of a provider's model list. ``context`` is in tokens, None when not told."""

    id: str
    created: int | None = None
    owned_by: str | None = None
    context: int | None = None


class Decoder(Protocol):
    """Reads one reply, whole or streamed, from bytes cut anywhere.

    A fault found behind good deltas is raised by the next call, after those were returned.
    """

    @property
    def done(self) -> bool:
        """True once nothing that may still come can matter: call ``finish`` and close."""
        ...

    def feed(self, data: bytes) -> tuple[Delta, ...]:
        """The deltas that ``data`` completes.

        Raises:
            ProviderError: the reply holds the provider's error.
            ReplyError: the reply is not what the dialect says.
        """
        ...

    def finish(self) -> tuple[Delta, ...]:
        """The last deltas, ``Finish`` included, once the input has ended.

        Raises:
            TruncatedReply: the terminal mark of the dialect never came (C-15).
            ProviderError: as ``feed``.
            ReplyError: as ``feed``.
        """
        ...


class Codec(Protocol):
    """Canonical values to one dialect's bytes and back (RU-10)."""

    def encode(
        self, request: ChatRequest, *, base_url: str, stream: bool, settings: WireSettings
    ) -> WireRequest:
        """The wire request, without a key.

        Raises:
            CannotEncode: the dialect has no words for something that was asked; ``param`` names it.
        """
        ...

    def decode_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """What a client sent in this dialect.

        Raises:
            RequestError: a field has the wrong type; ``param`` names it.
        """
        ...

    def decoder(self, *, new_id: Callable[[], str], now: Callable[[], float]) -> Decoder:
        """A decoder for one reply.

        Args:
            new_id: gives a fresh id of letters and digits, at most 32.
            now: the Unix time in seconds.
        """
        ...

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes, *, now: Callable[[], float]
    ) -> ProviderError:
        """The error of a reply whose status says no.

        Args:
            status: the HTTP status.
            headers: names in lower case.
            body: as it came.
            now: the Unix time, to read a date in ``Retry-After``.
        """
        ...

    def models_request(self, base_url: str) -> WireRequest:
        """The request for the provider's list of models."""
        ...

    def decode_models(self, body: bytes) -> tuple[ModelInfo, ...]:
        """The provider's list of models.

        Raises:
            ReplyError: it is no such list.
        """
        ...


class Dialect(Value, frozen=True, kw_only=True):
    """A wire language: its name, whose API it belongs to, its codec, where it reads the key."""

    name: str
    family: Family
    codec: Codec
    key_place: KeyPlace
