"""The messages in the page on troubleshooting are messages of the code."""

import ast
import re

import pytest

from tests.docs.blocks import ROOT

PAGE = ROOT / "docs/howto/troubleshooting.md"
MESSAGES = re.findall(r"^(?:### |\| 40\d, )`(.+?)`(?:$| \|)", PAGE.read_text("utf-8"), re.MULTILINE)


def _texts() -> list[str]:
    """Every string of the code; of a formatted one, with what is put in as an ellipsis."""
    found: list[str] = []
    for path in (ROOT / "packages").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                ]
                found.append("".join(str(part) for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


TEXTS = _texts()


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_of_the_code(message: str) -> None:
    parts = [part.strip(" ;:'") for part in re.split("…|; ", message)]
    missing = [part for part in parts if part and not any(part in text for text in TEXTS)]
    assert [] == missing


def test_no_message_is_there_twice() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) > 10
