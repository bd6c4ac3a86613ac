"""One woollama behind another, and when a circle is noticed (RU-54): server/mcp/federation.py."""

from pathlib import Path

import pytest

from tests.server.mcp.servers import scripted
from woollama.server.mcp.config import McpConfig
from woollama.server.mcp.federation import (
    LINEAGE_VARIABLE,
    add_trail,
    child_lineage,
    header_trail,
    inherited_id,
    is_descendant,
    trail_of,
)
from woollama.server.mcp.tools import open_mcp_tools


@pytest.mark.parametrize(
    ("meta", "trail"),
    [
        (None, ()),
        ([], ()),
        ({"woollama/instance": "a"}, ("a",)),
        ({"woollama/instance": ["a", 5, "b"]}, ("a", "b")),
        ({"woollama/instance": {"a": "b"}}, ()),
        ({"woollama/instance": ["x"] * 100}, ("x",) * 32),
    ],
)
def test_a_trail_is_read_whatever_stands_there(meta: object, trail: tuple[str, ...]) -> None:
    assert trail == trail_of(meta)


def test_a_trail_is_put_beside_what_is_there() -> None:
    assert {"k": 1, "woollama/instance": ["a", "b"]} == add_trail({"k": 1}, ("a", "b"))
    assert ("a",) == trail_of(add_trail(None, ["a"]))


def test_a_header_holds_one_id_or_several() -> None:
    assert ("a", "b") == header_trail("a, b,")
    assert () == header_trail(None)


def test_a_child_with_the_same_configuration_is_the_same_woollama(tmp_path: Path) -> None:
    own, other = tmp_path / "a" / "mcp.json", tmp_path / "b" / "mcp.json"
    environ = {LINEAGE_VARIABLE: child_lineage({}, "first", own)}
    assert "first" == inherited_id(environ, own)
    assert inherited_id(environ, other) is None
    assert inherited_id({}, own) is None


def test_a_child_knows_all_that_led_to_it(tmp_path: Path) -> None:
    first = {LINEAGE_VARIABLE: child_lineage({}, "first", tmp_path / "a")}
    second = {LINEAGE_VARIABLE: child_lineage(first, "second", None)}
    assert "first" == inherited_id(second, tmp_path / "a")
    assert is_descendant(second, "first")
    assert is_descendant(second, "second")
    assert not is_descendant(second, "third")


async def test_a_woollama_that_was_started_by_itself_starts_nobody() -> None:
    environ = {LINEAGE_VARIABLE: child_lineage({}, "me", None)}
    config = McpConfig(servers=(scripted(),), skipped={"u": "is wrong"})
    async with open_mcp_tools(config, instance_id="me", environ=environ) as tools:
        first, second = tools.servers()
        assert ("t", "failed", "u", "failed") == (
            first.name,
            first.health,
            second.name,
            second.health,
        )
        assert "a loop" in (first.reason or "")
        assert [] == tools.offered()
