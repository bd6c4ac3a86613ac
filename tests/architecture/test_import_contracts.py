"""The floors, and the seams that the contracts in pyproject.toml have no words for.

Those contracts name modules; these tests hold for whatever modules there are.
"""

import subprocess
import sysconfig
from pathlib import Path

import grimp
import pytest

# Pure code: it does no I/O, so it needs nobody's network library and no event loop.
SANS_IO = (
    "woollama.core.canonical",
    "woollama.core.wire",
    "woollama.core.tools",
    "woollama.core.recipes",
)
IO_LIBRARIES = ("httpx2", "httpx", "httptools", "anyio", "socket", "ssl", "asyncio", "trio")

# Who may import a library that is kept in one place.
HOMES = {
    "httpx2": {"woollama.core.transport.http", "woollama.server.mcp.downstream"},
    "httptools": {"woollama.core.transport.connection", "woollama.server.runners.uvicorn"},
    "aiohappyeyeballs": {"woollama.core.transport.fast"},
    "tenacity": None,  # anywhere in the core
    "xllamacpp": None,  # anywhere in its plugin
}
PACKAGES_OF = {"tenacity": "woollama.core", "xllamacpp": "woollama.server.local"}

# One file per dialect; a dialect stands on another only where it is a variant of it.
DIALECTS = ("chat", "cerebras", "responses", "anthropic", "ollama")
VARIANTS = {("cerebras", "chat")}

# The plugins that we ship use the door that others use, and what supervises a child (RU-53).
PLUGINS = ("woollama.server.fabric", "woollama.server.local")
DOORS = {
    "woollama.server.plugins.contract",
    "woollama.server.process",
    "woollama.server.supervision",
}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Every import in our source, `TYPE_CHECKING` ones included; foreign packages as one node."""
    return grimp.build_graph(
        "woollama.core", "woollama.server", include_external_packages=True, cache_dir=None
    )


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def arrows(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    return sorted(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    )


def test_the_contracts_of_pyproject_hold(repository: Path) -> None:
    lint_imports = Path(sysconfig.get_path("scripts")) / "lint-imports"
    run = subprocess.run(
        [lint_imports, "--no-cache"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("library", IO_LIBRARIES)
def test_pure_packages_do_no_io(imports: grimp.ImportGraph, library: str) -> None:
    broken = [
        (importer, imported)
        for importer, imported in arrows(imports)
        if inside(imported, library) and any(inside(importer, package) for package in SANS_IO)
    ]
    assert broken == []


@pytest.mark.parametrize("library", sorted(HOMES))
def test_a_library_is_imported_only_at_home(imports: grimp.ImportGraph, library: str) -> None:
    homes = HOMES[library]
    importers = {importer for importer, imported in arrows(imports) if inside(imported, library)}
    if homes is None:
        strangers = {name for name in importers if not inside(name, PACKAGES_OF[library])}
    else:
        strangers = importers - homes
    assert strangers == set()


def test_dialects_do_not_know_each_other(imports: grimp.ImportGraph) -> None:
    wire = "woollama.core.wire"
    names = {f"{wire}.{name}": name for name in DIALECTS}
    broken = [
        (importer, imported)
        for importer, imported in arrows(imports)
        if importer in names
        and imported in names
        and (names[importer], names[imported]) not in VARIANTS
    ]
    assert broken == []


def test_plugins_and_the_server_meet_at_the_contract_only(imports: grimp.ImportGraph) -> None:
    broken: list[tuple[str, str]] = []
    for importer, imported in arrows(imports):
        if not (inside(importer, "woollama.server") and inside(imported, "woollama.server")):
            continue
        homes = [
            next((plugin for plugin in PLUGINS if inside(module, plugin)), None)
            for module in (importer, imported)
        ]
        if homes[0] != homes[1] and imported not in DOORS:
            broken.append((importer, imported))
    assert broken == []


def test_route_families_are_independent(imports: grimp.ImportGraph) -> None:
    routes = "woollama.server.routes"
    broken = [
        (importer, imported)
        for importer, imported in arrows(imports)
        if inside(importer, routes)
        and inside(imported, routes)
        and routes not in (importer, imported)
    ]
    assert broken == []


def test_no_module_of_the_core_imports_the_facade(imports: grimp.ImportGraph) -> None:
    facade = "woollama.core"
    broken = [
        (importer, imported)
        for importer, imported in arrows(imports)
        if imported == facade and inside(importer, facade)
    ]
    assert broken == []
