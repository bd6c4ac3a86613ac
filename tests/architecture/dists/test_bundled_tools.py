"""The MCP server that comes along works from the wheels, for a recipe and without an mcp.json."""

import json
import os
import subprocess
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.architecture.workshop import build_distributions, make_environment

RECIPES = """
[recipes.clerk]
inferencer = "ollama/m"
tools = ["clock.calculate"]
"""
CALL = {"function": {"name": "clock__calculate", "arguments": {"expression": "17 * 23"}}}


class Model(BaseHTTPRequestHandler):
    """Ollama's API with a model that calls the tool once and repeats what it says."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = request["messages"][-1]
        said: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
        if last["role"] == "tool":
            said = {"role": "assistant", "content": f"It is {last['content']}."}
        reply = {"model": "m", "created_at": "2026-11-30T00:00:00Z", "message": said}
        body = json.dumps({**reply, "done": True, "done_reason": "stop"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def ollama() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def python(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with our two wheels."""
    dist = tmp_path_factory.mktemp("dist")
    build_distributions(repository, dist)
    return make_environment(tmp_path_factory.mktemp("env") / "venv", *sorted(dist.glob("*.whl")))


def woollama(python: Path, folder: Path, ollama: str, *arguments: str) -> str:
    run = subprocess.run(
        [python.parent / "woollama", *arguments],
        cwd=folder,
        env={
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "WOOLLAMA_CONFIG_DIR": str(folder),
            "WOOLLAMA_OLLAMA_URL": ollama,
            "COLUMNS": "200",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == run.returncode, run.stderr
    return run.stdout


def test_recipes_are_there_without_a_file(python: Path, ollama: str, tmp_path: Path) -> None:
    entries = json.loads(woollama(python, tmp_path, ollama, "patterns", "--json"))
    assert ["explain", "now", "short"] == [entry["name"] for entry in entries]


def test_a_recipe_calls_a_tool_of_the_bundled_server(
    python: Path, ollama: str, tmp_path: Path
) -> None:
    (tmp_path / "recipes.toml").write_text(RECIPES)
    # A module of this name in the working directory is none of ours.
    (tmp_path / "ast.py").write_text("raise SystemExit('not this one')")
    told = woollama(python, tmp_path, ollama, "ask", "--no-stream", "-p", "clerk", "17 * 23?")
    assert "It is 391.\n" == told
