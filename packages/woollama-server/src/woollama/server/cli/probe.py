"""``woollama models test``: one small request, and what its answer says about the configuration."""

import os
import time
from collections.abc import Iterator

import anyio
import click
import msgspec
from rich.console import Console
from rich.table import Table

from woollama.core.canonical import Reply, Value, request_from_openai, text_of
from woollama.core.directory import FoundPattern
from woollama.core.errors import (
    ConfigError,
    InferenceError,
    ProviderError,
    ReplyError,
    RequestError,
    TransportError,
)
from woollama.core.providers import Target
from woollama.core.providers.keys import name_of_place
from woollama.core.turn import fetch_reply
from woollama.core.wire import DIALECTS
from woollama.server.cli.start import begin
from woollama.server.cli.terminal import Screen
from woollama.server.lifespan import open_services
from woollama.server.settings import Settings

__all__ = ["Finding", "advice", "probe"]

_WORD = "pong"
_REQUEST = {
    "model": "-",
    "messages": [
        {"role": "system", "content": "Use the tool you are given. Say nothing else."},
        {"role": "user", "content": f"Call the tool echo with the word {_WORD!r}."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "echo",
                "description": "Gives a word back.",
                "parameters": {
                    "type": "object",
                    "properties": {"word": {"type": "string"}},
                    "required": ["word"],
                },
            },
        }
    ],
    "max_tokens": 256,
}


class Finding(Value, frozen=True, kw_only=True):
    """What one request showed. ``reply`` or ``error`` is set."""

    target: Target
    seconds: float
    reply: Reply | None = None
    error: InferenceError | None = None


@click.command("test")
@click.argument("model")
@click.pass_context
def probe(context: click.Context, model: str) -> None:
    """Ask MODEL one small question with a system prompt and a tool, and explain the answer."""
    settings = begin()
    with Screen() as screen:
        screen.notice(f"Asking {model} …")
        finding = anyio.run(_probe, settings, model)
    _print(finding)
    if finding.error is not None:
        context.exit(1)


async def _probe(settings: Settings, model: str) -> Finding:
    async with open_services(settings) as services:
        target = services.directory.find(model)
        if isinstance(target, FoundPattern):
            raise RequestError(
                f"{model!r} is a prompt; test the model it runs on: {target.pattern.model}."
            )
        began = time.monotonic()
        try:
            reply = await fetch_reply(
                target,
                request_from_openai(_REQUEST),
                transport=services.transport_for(target.provider),
                timeouts=services.timeouts,
            )
        except InferenceError as error:
            return Finding(target=target, seconds=time.monotonic() - began, error=error)
        return Finding(target=target, seconds=time.monotonic() - began, reply=reply)


def _print(finding: Finding) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(finding):
        table.add_row(name, value)
    Console(highlight=False, markup=False, soft_wrap=False).print(table)


def _rows(finding: Finding) -> Iterator[tuple[str, str]]:
    target, provider = finding.target, finding.target.provider
    yield "model", target.name
    yield "spoken", f"kind {provider.kind}, dialect {target.dialect.name}"
    yield "address", provider.base_url
    yield "key", _key(target)
    if target.declared.effort:
        yield "effort", target.declared.effort
    yield "sent", "a system prompt, a question, one tool"
    if finding.reply is not None:
        yield from _answer(finding.reply)
    if finding.error is not None:
        yield "refused", f"{finding.error.message} ({finding.error.kind}, {finding.error.status})"
    yield "took", f"{finding.seconds:.1f} s"
    yield "verdict", advice(finding)


def _key(target: Target) -> str:
    credential = target.provider.credential
    if credential is None:
        return "none is configured, none is sent"
    place = name_of_place(target.dialect.key_place)
    state = "set" if os.environ.get(credential.env, "").strip() else "NOT SET"
    return f"{credential.env} ({state}), sent as {place}"


def _answer(reply: Reply) -> Iterator[tuple[str, str]]:
    for call in reply.message.tool_calls:
        yield "called", f"{call.name}({call.arguments})"
    text = text_of(reply.message.content)
    if text:
        yield "said", text if len(text) < 200 else f"{text[:200]} …"
    if reply.message.reasoning:
        yield "thought", f"{len(reply.message.reasoning)} characters"
    native = f" ({reply.native_finish_reason})" if reply.native_finish_reason else ""
    yield "ended", f"{reply.finish_reason}{native}"
    if reply.usage is not None:
        usage = msgspec.structs.asdict(reply.usage)
        counts = (f"{name} {count}" for name, count in usage.items() if count is not None)
        yield "usage", ", ".join(counts)


def advice(finding: Finding) -> str:
    """One sentence: it works, or what to change."""
    if finding.reply is not None:
        if finding.reply.message.tool_calls:
            return "It works: the system prompt and the tool were taken, and the tool was called."
        return "It answers. It did not call the tool, which small models often do not."
    error = finding.error
    if error is None:
        return "Nothing came back."
    if error.hint:
        return error.hint
    return _reason(finding.target, error)


def _reason(target: Target, error: InferenceError) -> str:
    provider = target.provider
    if isinstance(error, ConfigError):
        return "Mend the configuration as it says."
    if isinstance(error, TransportError):
        return f"Is the server running, and is base_url right? It is {provider.base_url!r}."
    if error.kind in {"authentication", "permission"}:
        place = name_of_place(target.dialect.key_place)
        return (
            f"The key was refused. It is sent as {place!r}, where the dialect "
            f"{target.dialect.name!r} has it; a server that reads it elsewhere is of another kind."
        )
    if error.kind == "not_found" and not _names_model(target, error):
        return f"Nothing is at this path: {_other_dialects(target)}"
    if isinstance(error, ReplyError):
        return f"The answer is not in this dialect: {_other_dialects(target)}"
    if isinstance(error, ProviderError) and error.kind == "not_found":
        return "The server does not have this model: `woollama models` lists what it offers."
    if isinstance(error, RequestError) and error.param:
        return f"Remove {error.param!r} from the configuration of this model."
    return "The server's own words say why."


def _names_model(target: Target, error: InferenceError) -> bool:
    return target.model in error.message or "model" in (error.code or "")


def _other_dialects(target: Target) -> str:
    kind = target.provider.kind
    if kind != "openai":
        return (
            f"is it really a server of kind {kind!r}, and does base_url end where its API begins?"
        )
    others = sorted(
        dialect.name
        for dialect in DIALECTS.values()
        if dialect.family == kind and dialect is not target.dialect
    )
    return f"check base_url, or set dialect to one of {', '.join(others)}."
