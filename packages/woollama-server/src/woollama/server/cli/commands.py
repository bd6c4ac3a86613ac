"""The commands, and what they have in common."""

import os
from collections.abc import Sequence

import click

from woollama.core import __version__
from woollama.server.cli.failures import report
from woollama.server.cli.lazy import LazyCommands, LazyGroup, Place
from woollama.server.cli.remarks import open_remarks

__all__ = ["run", "woollama"]

_NAME = "woollama"
_COMPLETION = "_WOOLLAMA_COMPLETE"

_COMMANDS = LazyCommands(
    {
        "ask": Place("woollama.server.cli.ask:ask", "Ask a model a question."),
        "serve": Place("woollama.server.cli.serve:serve", "Serve every model on one address."),
        "mcp": Place(
            "woollama.server.cli.mcp:mcp", "Serve models, prompts and tools to an MCP client."
        ),
        "models": Place(
            "woollama.server.cli.models:models", "List the models on offer now, or test one."
        ),
        "patterns": Place(
            "woollama.server.cli.patterns:patterns", "List the recipes and patterns, or show one."
        ),
        "plugins": Place(
            "woollama.server.cli.plugins:plugins", "List the plugins, or show what one declares."
        ),
        "check-config": Place(
            "woollama.server.cli.check_config:check_config", "Check the configuration files."
        ),
    }
)

_EXAMPLES = """\b
Examples:
  woollama ask "What is the capital of France?"
  git diff | woollama ask -m openai/gpt-5 "Write a commit message."
  woollama serve

The configuration is in ~/.config/woollama, or where WOOLLAMA_CONFIG_DIR says; without any, the
embedded model, Ollama on this machine and the clouds whose key is set are there.
"""


@click.group(
    cls=LazyGroup,
    commands=_COMMANDS,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "--version", "-V", prog_name=_NAME)
def woollama() -> None:
    """Any LLM client in, any LLM server out; prompts and tools as models."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command and gives its exit status; a failure is a message on stderr."""
    try:
        with open_remarks():
            if _COMPLETION in os.environ:
                woollama.main(list(arguments), prog_name=_NAME, complete_var=_COMPLETION)
            # Without click's own `main`, which has a say in interrupts and closed pipes.
            with woollama.make_context(_NAME, list(arguments)) as context:
                result = woollama.invoke(context)
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:  # noqa: BLE001 - top level
        return report(error)
    return result if isinstance(result, int) else 0
