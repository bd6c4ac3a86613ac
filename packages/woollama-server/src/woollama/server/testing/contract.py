"""The contract as a check that a plugin's own tests run."""

import threading
from collections.abc import Mapping
from typing import Any

from woollama.core.canonical import NOTHING
from woollama.server.plugins.contract import Plugin
from woollama.server.plugins.contributions import Contributions
from woollama.server.testing.served import use_plugins

__all__ = ["check_plugin"]


async def check_plugin(
    plugin: type[Plugin],
    *,
    config: Mapping[str, Any] = NOTHING,
    environ: Mapping[str, str] = NOTHING,
) -> None:
    """Loads a plugin, sets it up and tears it down twice, and looks at what it leaves.

    - what it declares is right, and it does no work before its setup;
    - it contributes the same each time;
    - its routes answer 401 to a client without a token;
    - behind its teardown no thread of it is left. Tasks cannot be: their group is ended.

    Args:
        plugin: its class, which the entry point names.
        config: its section.
        environ: the environment it needs.

    Raises:
        ConfigError: what is wrong with its declarations.
        AssertionError: it breaks the contract otherwise.
    """
    before = set(threading.enumerate())
    seen: list[object] = []
    for _ in range(2):
        sections = {plugin.name: config} if config else NOTHING
        async with use_plugins(plugin, config=sections, environ=environ) as server:
            (found,) = server.services.plugins.contributions
            seen.append(_outline(found))
            for route in found.routes:
                for method in route.methods or ("GET",):
                    path = f"{found.prefix}{route.path}"
                    answer = await server.client.request(
                        method, path, headers={"authorization": None}
                    )
                    assert answer.status == 401, f"{method} {path} answers without a token"
            await server.services.plugins.health()
    assert seen[0] == seen[1], f"it contributes something else each time: {seen}"
    left = [
        thread.name
        for thread in set(threading.enumerate()) - before
        if not thread.name.startswith(("AnyIO worker", "asyncio_"))
    ]
    assert not left, f"it leaves threads behind: {left}"


def _outline(found: Contributions) -> object:
    return {
        "providers": [each.provider.name for each in found.providers],
        "pattern_backends": [each.id for each in found.pattern_backends],
        "tool_providers": len(found.tool_providers),
        "routes": [(each.path, each.methods) for each in found.routes],
        "health_checks": sorted(found.health_checks),
    }
