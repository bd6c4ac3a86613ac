"""The page of the architecture draws the floors that the import contracts check."""

import tomllib

from tests.docs.blocks import ROOT

PAGE = ROOT / "docs/discussion/architecture.md"


def test_the_floors_are_those_of_the_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    expected = {
        contract["containers"][0]: [
            sorted(name.strip(" ()") for name in layer.split("|")) for layer in contract["layers"]
        ]
        for contract in contracts["contracts"]
        if contract["type"] == "layers"
    }
    assert expected == _drawn()


def _drawn() -> dict[str, list[list[str]]]:
    text = PAGE.read_text("utf-8").split("```text\n")[1].split("```")[0]
    drawn: dict[str, list[list[str]]] = {}
    container = ""
    for line in text.splitlines():
        if line.startswith(" "):
            drawn[container].append(sorted(line.split()))
        elif line:
            container = line.strip()
            drawn[container] = []
    return drawn


def test_the_named_dependencies_of_the_core_are_those_that_it_declares() -> None:
    project = tomllib.loads((ROOT / "packages/woollama-core/pyproject.toml").read_text())["project"]
    names = [requirement.split(">=")[0] for requirement in project["dependencies"]]
    text = PAGE.read_text("utf-8").split("- `woollama-core`")[1].split("- `woollama-server`")[0]
    assert [] == [name for name in names if name not in text]
