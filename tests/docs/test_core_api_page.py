"""The page of the library has every public name, and no other."""

import re

from tests.docs.blocks import ROOT
from woollama import core

TEXT = (ROOT / "docs/reference/core-api.md").read_text("utf-8")


def test_every_public_name_is_there() -> None:
    shown = set(re.findall(r"^::: woollama\.core\.(\w+)$", TEXT, re.MULTILINE))
    told = {"Inferencer", "__version__"}  # an alias, and a string
    assert set(core.__all__) == shown | told
    assert all(f"`{name}`" in TEXT for name in told)
