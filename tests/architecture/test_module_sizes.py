"""No module is longer than one reads: 400 lines, and more only with a decision record."""

from pathlib import Path

LIMIT_LINES = 400


def test_no_module_is_too_long(repository: Path) -> None:
    sizes = {
        str(path.relative_to(repository)): len(path.read_text("utf-8").splitlines())
        for path in sorted(repository.glob("packages/*/src/**/*.py"))
    }
    assert sizes, "no source found"
    assert {} == {name: lines for name, lines in sizes.items() if lines > LIMIT_LINES}


def test_every_module_says_its_responsibility_in_its_first_line(repository: Path) -> None:
    silent = [
        str(path.relative_to(repository))
        for path in sorted(repository.glob("packages/*/src/**/*.py"))
        if not path.read_text("utf-8").startswith(('"""', 'r"""'))
    ]
    assert silent == []


def test_the_namespace_belongs_to_neither_distribution(repository: Path) -> None:
    assert [] == list(repository.glob("packages/*/src/woollama/__init__.py"))


def test_both_packages_say_that_they_are_typed(repository: Path) -> None:
    for package in ("woollama-core/src/woollama/core", "woollama-server/src/woollama/server"):
        assert (repository / "packages" / package / "py.typed").is_file()
