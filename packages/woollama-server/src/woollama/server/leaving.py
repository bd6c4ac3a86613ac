"""The client's leaving: how a runner tells a request of it, and how a route ends by it.

ASGI has ``receive`` for that, which must be awaited, and so costs a task for each request. Our
runners offer an extension beside it: ``scope["extensions"][LEAVING]`` takes a callback. A server
without it, such as a test that calls an application by itself, is watched with ``receive``.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Protocol, cast

import anyio
from starlette.types import Receive, Scope

__all__ = ["LEAVING", "Leaving", "Telling", "call_while_connected", "while_connected"]

LEAVING = "woollama.leaving"
"""The key of the extension; its value is a ``Telling``."""


class Telling(Protocol):
    """What the extension is: a place for one callback."""

    def __call__(self, callback: Callable[[], None] | None, /) -> None:
        """Has ``callback`` called, once, when the client leaves before its answer is complete.

        Has it left already, that is in the event loop's next round. None takes it back.
        """
        ...


class Leaving:
    """The extension for one request, as a runner holds it."""

    __slots__ = ("_callback", "_left")

    def __init__(self) -> None:
        """The client is there."""
        self._callback: Callable[[], None] | None = None
        self._left = False

    def __call__(self, callback: Callable[[], None] | None, /) -> None:
        """See ``Telling``."""
        self._callback = callback
        if self._left and callback is not None:
            asyncio.get_running_loop().call_soon(self.tell)

    def tell(self) -> None:
        """The client has left; called by the runner, and not from within the request's task."""
        self._left = True
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


@contextmanager
def while_connected(scope: Scope, receive: Receive) -> Generator[None]:
    """Ends what is inside the moment the client leaves; nothing is raised then.

    The body must have been read: what comes next from ``receive`` is the client's leaving.
    """
    telling = _telling(scope, receive)
    with anyio.CancelScope() as inside:
        telling(inside.cancel)
        try:
            yield
        finally:
            telling(None)


def call_while_connected(scope: Scope, receive: Receive) -> AbstractContextManager[None]:
    """The same for one call that starts no tasks, at a tenth of the cost.

    The task is cancelled as ``asyncio.timeout`` does it: once, and no shield holds it off.
    """
    return _Call(_telling(scope, receive))


class _Call(AbstractContextManager[None]):
    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._left = False

    def __enter__(self) -> None:
        # Not None: whoever enters runs in a task.
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        self._cancelling = self._task.cancelling()
        self._telling(self._leave)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._telling(None)
        if not self._left:
            return False
        # Somebody else's cancelling, at the same time, goes on.
        only_ours = self._task.uncancel() <= self._cancelling
        return only_ours and isinstance(error, asyncio.CancelledError)

    def _leave(self) -> None:
        self._left = True
        self._task.cancel()


def _telling(scope: Scope, receive: Receive) -> Telling:
    return scope.get("extensions", {}).get(LEAVING) or _Watch(receive)


class _Watch:
    """The extension where the server has none."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task: asyncio.Task[None] | None = None

    def __call__(self, callback: Callable[[], None] | None, /) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = None if callback is None else asyncio.create_task(self._tell(callback))

    async def _tell(self, callback: Callable[[], None]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        callback()
