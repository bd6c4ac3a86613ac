"""`export` in mcp.json: the allow-list of the MCP surface (server/mcp/exports.py)."""

import json
from pathlib import Path
from typing import Any

import pytest

from woollama.core.errors import ConfigError
from woollama.server.bundled.servers import with_bundled
from woollama.server.mcp.config import McpConfig, check_mcp, load_mcp

SERVERS: dict[str, Any] = {"a": {"command": "x"}, "b": {"command": "y"}, "wrong": {}}


def load(folder: Path, **export: Any) -> McpConfig:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": SERVERS, "export": export}))
    return load_mcp({}, path)


def passed_on(config: McpConfig) -> list[str]:
    return [name for name in SERVERS if config.exports.has(name)]


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ({}, ["a", "b", "wrong"]),
        ({"servers": ["b"]}, ["b"]),
        ({"servers": []}, []),
        ({"servers": ["wrong", "a"]}, ["a", "wrong"]),
        ({"recipesOnly": True}, []),
        ({"recipesOnly": False, "servers": ["a"]}, ["a"]),
    ],
)
def test_it_says_whose_tools_are_passed_on(
    tmp_path: Path, export: dict[str, Any], expected: list[str]
) -> None:
    config = load(tmp_path, **export)
    assert expected == passed_on(config)
    assert export.get("recipesOnly", False) == config.exports.recipes_only


@pytest.mark.parametrize(
    ("export", "words"),
    [
        ({"servers": ["c"]}, "export.servers: names 'c', which mcpServers has not"),
        ({"servers": ["a"], "recipesOnly": True}, "keep one of the two"),
        ({"server": ["a"]}, "unknown field `server`"),
        ({"servers": "a"}, "export"),
        ({"recipesOnly": "yes"}, "export"),
    ],
)
def test_what_is_wrong_in_it_stops_the_start(
    tmp_path: Path, export: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, **export)
    assert words in str(refused.value)
    _, problems = check_mcp(tmp_path / "mcp.json", {})
    assert any(words in str(problem) for problem in problems)


def test_without_it_everything_is_passed_on_but_what_is_bundled(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": SERVERS}))
    config = with_bundled(load_mcp({}, path))
    bundled = [server.name for server in config.servers if server.on_demand]
    assert bundled
    assert ["a", "b"] == [name for name in ("a", "b", *bundled) if config.exports.has(name)]
