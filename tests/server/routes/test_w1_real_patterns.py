"""A folder of real prompts over HTTP, to the byte: CRLF, a BOM, braces in code, empty files."""

import json
from pathlib import Path

import anyio

from tests.server.routes.serving import serving
from woollama.core.patterns.template import variables_of

FOLDER = Path(__file__).parents[2] / "fixtures" / "patterns"
INPUT = "{{input}} é\r\n"


async def test_every_real_pattern_is_listed_and_rendered_byte_for_byte(tmp_path: Path) -> None:
    recipes = tmp_path / "recipes.toml"
    await anyio.Path(recipes).write_text(f"[patterns]\ndir = {json.dumps(str(FOLDER))}\n")
    prompts = {path.parent.name: path.read_bytes() for path in sorted(FOLDER.glob("*/system.md"))}
    assert 10 < len(prompts)
    async with serving(recipes=recipes) as daemon:
        listed = (await daemon.client.get("/w1/patterns")).json()["data"]
        assert list(prompts) == [entry["name"] for entry in listed]
        for entry in listed:
            text = prompts[entry["name"]].decode()
            assert list(variables_of(text)) == [each["name"] for each in entry["variables"]]
            values = {each["name"]: f"<{each['name']}>" for each in entry["variables"]}
            naive = text
            for name, value in values.items():
                naive = naive.replace(f"{{{{{name}}}}}", value)
            url = f"/w1/patterns/{entry['name']}/render"
            plain = await daemon.client.post(url, json={})
            filled = await daemon.client.post(url, json={"variables": values, "input": INPUT})
            assert text.encode() == plain.json()["prompt"].encode()
            assert f"{naive}\n\n{INPUT}".encode() == filled.json()["prompt"].encode()
