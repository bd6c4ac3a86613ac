"""Links lead somewhere, also in the READMEs, which the site's own check does not see."""

import re
import tomllib

import pytest

from tests.docs.blocks import ROOT, pages

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<text>.+?)(?: +\{.*\})?$", re.MULTILINE)
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def _prose(page: str) -> str:
    return _FENCED.sub("", (ROOT / page).read_text("utf-8"))


def _anchors(page: str) -> set[str]:
    headings = (found["text"] for found in _HEADING.finditer(_prose(page)))
    plain = (re.sub(r"[^\w\s-]", "", text.lower()).strip() for text in headings)
    return {re.sub(r"[-\s]+", "-", text) for text in plain}


@pytest.mark.parametrize("page", pages())
def test_a_link_leads_to_a_page_and_a_heading_of_it(page: str) -> None:
    for found in _LINK.finditer(_prose(page)):
        target, _, anchor = found["target"].partition("#")
        if "://" in target:
            continue
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page}: {found['target']}"
        if anchor:
            other = str(path.resolve().relative_to(ROOT))
            assert anchor in _anchors(other), f"{page}: {found['target']}"


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("packages/")])
def test_the_readme_of_a_distribution_has_no_relative_links(page: str) -> None:
    """It is shown on a package index, where they lead nowhere."""
    targets = [found["target"] for found in _LINK.finditer(_prose(page))]
    assert [] == [target for target in targets if "://" not in target]
    project = tomllib.loads((ROOT / page).with_name("pyproject.toml").read_text())["project"]
    assert "README.md" == project["readme"]


def test_the_site_has_a_place_for_every_page() -> None:
    """ADRs are reached from their index."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE))
    there = {page.removeprefix("docs/") for page in pages() if page.startswith("docs/")}
    assert set() == named - there
    assert set() == {page for page in there - named if not page.startswith("adr/")}
