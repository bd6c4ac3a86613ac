"""Loads the embedded model, prints its process and waits to be killed."""

import tempfile
from pathlib import Path

import anyio

from woollama.server.local.config import LocalConfig
from woollama.server.local.models import BUNDLED_MODEL, find_models
from woollama.server.local.residents import Residents


async def main() -> None:
    config = LocalConfig()
    model = find_models(config, config_dir=Path(tempfile.gettempdir()))[BUNDLED_MODEL]
    async with (
        anyio.create_task_group() as tasks,
        Residents(tasks, config).using(model) as resident,
    ):
        await resident.supervisor.start()
        print(resident.supervisor.pid, flush=True)  # noqa: T201 - the test reads it
        await anyio.sleep_forever()


anyio.run(main)
