"""Runs a program that does not watch its stdin, and ends it when our own stdin ends.

Started by ``process.py`` as a script, ``python guard.py PROGRAM [ARGUMENT …]``; it imports nothing
but the standard library. A parent that is killed can no longer end its children, but its end of our
stdin closes with it.
"""

import os
import signal
import subprocess
import sys
import threading

GRACE_S = 2.0
"""How long the program may take to end before it is killed."""


def main(argv: list[str]) -> int:
    """Run the program; its exit code, or 128 and the signal's number, or 127 when it does not run.

    Prints to stderr only what goes wrong with the start.
    """
    # The whole group gets the supervisor's SIGTERM: the program decides, we wait for it. A handler,
    # unlike SIG_IGN, is not inherited by the program.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error}\n")
        return 127
    threading.Thread(target=_end_with_stdin, args=(child,), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _end_with_stdin(child: "subprocess.Popen[bytes]") -> None:
    # Not sys.stdin: a thread that waits in it breaks the interpreter's exit.
    while os.read(0, 65536):
        pass
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
