"""How a server stands from one try to the next, for those that look at it and those that wait."""

import anyio

from woollama.server.mcp.health import Health
from woollama.server.mcp.limits import McpLimits

__all__ = ["Standing"]


class Standing:
    """The state of a supervised server, and the counts that say when it is tried again.

    Attributes:
        state: see ``Health``.
        reason: why it is not connected, one sentence.
        last_error: the last thing that went wrong, also when all is well again.
        attempts: tries since the last connection, the current one included.
        falls: ends and failed tries since it last held for long.
        next_try: when it is tried again, by anyio's clock; None while it is tried or connected.
    """

    def __init__(self) -> None:
        """Before the first try."""
        self.state: Health = "connecting"
        self.reason: str | None = None
        self.last_error: str | None = None
        self.attempts = 0
        self.falls = 0
        self.next_try: float | None = None
        self._news = anyio.Event()

    @property
    def settling(self) -> bool:
        """Whether the first try is not over yet."""
        return self.state == "connecting"

    async def settled(self) -> None:
        """Waits until the first try is over."""
        while self.settling:
            await self.news()

    async def news(self) -> None:
        """Waits until anything here may have changed."""
        await self._news.wait()

    def try_now(self) -> None:
        """A try begins."""
        self.attempts += 1
        self.next_try = None

    def to(self, state: Health, reason: str | None) -> None:
        """Another state, of which those that wait are told."""
        self.state = state
        self.reason = reason
        self._tell()

    def wait_s(self, held_s: float | None, limits: McpLimits) -> float:
        """Counts one more end of it; for how long nothing is to be tried now.

        Args:
            held_s: for how long it was connected; None: it never was.
            limits: say how the waits grow, and what is long enough to begin anew.
        """
        if held_s is not None and held_s >= limits.calm_s:
            self.falls = 0
        self.falls += 1
        delay_s = limits.delay_s(self.falls)
        self.next_try = anyio.current_time() + delay_s
        # Whoever waits for it learns how long it will be.
        self._tell()
        return delay_s

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
