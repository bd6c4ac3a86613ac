"""``woollama ask``: one question, its answer as it comes."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import click
import msgspec

from woollama.core.canonical import (
    Assembly,
    ChatRequest,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    deltas_of,
    request_from_openai,
)
from woollama.core.directory import FoundPattern
from woollama.core.errors import NotBuilt, RequestError
from woollama.core.providers import ModelRegistry, Provider, Target
from woollama.core.transport.default import make_transport
from woollama.core.turn import open_turn
from woollama.server.cli.start import begin
from woollama.server.cli.terminal import Screen
from woollama.server.lifespan import open_services
from woollama.server.settings import Settings

__all__ = ["EMBEDDED_MODEL", "ask"]

EMBEDDED_MODEL = "local/smollm2-135m-instruct"
"""What answers when nothing else is configured."""


@click.command()
@click.argument("question", nargs=-1)
@click.option("-m", "--model", help="Model, as `woollama models` lists it.")
@click.option("-s", "--system", help="System prompt.")
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="A field of the request: temperature=0.2, max_tokens=50, options.num_ctx=8192.",
)
@click.option("--no-stream", is_flag=True, help="Print the answer when it is complete.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole reply as JSON.")
@click.option("--url", help="Ask a running woollama: its address, http://127.0.0.1:9665.")
def ask(
    question: tuple[str, ...],
    model: str | None,
    system: str | None,
    options: tuple[str, ...],
    no_stream: bool,
    as_json: bool,
    url: str | None,
) -> None:
    """Ask a model a question.

    The question is the arguments, what comes on standard input, or both: then the input follows
    the arguments. Without a configuration the embedded model answers.
    """
    settings = begin()
    body = {
        "model": model or settings.default_model or EMBEDDED_MODEL,
        "messages": _messages(_question(question), system),
        **_options(options),
    }
    request = request_from_openai(body)
    whole = no_stream or as_json
    with Screen() as screen:
        anyio.run(_ask, settings, request, url, whole, as_json, screen)


def _question(arguments: tuple[str, ...]) -> str:
    given = [" ".join(arguments)] if arguments else []
    if not sys.stdin.isatty():
        piped = sys.stdin.read().strip("\n")
        if piped:
            given.append(piped)
    text = "\n\n".join(given)
    if not text.strip():
        raise click.UsageError("Nothing to ask: give a question, or pipe one in.")
    return text


def _messages(question: str, system: str | None) -> list[dict[str, str]]:
    before = [{"role": "system", "content": system}] if system else []
    return [*before, {"role": "user", "content": question}]


def _options(pairs: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not key or not equals:
            raise click.UsageError(f"-o wants KEY=VALUE, not {pair!r}.")
        *groups, name = key.split(".")
        inner = fields
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[name] = _value(text)
    return fields


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def _ask(
    settings: Settings,
    request: ChatRequest,
    url: str | None,
    whole: bool,
    as_json: bool,
    screen: Screen,
) -> None:
    opener = _daemon(url, request.model) if url else _own(settings, request.model, screen.notice)
    assembly = Assembly()
    async with (
        opener as (target, how),
        open_turn(target, request, stream=not whole, **how) as turn,
    ):
        async for deltas in turn.batches:
            for delta in deltas:
                assembly.add(delta)
                if not whole:
                    _show(delta, screen)
    if as_json:
        reply = assembly.reply().to_openai(reasoning=settings.reasoning.alias)
        screen.text(msgspec.json.format(msgspec.json.encode(reply), indent=2).decode())
    elif whole:
        for delta in deltas_of(assembly.reply()):
            _show(delta, screen)


def _show(delta: object, screen: Screen) -> None:
    match delta:
        case TextDelta(text=text) | RefusalDelta(text=text):
            screen.text(text)
        case ReasoningDelta(text=text):
            screen.thinking(text)
        case _:
            pass


Opened = tuple[Target, Mapping[str, Any]]


@asynccontextmanager
async def _own(
    settings: Settings, model: str, notice: Callable[[str], None]
) -> AsyncGenerator[Opened]:
    """The model's target in this process, without a daemon."""
    async with open_services(settings, notice=notice) as services:
        found = services.directory.find(model)
        if isinstance(found, FoundPattern):
            raise NotBuilt(f"{model!r} is a pattern; running patterns is not built yet.")
        how = {
            "transport": services.transport_for(found.provider),
            "timeouts": services.timeouts,
            "retries": services.retries,
        }
        yield found, how


@asynccontextmanager
async def _daemon(url: str, model: str) -> AsyncGenerator[Opened]:
    """The model as a running daemon has it; its token comes from ``WOOLLAMA_TOKEN``."""
    base = url.rstrip("/").removesuffix("/v1")
    if "://" not in base:
        base = f"http://{base}"
    if not base.startswith(("http://", "https://")):
        raise RequestError(f"--url wants an http address, not {url!r}.")
    token = "WOOLLAMA_TOKEN" if os.environ.get("WOOLLAMA_TOKEN") else None
    registry = ModelRegistry([Provider("daemon", f"{base}/v1", token)])
    transport = make_transport()
    try:
        yield registry.resolve(f"daemon/{model}"), {"transport": transport}
    finally:
        await transport.aclose()
