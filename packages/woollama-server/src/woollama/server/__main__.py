"""``python -m woollama.server``: the same as ``woollama``."""

from woollama.server.cli import main

main()
