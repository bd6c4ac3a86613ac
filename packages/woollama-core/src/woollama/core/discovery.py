"""What a provider offers now: its declared models, and its own list when it is to be asked."""

from fnmatch import fnmatchcase

from woollama.core.canonical import Value
from woollama.core.errors import InferenceError
from woollama.core.exchange import open_reply, read_body
from woollama.core.providers import Provider, Target
from woollama.core.transport.base import Timeouts, Transport
from woollama.core.wire import ModelInfo

__all__ = ["DISCOVERY_TIMEOUTS", "Offer", "declared_offer", "discover"]

DISCOVERY_TIMEOUTS = Timeouts(connect=2.0, first_byte=5.0, between=5.0, whole=8.0)
"""Short: a list that does not come at once is asked for again later."""

_LIMIT_BYTES = 16 * 1024 * 1024


class Offer(Value, frozen=True, kw_only=True):
    """What one provider offers.

    Attributes:
        provider: its name.
        models: the declared ones first, then what it lists, each id once.
        error: why its own list could not be had; None when it could, or was not wanted.
    """

    provider: str
    models: tuple[ModelInfo, ...] = ()
    error: InferenceError | None = None


async def discover(
    provider: Provider,
    *,
    transport: Transport,
    timeouts: Timeouts = DISCOVERY_TIMEOUTS,
) -> Offer:
    """The models of ``provider``; it is asked only when it is configured so.

    Never raises for the provider's faults: they stand in the offer.
    """
    declared = declared_offer(provider)
    if not provider.discover:
        return declared
    try:
        listed = await _ask(provider, transport, timeouts)
    except InferenceError as error:
        return Offer(provider=provider.name, models=declared.models, error=error)
    models = {info.id: info for info in declared.models}
    for info in listed:
        if _wanted(provider, info.id):
            models.setdefault(info.id, info)
    return Offer(provider=provider.name, models=tuple(models.values()))


def declared_offer(provider: Provider) -> Offer:
    """What is known of a provider's offer without asking: the models its configuration names."""
    models = tuple(_declared(provider, model) for model in provider.models)
    return Offer(provider=provider.name, models=models)


def _declared(provider: Provider, model: str) -> ModelInfo:
    own = provider.model_settings.get(model)
    return ModelInfo(id=model, context=own.context if own is not None else None)


def _wanted(provider: Provider, model: str) -> bool:
    patterns = provider.model_patterns
    return not patterns or any(fnmatchcase(model, pattern) for pattern in patterns)


async def _ask(
    provider: Provider, transport: Transport, timeouts: Timeouts
) -> tuple[ModelInfo, ...]:
    target = Target(provider, "")
    codec = target.dialect.codec
    wire = target.authorize(codec.models_request(provider.base_url))
    async with open_reply(target, wire, transport=transport, timeouts=timeouts) as response:
        body = await read_body(response, limit_bytes=_LIMIT_BYTES)
    return codec.decode_models(body)
