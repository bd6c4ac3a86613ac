"""``woollama ask``: one question, its answer as it comes."""

import json
import sys
from typing import Any, Literal, cast

import anyio
import click
import msgspec

from woollama.core.canonical import (
    ReasoningDelta,
    RefusalDelta,
    RunEvent,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    text_of,
)
from woollama.server.cli.asking import Question, open_answer
from woollama.server.cli.start import begin
from woollama.server.cli.terminal import Screen
from woollama.server.settings import Settings

__all__ = ["EMBEDDED_MODEL", "ask"]

EMBEDDED_MODEL = "local/smollm2-135m-instruct"
"""What answers when nothing else is configured."""

_ARGUMENTS_SHOWN = 120

_Show = Literal["stream", "whole", "json"]


@click.command()
@click.argument("question", nargs=-1)
@click.option("-m", "--model", help="Model, as `woollama models` lists it.")
@click.option(
    "-p", "--pattern", help="Recipe or pattern to ask with, as `woollama patterns` lists it."
)
@click.option(
    "-v",
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME=TEXT",
    help="Fills in a variable of the pattern.",
)
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
    pattern: str | None,
    variables: tuple[str, ...],
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
    if variables and pattern is None:
        raise click.UsageError("-v fills in the variables of a pattern: name one with -p.")
    if model is None and pattern is None:
        model = settings.default_model or EMBEDDED_MODEL
    show: _Show = "json" if as_json else "whole" if no_stream else "stream"
    asked = Question(
        text=_question(question),
        system=system,
        model=model,
        pattern=pattern,
        variables=_pairs(variables, "-v"),
        options=_options(options),
        stream=show == "stream",
    )
    with Screen() as screen:
        anyio.run(_ask, settings, asked, url, show, screen)


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


def _pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in given:
        key, equals, text = pair.partition("=")
        if not key or not equals:
            raise click.UsageError(f"{flag} wants KEY=VALUE, not {pair!r}.")
        pairs[key] = text
    return pairs


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    """Options with their values read as JSON where they are JSON; a dot goes one level down."""
    fields: dict[str, Any] = {}
    for key, text in _pairs(given, "-o").items():
        *groups, name = key.split(".")
        inner = fields
        for group in groups:
            below: Any = inner.setdefault(group, {})
            if not isinstance(below, dict):
                raise click.UsageError(f"-o gives {group!r} a value and parts.")
            inner = cast("dict[str, Any]", below)
        inner[name] = _value(text)
    return fields


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def _ask(
    settings: Settings, question: Question, url: str | None, show: _Show, screen: Screen
) -> None:
    async with open_answer(settings, question, url=url, notice=screen.notice) as events:
        async for event in events:
            if isinstance(event, RunFinished):
                _finish(event, show, settings, screen)
            else:
                _tell(event, show, screen)


def _tell(event: RunEvent, show: _Show, screen: Screen) -> None:
    """One event, as it happens: tool calls always, text and thinking when they are streamed."""
    match event:
        case TextDelta(text=text) | RefusalDelta(text=text) if show == "stream":
            screen.text(text)
        case ReasoningDelta(text=text) if show == "stream":
            screen.thinking(text)
        case ToolStarted():
            screen.line(f"→ {event.name}({_short(event.args)})")
        case ToolFinished():
            screen.line(f"← {event.name}: {'ok' if event.ok else 'error'}")
        case _:
            pass


def _finish(finished: RunFinished, show: _Show, settings: Settings, screen: Screen) -> None:
    reply = msgspec.structs.replace(finished.reply, usage=finished.usage_total)
    if show == "json":
        body = msgspec.json.encode(reply.to_openai(reasoning=settings.reasoning.alias))
        screen.text(msgspec.json.format(body, indent=2).decode())
    elif show == "whole":
        screen.text(text_of(reply.message.content) or reply.message.refusal or "")


def _short(args: object) -> str:
    text = args if isinstance(args, str) else msgspec.json.encode(args).decode()
    return text if len(text) <= _ARGUMENTS_SHOWN else f"{text[:_ARGUMENTS_SHOWN]}…"
