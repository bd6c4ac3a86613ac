"""The public names: loaded when they are used, and shown as what they are."""

import pickle
import subprocess
import sys

import pytest

import woollama.core
import woollama.core.wire


def test_every_public_name_is_listed_before_it_is_loaded() -> None:
    assert set(woollama.core.__all__) <= set(dir(woollama.core))


@pytest.mark.parametrize("module", [woollama.core, woollama.core.wire])
def test_a_name_that_is_not_there_is_told_like_any_other(module: object) -> None:
    name = "nope"
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        getattr(module, name)


def test_a_name_that_is_loaded_late_shows_its_public_home() -> None:
    for name in ("Recipe", "ToolSpec", "Pattern", "orchestrate"):
        assert "woollama.core" == getattr(woollama.core, name).__module__
    assert pickle.loads(pickle.dumps(woollama.core.ToolSpec)) is woollama.core.ToolSpec


HEAVY = """
import asyncio, msgspec, anyio.lowlevel
before = set(sys.modules)
import woollama.core
brought = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(brought & set(sys.argv[1:])))
woollama.core.complete_sync
print(len([name for name in sys.modules if name.startswith("woollama.core.wire.anthropic")]))
"""


def test_the_import_brings_what_a_call_needs_and_no_more() -> None:
    """Each of these costs more than a tenth of what the whole import may."""
    heavy = ("httptools", "httpx2", "email", "tomllib", "difflib", "hashlib", "pathlib", "tenacity")
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _WITHOUT_SITE + HEAVY, *heavy],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ["", "0"] == ran.stdout.splitlines()


# Without `site`, whose .pth files import what they like.
_WITHOUT_SITE = f"import sys; sys.path[:] = {sys.path!r}\n"
