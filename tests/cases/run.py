"""One run of a case: everything is set up, the steps are done, the checks are made."""

import random
import socket
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tests.cases.checks import every, wrong
from tests.cases.checks_product import wrong_by_itself
from tests.cases.client import ask
from tests.cases.product import Product
from tests.cases.replies import Reply
from tests.cases.scene import Scene
from tests.cases.schema import (
    AwaitMcp,
    Background,
    Case,
    Check,
    Mark,
    Parallel,
    Request,
    Sleep,
    Step,
)
from tests.cases.script_player import ScriptPlayer
from tests.cases.workspace import environment_of, messages_of_mcp_server, write_files

__all__ = ["Verdict", "run_case"]

_POLL_S = 0.02
_WITHOUT_START = frozenset({"start", "any_of", "log", "not", "exit_code"})
"""The checks that are made when the product did not start."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a case.

    Attributes:
        problems: what did not hold, in words; none when the product does what is right.
        log: all that the product wrote.
    """

    problems: tuple[str, ...]
    log: str


def run_case(
    case: Case,
    *,
    over: threading.Event | None = None,
    environ: Mapping[str, str] | None = None,
) -> Verdict:
    """Runs a case against a daemon of its own, in a fresh directory.

    Args:
        over: ends the waits of the case; set at its end, or by another thread before.
        environ: further variables for the product.
    """
    over = over or threading.Event()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"case-{case.id}-")))
        players = {
            name: stack.enter_context(ScriptPlayer(script))
            for name, script in case.upstreams.items()
        }
        port = stack.enter_context(_port(occupied=case.config.occupy_port))
        ports = {name: player.port for name, player in players.items()}
        words = _words(port, folder, ports)
        write_files(case, folder, ports, words)
        variables = environment_of(case, folder, words) | dict(environ or {})
        product = Product(port, folder, variables)
        try:
            started = product.is_up(case.start_timeout_ms / 1000, over.wait)
            scene = Scene(
                case=case,
                folder=folder,
                upstreams=players,
                words=words,
                product=product,
                started=started,
            )
            problems = _play(scene, over)
        finally:
            product.stop()
        return Verdict(problems=(*problems, *wrong_by_itself(scene)), log=product.log)


@contextmanager
def _port(*, occupied: bool) -> Generator[int]:
    """A port where nothing listens, or where we do."""
    with _listener() as listener:
        port: int = listener.getsockname()[1]
        if occupied:
            yield port
            return
    yield port


def _listener() -> socket.socket:
    """On a port that nobody is given by chance before the product takes it.

    The system hands out ports from 32768 on; below them only what asks for one by number listens.
    """
    while True:
        try:
            return socket.create_server(("127.0.0.1", random.randrange(10_000, 32_000)))
        except OSError:
            continue


def _words(port: int, folder: Path, ports: Mapping[str, int]) -> dict[str, str]:
    words = {"@PORT@": str(port), "@DIR@": str(folder)}
    for name, upstream in ports.items():
        words[f"@BASE:{name}@"] = f"http://127.0.0.1:{upstream}"
        words[f"@UPPORT:{name}@"] = str(upstream)
    return words


def _play(scene: Scene, over: threading.Event) -> list[str]:
    checks = scene.case.expect
    if not scene.started:
        may_refuse = (
            part.check == "start" and not part.ok for one in checks for part in every(one)
        )
        if not any(may_refuse):
            return [f"start: it did not start: {scene.product.log[-600:]}"]
        checks = tuple(check for check in checks if check.check in _WITHOUT_START)
        return _wrong(scene, checks)
    with ThreadPoolExecutor(256) as clients:
        try:
            for step in scene.case.client:
                scene.replies += _do(scene, step, clients, over)
            problems = [*scene.problems, *_wrong(scene, checks)]
            if scene.product.exit_code is not None:
                problems.append(f"end: it ended by itself with {scene.product.exit_code}")
            return problems
        finally:
            # Clients in the background still wait for what nobody looks at.
            over.set()
            scene.product.stop()


def _wrong(scene: Scene, checks: tuple[Check, ...]) -> list[str]:
    return [problem for check in checks if (problem := wrong(scene, check))]


def _do(
    scene: Scene, step: Step, clients: ThreadPoolExecutor, over: threading.Event
) -> list[Reply]:
    def once(request: Request, after_ms: int = 0) -> Reply:
        if after_ms:
            over.wait(after_ms / 1000)
        return ask(request, scene.product.port, scene.words, over.wait)

    match step:
        case Sleep(ms=ms):
            over.wait(ms / 1000)
        case AwaitMcp():
            _await_mcp(scene, step, over)
        case Mark(label=label):
            scene.marks[label] = {"rss_kb": scene.product.rss_kb(), "fds": scene.product.fds()}
        case Background(request=request, n=n, settle_ms=settle_ms):
            for _ in range(n):
                clients.submit(once, request)
            over.wait(settle_ms / 1000)
        case Parallel(request=request, n=n, stagger_ms=stagger_ms):
            delays = [number * stagger_ms for number in range(n)]
            return list(clients.map(once, [request] * n, delays))
        case _:
            return [once(step)]
    return []


def _await_mcp(scene: Scene, step: AwaitMcp, over: threading.Event) -> None:
    end = time.monotonic() + step.timeout_ms / 1000
    while time.monotonic() < end and not over.is_set():
        if messages_of_mcp_server(scene.folder, step.server, step.method):
            return
        over.wait(_POLL_S)
    scene.problems.append(f"await_mcp: server {step.server!r} did not get {step.method!r} in time")
