"""RU-60: who is not asked over MCP does not pay for it."""

from pathlib import Path

from tests.architecture.fresh_interpreter import run_fresh

SERVED = """
import json, os, sys
from pathlib import Path

import anyio
from woollama.server.cli.commands import woollama
from woollama.server.app import make_app
from woollama.server.door import behind_door
from woollama.server.address import Address
from woollama.server.lifespan import open_services
from woollama.server.cli import mcp, serve
from woollama.server.sections import PluginSettings
from woollama.server.settings import Settings
from woollama.server.testing.asgi import AsgiClient

HEAVY = ("mcp", "mcp_types", "pydantic", "sse_starlette", "opentelemetry")

def loaded():
    return [name for name in HEAVY if name in sys.modules]

async def main():
    folder = Path(sys.argv[1])
    settings = Settings(config_dir=folder, plugins=PluginSettings(enabled=()))
    environ = {"WOOLLAMA_CONFIG_DIR": str(folder)}
    async with open_services(settings, environ=environ) as services:
        app = behind_door(make_app(services), settings, Address(host="127.0.0.1", port=80))
        client = AsgiClient(app)
        found = {}
        for path in ("/healthz", "/v1/models", "/w1/tools", "/w1/patterns"):
            assert (await client.get(path)).status == 200
        found["before"] = loaded()
        accept = {"accept": "application/json, text/event-stream"}
        greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}}
        answer = await client.post("/mcp", greeting, headers=accept)
        assert answer.status == 200, answer
        found["after"] = loaded()
    print(json.dumps(found))

anyio.run(main)
"""


def test_ru_60_the_sdk_is_loaded_by_the_first_who_asks_over_mcp(tmp_path: Path) -> None:
    found = run_fresh(SERVED, str(tmp_path))
    assert [] == found["before"]
    assert {"mcp", "mcp_types", "pydantic"} <= set(found["after"])
