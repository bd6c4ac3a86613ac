"""The fenced blocks of a page: what is printed for a reader to run, write or compare."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_TITLE = re.compile(r'title="(?P<title>[^"]+)"')
_NOT_RUN = re.compile(r"^ *<!-- not run: (?P<reason>.+) -->$")


class Block(NamedTuple):
    """One fenced block.

    Attributes:
        page: the page's path below the root of the repository.
        line: the line of its fence, from 1.
        language: the first word behind the fence.
        title: the name of the file that a reader makes of it.
        not_run: why no test runs it, from a comment before the fence; None when one does.
        text: what is inside, without the page's indentation.
    """

    page: str
    line: int
    language: str
    title: str | None
    not_run: str | None
    text: str

    @property
    def place(self) -> str:
        """For messages: ``page:line``."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page of the documentation and every README, below the root of the repository."""
    found = [
        *ROOT.glob("README.md"),
        *ROOT.glob("packages/*/README.md"),
        *ROOT.glob("docs/**/*.md"),
    ]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks_of(page: str) -> Iterator[Block]:
    """The blocks of one page, in their order."""
    lines = (ROOT / page).read_text("utf-8").splitlines()
    start, info, indent, reason = 0, "", "", None
    inside: list[str] | None = None
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if inside is None and fence:
            start, info, indent = number, fence["info"].strip(), fence["indent"]
            inside = []
        elif inside is not None and fence and not fence["info"]:
            title = _TITLE.search(info)
            yield Block(
                page=page,
                line=start,
                language=info.partition(" ")[0],
                title=title["title"] if title else None,
                not_run=reason,
                text="".join(f"{each}\n" for each in inside),
            )
            inside, reason = None, None
        elif inside is not None:
            inside.append(line.removeprefix(indent))
        elif line.strip():
            remark = _NOT_RUN.match(line)
            reason = remark["reason"] if remark else None
    assert inside is None, f"{page}:{start}: a fence that is not closed"


class Command(NamedTuple):
    """One command of a ``console`` block and what is printed under it."""

    command: str
    expected: str


def commands_of(block: Block) -> list[Command]:
    """The commands behind ``$``; one goes on behind a backslash and inside single quotes."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), ""))
        elif found and _is_open(found[-1]):
            found[-1] = Command(f"{found[-1].command}\n{line}", "")
        elif found:
            found[-1] = found[-1]._replace(expected=f"{found[-1].expected}{line}\n")
        else:
            raise AssertionError(f"{block.place}: output before the first command")
    return found


def _is_open(command: Command) -> bool:
    text = command.command
    return not command.expected and (text.endswith("\\") or text.count("'") % 2 == 1)


def fits(expected: str, actual: str) -> bool:
    """Whether an output is the printed one; ``…`` in the latter stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, actual.strip(), re.DOTALL) is not None
