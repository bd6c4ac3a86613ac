"""The ``woollama`` command."""

import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Runs the command line; the process ends with its exit status.

    0 done, 1 failed, 2 wrong arguments, 70 a fault of woollama itself, 78 wrong configuration,
    130 interrupted.
    """
    try:
        sys.exit(_main())
    except KeyboardInterrupt:
        # Before there is a command that could say something.
        sys.exit(_INTERRUPTED)


def _main() -> int:
    # Before anything else of the core is imported: another project's would fail in odd places.
    from woollama.server.cli.own_core import foreign_core
    from woollama.server.cli.streams import prepare_streams

    prepare_streams()
    problem = foreign_core()
    if problem is not None:
        sys.stderr.write(f"woollama: {problem}\n")
        return 78
    from woollama.server.cli.commands import run

    return run(sys.argv[1:])
