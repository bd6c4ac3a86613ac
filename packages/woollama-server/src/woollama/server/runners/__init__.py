"""Running the application: the event loop, the signals, and a choice of two HTTP servers.

Both serve in this process, take the sockets that ``binding`` made, and stop when they are told: no
new connections, idle ones closed, requests under way finished within a limit, the rest cut.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeVar

import anyio
from anyio.abc import TaskStatus
from starlette.types import ASGIApp

from woollama.core.errors import ConfigError
from woollama.core.scopes import open_tasks
from woollama.server.binding import Binding
from woollama.server.sections import ServerSettings

__all__ = ["Serve", "find_runner", "run", "stop_on_signals"]

_STOPPING = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


class Serve(Protocol):
    """What each runner is: serves until ``stop`` is set and everything is finished or cut.

    Beside what ASGI asks for it tells a request at once that its client has left, and only when its
    answer is not complete: by the extension ``leaving.LEAVING``, whose value is a
    ``leaving.Telling``.
    """

    async def __call__(
        self,
        app: ASGIApp,
        binding: Binding,
        server: ServerSettings,
        *,
        on_ready: Callable[[], None],
        stop: anyio.Event,
    ) -> None:
        """Serves.

        Args:
            app: never sees a lifespan; that is the caller's, round this call.
            binding: the sockets, listening; they are closed here when serving ends.
            server: the limits in seconds.
            on_ready: called once, when connections are served.
            stop: set from outside to end.
        """
        ...


def find_runner(kind: Literal["hypercorn", "uvicorn"]) -> Serve:
    """The runner of that name; its library is imported only now.

    Raises:
        ConfigError: the library is not installed, with what to do.
    """
    if kind == "hypercorn":
        from woollama.server.runners.hypercorn import serve
    else:
        if find_spec("uvicorn") is None:
            raise ConfigError(
                "uvicorn is not installed: pip install 'woollama-server[uvicorn]', or use hypercorn"
            )
        from woollama.server.runners.uvicorn import serve
    return serve


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs ``main`` on uvloop when it is installed, else on asyncio's own loop."""
    factory = None
    if find_spec("uvloop") is not None:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


@asynccontextmanager
async def stop_on_signals(stop: anyio.Event) -> AsyncGenerator[None]:
    """Sets ``stop`` on SIGTERM or Ctrl-C; a second one ends the process as if nobody listened.

    The second one's action is the operating system's own, so it works however busy we are.
    """
    before = {number: signal.getsignal(number) for number in _STOPPING}

    async def listen(*, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(*_STOPPING) as signals:
            task_status.started()
            async for _ in signals:
                stop.set()
                break
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)

    try:
        async with open_tasks() as tasks:
            await tasks.start(listen)
            yield
            tasks.cancel_scope.cancel()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
