"""The tests of the plugin, with woollama's test kit."""

import anyio
from woollama_proverbs import ProverbsPlugin

from woollama.server.testing import check_plugin, use_plugins


def test_it_keeps_the_contract() -> None:
    """Declarations, setup and teardown."""
    anyio.run(check_plugin, ProverbsPlugin)


def test_its_patterns_are_rendered() -> None:
    """And its route answers."""

    async def ask() -> None:
        config = {"proverbs": {"more": {"calm": "Still waters run {{how}}."}}}
        async with use_plugins(ProverbsPlugin, config=config) as server:
            body = {"variables": {"how": "deep"}, "input": "Why?"}
            answer = await server.client.post("/w1/patterns/calm/render", body)
            assert answer.json() == {"prompt": "Still waters run deep.\n\nWhy?"}
            count = await server.client.get("/x/proverbs/count")
            assert count.json() == {"proverbs": 3}

    anyio.run(ask)
