"""``woollama models test``: one small request, and what its answer says about the configuration."""

import shutil
import textwrap
import time

import anyio
import click

from woollama.core.canonical import request_from_openai
from woollama.core.directory import OWN_NAMESPACE, FoundPattern
from woollama.core.errors import InferenceError, RequestError
from woollama.core.turn import fetch_reply
from woollama.server.cli.diagnosis import Finding, rows
from woollama.server.cli.start import begin
from woollama.server.cli.terminal import Screen
from woollama.server.lifespan import open_services
from woollama.server.settings import Settings

__all__ = ["probe"]

_NAMES_WIDTH = 9
_REQUEST = {
    "model": "-",
    "messages": [
        {"role": "system", "content": "Use the tool you are given. Say nothing else."},
        {"role": "user", "content": "Call the tool echo with the word 'pong'."},
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
    patterns = model.startswith(f"{OWN_NAMESPACE}/")
    async with open_services(settings, mcp_servers=False, patterns=patterns) as services:
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
    width = shutil.get_terminal_size().columns
    for name, value in rows(finding):
        first = f"{name:{_NAMES_WIDTH}}"
        lines = textwrap.wrap(
            value, max(width, 40), initial_indent=first, subsequent_indent=" " * _NAMES_WIDTH
        )
        click.echo("\n".join(lines))
