"""Checks of the product's process."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.cases.client import ask
from tests.cases.comparison import compare
from tests.cases.evaluation import Evaluate
from tests.cases.scene import Scene
from tests.cases.schema import Check, Http
from tests.cases.texts import fill

__all__ = ["PRODUCT_CHECKS", "wrong_by_itself"]

_NOISE = (
    "Traceback (most recent call last)",
    "failed unexpectedly",
    "was never awaited",
    "was never retrieved",
)
_TAIL = 600


def _start(scene: Scene, check: Check) -> str | None:
    if scene.started is check.ok:
        return None
    return "it started" if scene.started else f"it did not start: {scene.product.log[-_TAIL:]}"


def _log(scene: Scene, check: Check) -> str | None:
    return compare(scene.product.log, check)


def _exit_code(scene: Scene, check: Check) -> str | None:
    code = scene.product.exit_code
    return "it still runs" if code is None else compare(code, check)


def _alive(scene: Scene, check: Check) -> str | None:
    if scene.product.exit_code is not None:
        return f"it has ended with {scene.product.exit_code}"
    question = Http(method="GET", path="/v1/models", timeout_ms=check.within_ms)
    reply = ask(question, scene.product.port, scene.words, wait=lambda _: None)
    if reply.status is not None and reply.status < 500:
        return None
    return f"GET /v1/models afterwards: {reply.status}, {reply.error}"


def _file(scene: Scene, check: Check) -> str | None:
    path = Path(fill(check.path or "", scene.words))
    if not path.exists():
        return None if check.optional else f"{path} is not there"
    mode = path.stat().st_mode & 0o777
    return f"the mode is {mode:o}" if mode & int(check.no_bits, 8) else None


def _growth(scene: Scene, check: Check) -> str | None:
    growth = scene.marks[check.to][check.what] - scene.marks[check.from_][check.what]
    return compare(growth, check)


PRODUCT_CHECKS: Mapping[str, Evaluate] = MappingProxyType(
    {
        "start": _start,
        "log": _log,
        "exit_code": _exit_code,
        "alive": _alive,
        "file": _file,
        "growth": _growth,
    }
)
"""Each by its name: start and end, output, files, growth."""


def wrong_by_itself(scene: Scene) -> list[str]:
    """What no case has to ask for, looked at when the product has been told to stop.

    It ends with status 0, and what a peer does wrong is no bug of ours in the log.
    """
    problems: list[str] = []
    if scene.started and scene.product.exit_code != 0:
        problems.append(f"end: told to stop, it ended with {scene.product.exit_code}")
    log = scene.product.log
    noise = next((mark for mark in _NOISE if mark in log), None)
    if noise is not None:
        problems.append(f"log: {log[log.index(noise) :][-_TAIL:]}")
    return problems
