"""``woollama models``: what is on offer, and which provider could not be asked and why."""

from typing import Any

import anyio
import click
import msgspec
from rich.console import Console
from rich.table import Table

from woollama.core.discovery import Offer
from woollama.core.providers import Provider
from woollama.server.cli.probe import probe
from woollama.server.cli.start import begin
from woollama.server.cli.terminal import Screen
from woollama.server.lifespan import open_services
from woollama.server.settings import Settings

__all__ = ["models"]

_PATIENCE_S = 10.0


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models on offer now, or test one."""
    if context.invoked_subcommand is not None:
        return
    settings = begin()
    with Screen() as screen:
        screen.notice("Asking the providers …")
        pairs = anyio.run(_offers, settings)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_as_json(pairs)), indent=2).decode())
    else:
        _print(pairs)


models.add_command(probe)

Pairs = list[tuple[Provider, Offer]]


async def _offers(settings: Settings) -> Pairs:
    async with open_services(settings, mcp_servers=False) as services:
        providers = services.directory.registry.all()
        offers = await services.offers.list(patience_s=_PATIENCE_S)
        return [(providers[offer.provider], offer) for offer in offers]


def _as_json(pairs: Pairs) -> list[dict[str, Any]]:
    return [
        {
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
        for provider, offer in pairs
    ]


def _efforts(provider: Provider, model: str) -> list[str]:
    declared = provider.model_settings.get(model)
    return list(declared.efforts) if declared is not None else []


def _print(pairs: Pairs) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("MODEL", "DIALECT", "CONTEXT", "EFFORTS"):
        table.add_column(title, overflow="fold")
    for provider, offer in pairs:
        for info in offer.models:
            table.add_row(
                f"{provider.name}/{info.id}",
                provider.dialect_for(info.id).name,
                f"{info.context:,}" if info.context is not None else "",
                ", ".join(_efforts(provider, info.id)),
            )
    if table.row_count:
        console.print(table)
    quiet = [provider.name for provider, offer in pairs if not offer.models and offer.error is None]
    for provider, offer in pairs:
        if offer.error is not None:
            console.print(f"{provider.name}: {offer.error}", style="yellow", markup=False)
    if quiet:
        console.print(
            f"{', '.join(quiet)}: lists nothing; name a model yourself, or set models or discover "
            "in inferencers.toml.",
            style="dim",
            markup=False,
        )
