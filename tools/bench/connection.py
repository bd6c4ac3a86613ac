"""One connection of the load client, and the tally that all of them keep."""

import asyncio
import time
from typing import cast

import msgspec

from tools.bench.replies import MARK
from tools.bench.reply_reader import ReplyReader, StampReader
from tools.bench.scenario import Scenario

_MARK = MARK.encode()


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What every connection does: the scenario, the whole request, and where to."""

    scenario: Scenario
    host: str
    port: int
    request: bytes


class Tally:
    """What all connections of one run have done.

    Attributes:
        good: Requests answered well.
        active: Requests under way.
        chunks: Chunks read, those of cut streams included.
        took_ns: How long each good answer took.
        first_ns: How long each good stream's first text took.
        late_ns: How long each chunk was on its way.
        troubles: How many requests went wrong, by what it was.
        last_ns: When the last good answer ended.
        over: Set when nothing is under way and nothing more may begin.
    """

    def __init__(self, job: Job) -> None:
        """Nothing begun."""
        self.job = job
        self._begun = self._most = self._deadline_ns = 0
        self.good = self.active = self.chunks = 0
        self.took_ns: list[int] = []
        self.first_ns: list[int] = []
        self.late_ns: list[int] = []
        self.troubles: dict[str, int] = {}
        self.last_ns = 0
        self.over = asyncio.Event()
        self.reopening: set[asyncio.Task[None]] = set()

    def allow(self, requests: int, *, until_ns: int) -> None:
        """Let that many requests begin until then; before this call none may."""
        self._most, self._deadline_ns = requests, until_ns

    def begin(self) -> bool:
        """Count one more request, unless there were enough or it is too late."""
        if self._begun >= self._most or time.monotonic_ns() > self._deadline_ns:
            if not self.active:
                self.over.set()
            return False
        self._begun += 1
        self.active += 1
        return True

    def fault(self, trouble: str) -> None:
        """Count something that went wrong."""
        self.troubles[trouble] = self.troubles.get(trouble, 0) + 1

    def end(self, trouble: str = "") -> None:
        """Count one request as answered well, or by what went wrong."""
        self.active -= 1
        if trouble:
            self.fault(trouble)
        else:
            self.good += 1
            self.last_ns = time.monotonic_ns()


class Connection(asyncio.Protocol):
    """A keep-alive connection that sends one request after another."""

    def __init__(self, tally: Tally) -> None:
        """Connected soon; nothing asked."""
        self._tally = tally
        self._job = tally.job
        self._asking = False
        self._began_ns = 0
        self._reply = ReplyReader()
        self._stamps = StampReader()
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is no subclass

    def ask(self) -> None:
        """Send the next request, if there is to be one, over a new connection if need be."""
        if not self._tally.begin():
            return
        if self._transport.is_closing():
            task = asyncio.get_running_loop().create_task(self._reopen())
            self._tally.reopening.add(task)
            task.add_done_callback(self._tally.reopening.discard)
        else:
            self._send()

    async def _reopen(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self, self._job.host, self._job.port)
        except OSError as error:
            self._tally.end(f"connect: {type(error).__name__}")
            self.ask()
        else:
            self._send()

    def _send(self) -> None:
        self._reply, self._stamps, self._body = ReplyReader(), StampReader(), []
        self._asking = True
        self._began_ns = time.monotonic_ns()
        self._transport.write(self._job.request)

    def data_received(self, data: bytes) -> None:
        """Read on; when the reply has ended, ask again."""
        if not self._asking:
            return
        now_ns = time.monotonic_ns()
        for part in self._reply.feed(data):
            if self._job.scenario.streaming:
                self._stamps.feed(part, at_ns=now_ns)
            else:
                self._body.append(part)
        if self._reply.done:
            self._answered(now_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer closed: the end of the reply, or a cut."""
        if not self._asking:
            return
        if self._reply.ends_with_connection:
            self._answered(time.monotonic_ns())
            return
        self._asking = False
        self._count_chunks()
        self._tally.end("cut off")
        self.ask()

    def stop(self) -> None:
        """Leave, and keep what a stream under way has given: its CPU time counts as well."""
        if self._asking:
            self._asking = False
            self._count_chunks()
        self._transport.abort()

    def _count_chunks(self) -> None:
        self._tally.chunks += len(self._stamps.lateness_ns)
        self._tally.late_ns += self._stamps.lateness_ns

    def _answered(self, now_ns: int) -> None:
        self._asking = False
        self._count_chunks()
        trouble = self._fault()
        if not trouble:
            self._tally.took_ns.append(now_ns - self._began_ns)
            if self._job.scenario.streaming:
                self._tally.first_ns.append(self._stamps.first_ns - self._began_ns)
        self._tally.end(trouble)
        if self._reply.closes:
            self._transport.close()
        self.ask()

    def _fault(self) -> str:
        """What is wrong with the reply, or nothing."""
        scenario = self._job.scenario
        if self._reply.status != 200:
            return f"status {self._reply.status}"
        if not scenario.streaming:
            return "" if _MARK in b"".join(self._body) else "wrong body"
        if len(self._stamps.lateness_ns) != scenario.chunks:
            return "chunks missing"
        return "" if self._stamps.finished else "no end"
