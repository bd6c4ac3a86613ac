"""A whole server in the running event loop: its own folder, its own environment, no socket."""

import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from woollama.core.canonical import NOTHING, Value
from woollama.server.address import Address
from woollama.server.app import make_app
from woollama.server.door import behind_door
from woollama.server.lifespan import open_services
from woollama.server.plugins.contract import Plugin
from woollama.server.plugins.installed import Installed
from woollama.server.sections import PluginSettings
from woollama.server.services import Services
from woollama.server.settings import Settings
from woollama.server.testing.asgi import AsgiClient

__all__ = ["TOKEN", "Served", "use_plugins"]

TOKEN = "token-of-the-test"
"""What ``Served.client`` shows at the door."""


class Served(Value, frozen=True, kw_only=True):
    """A server that runs for a test.

    Attributes:
        client: asks it, with its token.
        services: what its routes work with.
        config_dir: its configuration.
    """

    client: AsgiClient
    services: Services
    config_dir: Path


@asynccontextmanager
async def use_plugins(
    *plugins: Plugin | type[Plugin],
    config: Mapping[str, Mapping[str, Any]] = NOTHING,
    environ: Mapping[str, str] = NOTHING,
    files: Mapping[str, str] = NOTHING,
    folder: Path | None = None,
) -> AsyncGenerator[Served]:
    """A server with these plugins, enabled in this order, and no others.

    Nothing of the developer's own configuration or environment is seen, and nothing is left behind.

    Args:
        plugins: the plugins, or their classes.
        config: their sections, by their names.
        environ: the environment of the server.
        files: further files of its configuration, by name: text.
        folder: an empty folder for it; None makes one and removes it.

    Raises:
        ConfigError: everything that is wrong with the set.
        WoollamaError: what a ``setup`` raised.
    """
    made = [each if isinstance(each, Plugin) else each() for each in plugins]
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="woollama-")))
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        settings = Settings(
            plugins=PluginSettings(enabled=tuple(each.name for each in made), tables=config),
            token=TOKEN,
            config_dir=folder,
        )
        own = {"HOME": str(folder), "WOOLLAMA_CONFIG_DIR": str(folder), **environ}
        async with open_services(settings, environ=own, installed=_as_installed(made)) as services:
            address = Address(host="127.0.0.1", port=80)
            app = behind_door(make_app(services), settings, address)
            client = AsgiClient(app, headers={"authorization": f"Bearer {TOKEN}"})
            yield Served(client=client, services=services, config_dir=folder)


def _as_installed(plugins: list[Plugin]) -> dict[str, Installed]:
    return {
        each.name: Installed(
            name=each.name,
            load=lambda each=each: each,
            place=f"{type(each).__module__}:{type(each).__qualname__}",
            bundled=type(each).__module__.startswith("woollama.server."),
        )
        for each in plugins
    }
