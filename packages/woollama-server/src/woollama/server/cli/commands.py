"""The commands and what they have in common: exit statuses and how a failure is shown."""

import os
import sys
from collections.abc import Sequence

import click

from woollama.core import InferenceError, __version__
from woollama.core.errors import ConfigError, WoollamaError
from woollama.server.cli.ask import ask
from woollama.server.cli.check_config import check_config
from woollama.server.cli.models import models
from woollama.server.cli.patterns import patterns
from woollama.server.cli.serve import serve
from woollama.server.cli.terminal import complain

__all__ = ["run"]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CONFIG = 78
EXIT_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", "-V", prog_name="woollama")
def woollama() -> None:
    """Any LLM client in, any LLM server out; prompts and tools as models."""


woollama.add_command(ask)
woollama.add_command(check_config)
woollama.add_command(models)
woollama.add_command(patterns)
woollama.add_command(serve)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and gives its exit status; a failure is one message on stderr."""
    try:
        result = woollama.main(list(arguments), prog_name="woollama", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_FAILED
    except ConfigError as error:
        complain(str(error))
        return EXIT_CONFIG
    except (InferenceError, WoollamaError) as error:
        complain(str(error))
        return EXIT_FAILED
    return result if isinstance(result, int) else 0


def _forget_stdout() -> None:
    # The reader has closed the pipe: what Python still holds for it shall not complain at exit.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
