"""``mcp.json``: what is read, what is left out and why (RU-33): server/mcp/config.py."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from woollama.core.errors import ConfigError
from woollama.server.mcp.config import McpConfig, check_mcp, load_mcp
from woollama.server.mcp.entries import HttpServer, StdioServer

ENVIRON = {"TOKEN": "s3cret-token", "EMPTY": "", "HOST": "tools.example"}

Load = Callable[..., McpConfig]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


@pytest.fixture
def load(path: Path) -> Load:
    """Reads a file with these entries, and whatever else is given."""

    def load(entries: Any, **more: Any) -> McpConfig:
        path.write_text(json.dumps({"mcpServers": entries, **more}), "utf-8")
        return load_mcp(ENVIRON, path)

    return load


def why(config: McpConfig, name: str = "t") -> str:
    assert () == config.servers
    return config.skipped[name]


def test_without_a_file_there_are_no_servers(path: Path) -> None:
    assert McpConfig(path=path) == load_mcp(ENVIRON, path)


def test_the_file_is_that_of_the_configuration_directory(path: Path) -> None:
    path.write_text('{"mcpServers": {"t": {"command": "x"}}}', "utf-8")
    config = load_mcp({"WOOLLAMA_CONFIG_DIR": str(path.parent)})
    assert (StdioServer(name="t", command="x"),) == config.servers


def test_a_program_and_an_address_are_read_with_all_that_they_may_have(load: Load) -> None:
    config = load(
        {
            "files": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "server-files"],
                "env": {"A": "b"},
                "cwd": "/srv",
                "mode": "legacy",
                "tools": ["read"],
                "description": "for people",
                "connect_timeout_s": 90,
                "call_timeout_s": 5.5,
            },
            "far": {"type": "streamable-http", "url": "https://h/mcp", "headers": {"X": "yyy"}},
            "away": {"command": "x", "disabled": True},
        }
    )
    assert {} == config.skipped
    assert (
        StdioServer(
            name="files",
            command="npx",
            args=("-y", "server-files"),
            env={"A": "b"},
            cwd="/srv",
            mode="legacy",
            tools=("read",),
            connect_timeout_s=90,
            call_timeout_s=5.5,
        ),
        HttpServer(name="far", url="https://h/mcp", headers={"X": "yyy"}),
    ) == config.servers


def test_variables_are_expanded_in_each_entry(load: Load) -> None:
    config = load(
        {
            "a": {"command": "x", "args": ["${TOKEN}", "$X"], "env": {"_K": "${NONE:-d}"}},
            "b": {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        }
    )
    first, second = config.servers
    assert isinstance(first, StdioServer)
    assert isinstance(second, HttpServer)
    assert ("s3cret-token", "$X") == first.args
    assert {"_K": "d"} == first.env
    assert "https://tools.example/mcp" == second.url
    assert {"Authorization": "Bearer s3cret-token"} == second.headers


def test_what_came_from_the_environment_or_is_a_credential_is_secret(load: Load) -> None:
    config = load(
        {
            "a": {"command": "x", "args": ["--t", "${TOKEN}"], "env": {"API_KEY": "literal-key"}},
            "b": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer abc-def-ghi"}},
        }
    )
    said = "s3cret-token literal-key --t"
    assert "*** *** --t" == config.servers[0].redact(said)
    assert "I got *** (***)" == config.servers[1].redact("I got Bearer abc-def-ghi (abc-def-ghi)")
    assert "secret" not in repr(config)
    assert "abc" not in repr(config)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (5, "must be a table, not a number"),
        ({}, "needs either 'command' (a program) or 'url' (an address)"),
        ({"command": "x", "url": "http://h"}, "needs either 'command' (a program) or 'url'"),
        ({"command": ""}, "command: expected `str` of length >= 1"),
        ({"command": "x", "envv": {}}, "envv: unknown key; did you mean 'env'?"),
        ({"command": "x", "env": {"PORT": 80}}, 'env.PORT: must be a text; write "80"'),
        ({"command": "x", "env": {"D": True}}, 'env.D: must be a text; write "true"'),
        ({"command": "x", "env": {"A=B": "c"}}, "env: 'A=B' is no name of a variable"),
        ({"command": "x\0"}, "command: holds a NUL character"),
        ({"command": "x", "args": "-y"}, "args: expected `array`, got `str`"),
        ({"command": "x", "headers": {"A": "b"}}, "headers: belongs to 'url'"),
        ({"command": "x", "type": "http"}, "type: 'http' does not fit 'command'"),
        ({"command": "x", "mode": "new"}, "mode: must be 'auto', 'legacy' or 'modern', not 'new'"),
        ({"command": "x", "call_timeout_s": 0}, "call_timeout_s: expected `float` > 0"),
        ({"command": "x", "args": ["${NONE} ${NEVER}"]}, "unset variables: NONE, NEVER; set each"),
        ({"url": "http://h", "args": ["x"]}, "args: belongs to 'command'"),
        ({"url": "http://h", "type": "stdio"}, "type: 'stdio' does not fit 'url'"),
        ({"url": "http://h/sse", "type": "sse"}, "type: 'sse' is not spoken; write the server's"),
        ({"url": "ftp://h"}, "url: must be http://host[:port]/path or https://host/path"),
        ({"url": "http://h:x"}, "url: is no address"),
        ({"url": "http://u:p@h"}, "url: holds a user or password; put an Authorization"),
        ({"url": "http://h", "headers": {"A B": "c"}}, "headers: 'A B' is no name of a header"),
        ({"url": "http://h", "headers": {"A": "b\r\nC: d"}}, "headers.A: must be of visible"),
        ({"url": "http://h", "headers": {"A": 5}}, 'headers.A: must be a text; write "5"'),
    ],
)
def test_ru_33_a_wrong_entry_is_left_out_by_name_with_what_to_do(
    load: Load, entry: Any, reason: str
) -> None:
    assert why(load({"t": entry})).startswith(reason)
    assert ["u"] == [each.name for each in load({"t": entry, "u": {"command": "x"}}).servers]


@pytest.mark.parametrize("value", ["${EMPTY}", "Bearer ${EMPTY}", "Bearer", "bearer ", " "])
def test_a_header_without_its_credential_is_refused(load: Load, value: str) -> None:
    config = load({"t": {"url": "https://h", "headers": {"Authorization": value}}})
    assert why(config).startswith("headers.Authorization: ")


def test_a_nameless_entry_is_refused(load: Load) -> None:
    assert "needs a name" == why(load({" ": {"command": "x"}}), " ")


def test_what_is_perhaps_not_meant_is_a_warning(load: Load) -> None:
    config = load(
        {
            "a": {"url": "http://10.0.0.1/mcp", "headers": {"A": "bcd"}},
            "b": {"url": "http://127.0.0.1/mcp", "headers": {"A": "bcd"}},
            "c": {"command": "x", "env": {"E": "${EMPTY}", "N": "${NONE:-${TOKEN}}"}},
        }
    )
    assert 3 == len(config.servers)
    assert [
        "mcpServers.a.url: headers go to '10.0.0.1' unencrypted; write https:// if it can",
        "mcpServers.c.env.E: is empty",
        "mcpServers.c: 'N' still holds '${' after expansion: a reference has none inside it",
    ] == [str(each).partition(": ")[2] for each in config.warnings]


def test_the_sections_of_others_are_kept_as_they_stand(load: Load) -> None:
    fabric = {"url": "${NONE}", "managed": True}
    config = load({}, fabric=fabric, conversationStore="files")
    assert fabric == config.fabric
    assert "files" == config.conversation_store


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"command": "x",}}}',
        "[]",
        '{"mcpServers": []}',
        '{"mcpServer": {}}',
        '{"mcpServers": {"bad": {}}, "novel": 1}',
    ],
)
def test_ru_33_any_other_fault_stops_the_start_and_names_the_file(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        load_mcp(ENVIRON, path)


def test_a_byte_order_mark_and_notes_are_no_fault(path: Path) -> None:
    text = '{"$schema": "x", "_note": 1, "mcpServers": {"t": {"command": "x", "_why": "y"}}}'
    path.write_text("\ufeff" + text, "utf-8")
    assert ["t"] == [server.name for server in load_mcp(ENVIRON, path).servers]


def test_check_mcp_returns_every_problem_and_what_could_be_read(path: Path) -> None:
    entries = {"a": {}, "b": {"command": "x", "u": 1, "args": 5}, "c": {"command": "x"}}
    path.write_text(json.dumps({"novel": 1, "mcpServers": entries}), "utf-8")
    config, problems = check_mcp(path, ENVIRON)
    assert ["c"] == [server.name for server in config.servers]
    assert [
        f"{path}: novel: ",
        f"{path}: mcpServers.a: ",
        f"{path}: mcpServers.b.u: ",
        f"{path}: mcpServers.b.args: ",
    ] == [f"{each.file}: {each.place}: " for each in problems]


def test_check_mcp_tells_a_file_that_does_not_parse(path: Path) -> None:
    path.write_text("{", "utf-8")
    config, problems = check_mcp(path, ENVIRON)
    assert () == config.servers
    assert [True] == [str(path) in str(problem) for problem in problems]
