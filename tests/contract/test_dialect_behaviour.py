"""Every dialect does what a dialect must, against its strict fake."""

import pytest

from woollama.core.testing.dialect_contract import BEHAVIOURS
from woollama.core.testing.kits import KITS, DialectKit
from woollama.core.wire import DIALECTS


@pytest.mark.parametrize(
    ("kit", "name"),
    [
        pytest.param(kit, name, id=f"{dialect}-{name}", marks=pytest.mark.behaviour(dialect, name))
        for dialect, kit in KITS.items()
        for name in BEHAVIOURS
    ],
)
async def test_behaviour(kit: DialectKit, name: str) -> None:
    await BEHAVIOURS[name](kit)


def test_every_dialect_has_a_kit() -> None:
    assert set(DIALECTS) == set(KITS)
