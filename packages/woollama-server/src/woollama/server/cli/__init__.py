"""The ``woollama`` command."""

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command line; the process ends with its exit status.

    0 done, 1 failed, 2 wrong arguments, 78 wrong configuration, 130 interrupted.
    """
    # Before anything else of the core is imported: another project's would fail in odd places.
    from woollama.server.cli.own_core import foreign_core

    problem = foreign_core()
    if problem is not None:
        sys.stderr.write(f"woollama: {problem}\n")
        sys.exit(78)
    from woollama.server.cli.commands import run

    sys.exit(run(sys.argv[1:]))
