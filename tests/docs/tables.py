"""The tables of a page, by heading."""

import re

from tests.docs.blocks import ROOT

_ESCAPED_BAR = "\0"


def tables_of(page: str) -> dict[str, list[list[str]]]:
    """The rows of the tables under each heading, without their head; of several tables, all rows.

    Cells are stripped; a cell of one code span loses its backticks.
    """
    found: dict[str, list[list[str]]] = {}
    heading = ""
    body = False
    for line in (ROOT / page).read_text("utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip().replace("`", "")
        elif line.startswith("|"):
            cells = [_cell(part) for part in _parts(line)]
            if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                body = True
            elif body:
                found.setdefault(heading, []).append(cells)
            continue
        body = False
    return found


def _parts(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|").replace(r"\|", _ESCAPED_BAR)
    return [part.replace(_ESCAPED_BAR, "|") for part in inner.split("|")]


def _cell(text: str) -> str:
    cell = text.strip()
    code = re.fullmatch(r"`([^`]+)`", cell)
    return code[1] if code else cell
