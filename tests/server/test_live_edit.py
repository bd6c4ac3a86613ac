"""Files that are edited under a running daemon: seen at once, and kept when an edit broke them."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.clients.running import RunningDaemon, running_daemon

GOOD = '[recipes.one]\ninferencer = "local/m"\nsystem = "First."\n'
BETTER = '[recipes.two]\ninferencer = "local/m"\nsystem = "Second."\n'
BROKEN = {
    "no TOML": ("[recipes.one\n", "is not valid TOML"),
    "a slip": ('[recipes.one]\nsistem = "x"\n', "did you mean 'system'?"),
}


def names(daemon: RunningDaemon) -> list[str]:
    return [entry["name"] for entry in listed(daemon)]


def listed(daemon: RunningDaemon) -> list[dict[str, Any]]:
    return httpx2.get(f"{daemon.url}/w1/patterns", trust_env=False).json()["data"]


@pytest.mark.parametrize(("text", "why"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_edit_of_the_recipes_keeps_the_last_good_version_and_says_so_once(
    tmp_path: Path, text: str, why: str
) -> None:
    with running_daemon(tmp_path, files={"recipes.toml": GOOD}, environ={}) as daemon:
        path = tmp_path / "config" / "recipes.toml"
        assert ["one"] == names(daemon)

        path.write_text(text)
        assert ["one"] == names(daemon)
        url = f"{daemon.url}/w1/patterns/one/render"
        assert {"prompt": "First."} == httpx2.post(url, json={}, trust_env=False).json()
        assert ["one"] == names(daemon)
        (line,) = [line for line in daemon.log.splitlines() if "stays in force" in line]
        assert "warning" in line
        assert str(path) in line
        assert why in line

        path.write_text(BETTER)
        assert ["two"] == names(daemon)
        path.write_text(text)
        assert ["two"] == names(daemon)
        told = [line for line in daemon.log.splitlines() if "stays in force" in line]
        assert [line.partition(" ")[2] for line in told] == [line.partition(" ")[2]] * 2
        path.unlink()
        assert ["explain", "now", "short"] == names(daemon)


def test_an_edited_prompt_of_the_folder_is_seen_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "say"
    folder.mkdir(parents=True)
    (folder / "system.md").write_text("Say {{a}}.")
    settings = f'[patterns]\ndir = "{tmp_path / "prompts"}"\n'
    with running_daemon(tmp_path, files={"recipes.toml": settings}, environ={}) as daemon:
        assert [{"name": "say", "variables": [{"name": "a"}], "source": "directory"}] == listed(
            daemon
        )
        (folder / "system.md").write_text("Say {{b}}.")
        assert [{"name": "b"}] == listed(daemon)[0]["variables"]
        (folder / "system.md").write_bytes(b"\xff")
        assert [{"name": "b"}] == listed(daemon)[0]["variables"]
        (line,) = [line for line in daemon.log.splitlines() if "stays in force" in line]
        assert "is not UTF-8" in line
        (folder / "system.md").unlink()
        assert [] == listed(daemon)
