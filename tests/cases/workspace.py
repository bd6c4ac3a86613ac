"""The product's files: a fresh directory with the configuration that the case describes."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from tests.cases.schema import Case, FileContent, Inferencer
from tests.cases.texts import fill, repeated

__all__ = ["FAKE_MCP", "environment_of", "messages_of_mcp_server", "write_files"]

FAKE_MCP = Path(__file__).parent / "fake_mcp.py"

_KINDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "openai_chat": MappingProxyType({}),
        "openai_responses": MappingProxyType({"provider": "openai", "dialect": "responses"}),
        "ollama": MappingProxyType({"provider": "ollama"}),
        "anthropic": MappingProxyType({"provider": "anthropic"}),
    }
)
"""The keys of an inferencer's table that say how it speaks."""


def write_files(
    case: Case, folder: Path, ports: Mapping[str, int], words: Mapping[str, str]
) -> None:
    """Writes the configuration into ``folder/config``, with the other directories beside it.

    Args:
        ports: of the upstreams, by name.
        words: what the words of the case's texts stand for.
    """
    for name in ("config", "home", "mcp", "run", "state"):
        (folder / name).mkdir(mode=0o700)
    config = folder / "config"
    inferencers = {
        name: _inferencer(table, ports[table.upstream or name])
        for name, table in case.config.inferencers.items()
    }
    recipes = {
        name: {"system": "You are a test.", **repeated(table)}
        for name, table in case.config.recipes.items()
    }
    servers = {
        name: _mcp_server(name, entry, folder) for name, entry in case.config.mcp_servers.items()
    }
    texts: dict[str, str | FileContent] = {
        "inferencers.toml": _toml("inferencers", inferencers),
        "recipes.toml": _toml("recipes", recipes),
        "mcp.json": json.dumps({"mcpServers": servers}),
        **case.config.files,
    }
    for name, content in texts.items():
        content = content if isinstance(content, FileContent) else FileContent(text=content)
        encoding = "utf-8-sig" if content.bom else "utf-8"
        (config / name).write_text(fill(content.text, words), encoding, newline="")


def environment_of(case: Case, folder: Path, words: Mapping[str, str]) -> dict[str, str]:
    """The product's whole environment: nothing of ours gets in but ``PATH``, and coverage's."""
    environ = {
        # Set when the tests are measured: then the daemon is measured, too.
        **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(folder),
        "WOOLLAMA_CONFIG_DIR": str(folder / "config"),
        # What hangs when a case is over shall not hold up the next.
        "WOOLLAMA_SERVER__DRAIN_TIMEOUT_S": "1",
        # An Ollama of the machine's own must not be found.
        "WOOLLAMA_OLLAMA_URL": "http://127.0.0.1:1",
        "XDG_CONFIG_HOME": str(folder / "home"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    for name, value in case.config.env.items():
        if value is None:
            environ.pop(name, None)
        else:
            environ[name] = fill(value, words)
    return environ


def messages_of_mcp_server(folder: Path, server: str, method: str) -> list[dict[str, Any]]:
    """The messages of one method that a fake MCP server got; ``start`` is each of its starts."""
    log = _script_of(server, folder).with_suffix(".log")
    if not log.exists():
        return []
    # What stands behind the last line end is still being written.
    whole, _, _ = log.read_text("utf-8").rpartition("\n")
    notes: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
    if method == "start":
        return [note for note in notes if note["event"] == "start"]
    messages: list[dict[str, Any]] = [note["message"] for note in notes if "message" in note]
    return [message for message in messages if message.get("method") == method]


def _inferencer(table: Inferencer, port: int) -> dict[str, Any]:
    address = f"http://127.0.0.1:{port}{table.suffix}"
    return {"base_url": address, **_KINDS[table.kind], **table.set}


def _mcp_server(name: str, entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    if "command" in entry:
        return entry
    script = _script_of(name, folder)
    script.write_text(json.dumps(entry), "utf-8")
    log = script.with_suffix(".log")
    return {"command": sys.executable, "args": [str(FAKE_MCP), str(script), str(log)]}


def _script_of(server: str, folder: Path) -> Path:
    return folder / "mcp" / (re.sub(r"\W", "_", server) + ".json")


def _toml(top: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    lines: list[str] = []
    for name, table in tables.items():
        lines.append(f"[{top}.{json.dumps(name)}]")
        lines += [f"{key} = {_toml_value(value)}" for key, value in table.items()]
    return "\n".join([*lines, ""])


def _toml_value(value: Any) -> str:
    match value:
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            inner = ", ".join(f"{json.dumps(key)} = {_toml_value(item)}" for key, item in pairs)
            return f"{{ {inner} }}"
        case list():
            return f"[{', '.join(map(_toml_value, cast('list[Any]', value)))}]"
        case _:
            # Texts, booleans and numbers are written alike in JSON and in TOML.
            return json.dumps(value, ensure_ascii=False)
