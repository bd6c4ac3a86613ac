"""The records of decisions have one form, and none is forgotten in the index."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

ADRS = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
SECTIONS = ["Context", "Decision", "Consequences", "Not verified"]
# P-63: decisions that a first reading of the design overlooks.
OVERLOOKED = (
    "image with a remote URL",
    "without `-p`",
    "Kind `openai` is Chat Completions by default",
    "Anthropic streams",
    "System messages of a caller",
    "no password store",
    "httpx2 stands for httpx",
)


@pytest.mark.parametrize("path", ADRS, ids=lambda path: path.stem)
def test_a_record_has_a_number_a_status_a_date_and_its_four_parts(path: Path) -> None:
    text = path.read_text("utf-8")
    number = path.name[:4]

    assert re.match(rf"# {number}: \S.*\n\n- Status: \S.*\n- Date: \d{{4}}-\d\d-\d\d\n", text)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert SECTIONS == headings[:4]
    assert all(re.match(r"Amended \d{4}-\d\d-\d\d", heading) for heading in headings[4:])


def test_the_numbers_have_no_gap_and_the_index_names_every_record() -> None:
    assert list(range(1, len(ADRS) + 1)) == [int(path.name[:4]) for path in ADRS]
    index = (ROOT / "docs/adr/index.md").read_text("utf-8")
    for path in ADRS:
        title = path.read_text("utf-8").splitlines()[0].removeprefix("# ")
        number, _, words = title.partition(": ")
        assert f"| [{number}]({path.name}) | {words} |" in index


@pytest.mark.parametrize("words", OVERLOOKED)
def test_p_63_what_is_easily_missed_has_a_record(words: str) -> None:
    texts = (" ".join(path.read_text("utf-8").lower().split()) for path in ADRS)
    assert any(words.lower() in text for text in texts)


def test_every_ruling_that_the_code_cites_is_in_the_index() -> None:
    cited: set[int] = set()
    for folder in ("packages", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            cited |= {int(found) for found in re.findall(r"\bRU-(\d+)", path.read_text("utf-8"))}
    index = (ROOT / "docs/adr/index.md").read_text("utf-8")
    written: set[int] = set()
    for first, last in re.findall(r"\bRU-(\d+)(?: to RU-(\d+))?", index):
        written |= set(range(int(first), int(last or first) + 1))
    assert set() == cited - written
