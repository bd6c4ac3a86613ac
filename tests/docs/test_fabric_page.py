"""The page on fabric: every key of its section with its default (P-62), and what is open."""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest

from tests.docs.blocks import ROOT, blocks_of
from tests.docs.tables import tables_of
from woollama.core.config.files import read_table
from woollama.server.fabric.call import _OPTIONS  # pyright: ignore[reportPrivateUsage]
from woollama.server.fabric.config import Exposed, FabricConfig

PAGE = "docs/howto/fabric.md"
REFERENCE = "docs/reference/configuration.md"


def _printed(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value).decode()


@pytest.mark.parametrize(("page", "heading"), [(PAGE, "Switch it on"), (REFERENCE, "fabric")])
def test_p_62_every_key_of_the_section_is_there_with_its_default(page: str, heading: str) -> None:
    defaults = {
        field.encode_name: _printed(
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        )
        for field in msgspec.structs.fields(FabricConfig)
    }
    assert defaults == {row[0]: row[1] for row in tables_of(page)[heading]}


def test_ru_61_every_word_that_opens_routes_is_there() -> None:
    assert set(get_args(Exposed)) == {row[0] for row in tables_of(PAGE)["fabric's own API"]}


def test_every_option_of_openais_is_named() -> None:
    text = (ROOT / PAGE).read_text("utf-8")
    for name in _OPTIONS:
        if name == name.lower() and name not in {"thinking", "search_location"}:
            assert f"`{name}`" in text


def test_the_printed_sections_are_taken_without_a_complaint() -> None:
    sections = [
        msgspec.json.decode(block.text)["fabric"]
        for block in blocks_of(PAGE)
        if block.language == "json"
    ]
    assert 2 == len(sections)
    for section in sections:
        assert [] == read_table(section, FabricConfig, file="mcp.json", place="fabric")[1]


def test_the_page_has_the_note_on_addresses_of_images_and_on_trust() -> None:
    text = (ROOT / PAGE).read_text("utf-8")
    assert "SSRF" in text
    assert "## What to trust" in text
