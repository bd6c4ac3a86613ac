"""``woollama models``: what is on offer, and which provider could not be asked and why."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import click
import msgspec

from woollama.core.directory import OWN_NAMESPACE
from woollama.core.discovery import Offer
from woollama.core.patterns import Pattern
from woollama.core.providers import Provider
from woollama.server.cli.probe import probe
from woollama.server.cli.start import begin
from woollama.server.cli.table import print_table
from woollama.server.cli.terminal import Screen, one_line, say
from woollama.server.lifespan import open_services
from woollama.server.settings import Settings

__all__ = ["models"]

_PATIENCE_S = 10.0
_NAMED = 6

Pairs = Sequence[tuple[Provider, Offer]]


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models on offer now, or test one."""
    if context.invoked_subcommand is not None:
        return
    settings = begin()
    with Screen() as screen:
        screen.wait_for("Asking the providers …")
        pairs, patterns = anyio.run(_offers, settings)
        if as_json:
            body = [*map(_entry, pairs), _own_entry(patterns)]
            screen.document(msgspec.json.format(msgspec.json.encode(body), indent=2))
            return
    print_table(("MODEL", "DIALECT", "CONTEXT", "EFFORTS"), _rows(pairs))
    for line, style in _remarks(pairs, patterns):
        say(line, **style)


models.add_command(probe)


async def _offers(settings: Settings) -> tuple[Pairs, list[Pattern]]:
    async with open_services(settings, mcp_servers=False) as services:
        providers = services.directory.registry.all()
        offers = await services.offers.list(patience_s=_PATIENCE_S)
        patterns = [each for each in services.directory.catalog.list() if each.model is not None]
        return [(providers[offer.provider], offer) for offer in offers], patterns


def _entry(pair: tuple[Provider, Offer]) -> dict[str, Any]:
    provider, offer = pair
    return {
        "provider": provider.name,
        "kind": provider.kind,
        "base_url": provider.base_url,
        "error": str(offer.error) if offer.error is not None else None,
        "models": [
            {
                "id": f"{provider.name}/{info.id}",
                "dialect": provider.dialect_for(info.id).name,
                "context": info.context,
                "efforts": _efforts(provider, info.id),
            }
            for info in offer.models
        ],
    }


def _own_entry(patterns: list[Pattern]) -> dict[str, Any]:
    """The recipes and patterns that are models, too: what they run on stands for a dialect."""
    own: list[dict[str, Any]] = [
        {
            "id": f"{OWN_NAMESPACE}/{each.name}",
            "dialect": None,
            "context": None,
            "efforts": [],
            "runs_on": each.model,
        }
        for each in patterns
    ]
    return {
        "provider": OWN_NAMESPACE,
        "kind": "patterns",
        "base_url": None,
        "error": None,
        "models": own,
    }


def _efforts(provider: Provider, model: str) -> list[str]:
    declared = provider.model_settings.get(model)
    return list(declared.efforts) if declared is not None else []


def _rows(pairs: Pairs) -> Iterator[tuple[str, str, str, str]]:
    for provider, offer in pairs:
        for info in offer.models:
            yield (
                f"{provider.name}/{info.id}",
                provider.dialect_for(info.id).name,
                f"{info.context:,}" if info.context is not None else "",
                ", ".join(_efforts(provider, info.id)),
            )


def _remarks(pairs: Pairs, patterns: list[Pattern]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the table does not say, for a person: one line each, and its style."""
    for provider, offer in pairs:
        if offer.error is not None:
            reason = str(offer.error).removeprefix(f"Provider {provider.name!r}: ")
            yield f"{provider.name}: {one_line(reason)}", {"fg": "yellow"}
    quiet = [provider for provider, offer in pairs if not offer.models and offer.error is None]
    keyless = [provider for provider in quiet if _missing_key(provider)]
    silent = [provider.name for provider in quiet if not _missing_key(provider)]
    if silent:
        advice = "name a model yourself, or set models or discover in inferencers.toml"
        yield f"{', '.join(silent)}: no list is asked for; {advice}.", {"dim": True}
    if keyless:
        named = ", ".join(f"{each.name} ({_missing_key(each)})" for each in keyless)
        yield f"Without a key: {named}.", {"dim": True}
    if patterns:
        some = [f"{OWN_NAMESPACE}/{each.name}" for each in patterns[:_NAMED]]
        more = f" and {len(patterns) - _NAMED} more" if len(patterns) > _NAMED else ""
        yield f"Prompts are models, too: {', '.join(some)}{more}.", {"dim": True}


def _missing_key(provider: Provider) -> str | None:
    """The variable that would hold its key, when it is not set."""
    credential = provider.credential
    if credential is None or os.environ.get(credential.env, "").strip():
        return None
    return credential.env
