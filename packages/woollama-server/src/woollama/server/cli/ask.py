"""``woollama ask``: one question, its answer as it comes."""

import anyio
import click

from woollama.core.errors import ProviderError, ReplyError
from woollama.server.cli.arguments import read_options, read_question, read_variables
from woollama.server.cli.asking import Question, open_answer
from woollama.server.cli.by_daemon import address_of, open_daemon_answer
from woollama.server.cli.failures import Failure
from woollama.server.cli.start import begin
from woollama.server.cli.telling import Show, Telling
from woollama.server.cli.terminal import Screen, one_line
from woollama.server.settings import Settings

__all__ = ["EMBEDDED_MODEL", "ask"]

EMBEDDED_MODEL = "local/smollm2-135m-instruct"
"""What answers when nothing else is configured."""

_SHOWN = 120

_EXAMPLES = """\b
Examples:
  woollama ask "What is the capital of France?"
  woollama ask -m ollama/qwen3 -o options.num_ctx=8192 "Good morning"
  git diff | woollama ask -s "You review code." "What could go wrong here?"
  woollama ask -p translator -v language=German "Good morning"
"""


@click.command(epilog=_EXAMPLES)
@click.argument("question", nargs=-1)
@click.option("-m", "--model", metavar="MODEL", help="Who is asked; `woollama models` lists them.")
@click.option(
    "-p",
    "--pattern",
    metavar="NAME",
    help="A recipe or pattern to ask with; `woollama patterns` lists them.",
)
@click.option(
    "-v",
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME=TEXT",
    help="Fills in a variable of the pattern.",
)
@click.option("-s", "--system", metavar="TEXT", help="A system prompt.")
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="A field of the request, as JSON if it is JSON: max_tokens=50, stop='[\".\"]'.",
)
@click.option("--no-stream", is_flag=True, help="Print the answer when it is complete.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole reply as JSON.")
@click.option(
    "--url",
    metavar="ADDRESS",
    help="Ask the woollama that runs at this address, http://127.0.0.1:9665; WOOLLAMA_TOKEN is "
    "its token.",
)
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
    """Ask a model a question and print its answer as it comes.

    The question is the arguments, or what comes through a pipe, or both: then the input follows
    the arguments. Without -m it goes to default_model of woollama.toml, else to the embedded model.
    """
    if variables and pattern is None:
        raise click.UsageError("-v fills in the variables of a pattern: name one with -p.")
    base = None if url is None else address_of(url)
    asked = Question(
        # A pattern with its variables filled in may say everything.
        text=read_question(question, needed=not variables),
        system=system,
        model=model,
        pattern=pattern,
        variables=read_variables(variables),
        options=read_options(options),
        stream=not (as_json or no_stream),
    )
    settings = begin()
    if model is None and pattern is None:
        asked = asked.of(settings.default_model or EMBEDDED_MODEL)
    show: Show = "json" if as_json else "whole" if no_stream else "stream"
    with Screen() as screen:
        telling = Telling(screen, show, alias=settings.reasoning.alias, asked=asked.name)
        anyio.run(_ask, settings, asked, base, screen, telling)


async def _ask(
    settings: Settings, asked: Question, base: str | None, screen: Screen, telling: Telling
) -> None:
    screen.wait_for(f"Asking {asked.name} …")
    opened = (
        open_answer(settings, asked, notice=screen.notice)
        if base is None
        else open_daemon_answer(base, asked, timeouts=settings.timeouts)
    )
    try:
        async with opened as events:
            async for event in events:
                telling.tell(event)
    except (ProviderError, ReplyError) as error:
        who = asked.name if base is None else f"The woollama at {base}"
        raise Failure(_told(error, who)) from error


def _told(error: ProviderError | ReplyError, who: str) -> str:
    """What the other side said, with its name: most of them do not say whose words they are."""
    if error.message.startswith("Provider "):
        return str(error)
    if isinstance(error, ProviderError):
        how = "refuses" if error.peer_status is None else f"answers {error.peer_status}"
        return f"{who} {how}: {error}"
    said = error.payload
    begins = f" It begins: {one_line(said, _SHOWN)}" if isinstance(said, str) and said else ""
    return f"{who}: {error}{begins}"
