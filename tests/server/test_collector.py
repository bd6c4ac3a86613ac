"""The garbage collector of a daemon."""

import subprocess
import sys

SETTLED = """
import gc
from woollama.server.collector import settle_collector
before = gc.get_threshold()
settle_collector()
assert before[1:] == gc.get_threshold()[1:]
print(gc.isenabled(), gc.get_threshold()[0] >= 10 * before[0], gc.get_freeze_count() > 1000)
"""


def test_what_is_loaded_is_left_alone_and_the_rest_is_still_collected() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SETTLED], capture_output=True, text=True, timeout=60, check=True
    )
    assert "True True True\n" == ran.stdout
