"""No type that we decode makes msgspec write where it must not (it does for some unions)."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("struct_types.py")


def test_decoders_of_all_structs_leave_memory_whole() -> None:
    """Python's debug allocator looks at the bytes round each block that is given back."""
    environ = {**os.environ, "PYTHONMALLOC": "debug"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    assert int(done.stdout) > 100
